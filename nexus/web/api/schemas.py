"""What requests and answers look like: checked on the way in, documented on the way out."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Generic, Literal, TypeVar
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, field_validator

from nexus.db.session import Row
from nexus.errors import public_code
from nexus.media.queries import Page, Part, View
from nexus.media.reader import Document
from nexus.states.capabilities import FLAGS

T = TypeVar("T")
_EXAMPLE_ID = "6f1c9a52-7d0e-4d8e-9d7c-0a7e3a1b2c3d"
_EXAMPLE_URL = "https://example.com/an-article"


class Body(BaseModel):
    """Unknown fields are refused: a misspelt name must not pass unnoticed."""

    model_config = ConfigDict(extra="forbid")

    @field_validator("*")
    @classmethod
    def _can_be_written_down(cls, value: object) -> object:
        """JSON can spell half a character, which neither a database nor an answer can hold."""
        if isinstance(value, str):
            value.encode()
        return value


class Answer(BaseModel):
    """Only the documentation needs the schema of an answer, so that it is built when somebody asks for that."""

    model_config = ConfigDict(defer_build=True)


class UrlBody(Body):
    """What to take in. `kind` is web_article or video."""

    kind: str = Field(examples=["web_article"])
    url: str = Field(examples=[_EXAMPLE_URL])


class UploadBody(Body):
    """The file that is to come. `kind` is pdf or epub."""

    kind: str = Field(examples=["pdf"])
    filename: str = Field(examples=["document.pdf"])
    content_type: str = Field(examples=["application/pdf"])
    size_bytes: int = Field(examples=[1048576], lt=2**50)


class LibraryBody(Body):
    name: str = Field(examples=["Research"])


class LibraryMediaBody(Body):
    media_id: UUID = Field(examples=[_EXAMPLE_ID])


class MemberBody(Body):
    user_id: UUID = Field(examples=[_EXAMPLE_ID])
    role: Literal["admin", "member"] = "member"


class Data(Answer, Generic[T]):
    data: T


class Problem(Answer):
    code: str = Field(examples=["E_NOT_FOUND"])
    message: str = Field(examples=["There is no such thing, or you may not see it."])
    request_id: str


class Refusal(Answer):
    error: Problem


class SubmittedOut(Answer):
    media_id: UUID = Field(examples=[_EXAMPLE_ID])
    created: bool
    enqueued: bool


class BegunOut(Answer):
    media_id: UUID = Field(examples=[_EXAMPLE_ID])
    storage_path: str = Field(examples=[f"media/{_EXAMPLE_ID}/original.pdf"])
    upload_url: str
    upload_headers: dict[str, str] = Field(examples=[{"Content-Type": "application/pdf"}])
    expires_at: datetime


class ConfirmedOut(Answer):
    media_id: UUID = Field(examples=[_EXAMPLE_ID])
    duplicate: bool
    enqueued: bool


class RetriedOut(Answer):
    media_id: UUID
    enqueued: bool
    upload: BegunOut | None = Field(
        None, description="Where to upload again, when it was the upload that failed."
    )


class CapabilitiesOut(Answer):
    """What you can do with the media now: rely on these, not on its status."""

    can_read: bool = Field(description=FLAGS["can_read"].means)
    can_highlight: bool = Field(description=FLAGS["can_highlight"].means)
    can_quote: bool = Field(description=FLAGS["can_quote"].means)
    can_search: bool = Field(description=FLAGS["can_search"].means)
    can_play: bool = Field(description=FLAGS["can_play"].means)
    can_download_file: bool = Field(description=FLAGS["can_download_file"].means)


class LinkOut(Answer):
    url: str
    expires_at: datetime
    capabilities: CapabilitiesOut


class MediaOut(Answer):
    id: UUID = Field(examples=[_EXAMPLE_ID])
    kind: str = Field(examples=["web_article"])
    title: str | None
    processing_status: str = Field(examples=["ready_for_reading"])
    failure_stage: str | None
    last_error_code: str | None
    last_error_message: str | None
    processing_attempts: int
    processing_started_at: datetime | None
    processing_completed_at: datetime | None
    failed_at: datetime | None
    requested_url: str | None = Field(description="As it was given; shown to who gave it.")
    canonical_url: str | None = Field(examples=[_EXAMPLE_URL])
    provider: str | None
    provider_id: str | None
    external_playback_url: str | None
    file_name: str | None = Field(description="What the user called the file, once it is there.")
    file_size: int | None = Field(description="In bytes.")
    created_at: datetime
    updated_at: datetime
    capabilities: CapabilitiesOut
    may_retry: bool


class MediaPage(Answer):
    items: list[MediaOut]
    next_cursor: str | None


class FragmentOut(Answer):
    id: UUID = Field(description="Stays the same in a new revision where the text stays the same.")
    position: int
    text: str
    html: str | None = Field(
        description="Clean, and its text content is exactly `text`: offsets are the same in both."
    )


class FragmentPage(Answer):
    items: list[FragmentOut]
    next_cursor: str | None
    capabilities: CapabilitiesOut


class HeadingOut(Answer):
    title: str
    level: int
    anchor: str = Field(examples=["f0-h1"], description="The id of an element in the html, or `f{position}`.")


class RefreshOut(Answer):
    requested_at: datetime
    error_code: str | None
    error_message: str | None


class DocumentOut(Answer):
    revision: int
    extractor: str = Field(examples=["nexus 0.1.0"])
    byline: str | None
    site: str | None
    published: str | None = Field(examples=["2026-01-31"])
    language: str | None = Field(examples=["en"])
    lead_image: str | None
    excerpt: str | None
    words: int
    reading_minutes: int
    outline: list[HeadingOut]
    fetched_url: str | None = Field(description="What the fetch ended at.")
    written_at: datetime
    refresh: RefreshOut | None = Field(description="What is asked for and not done yet, or has failed.")
    capabilities: CapabilitiesOut


class EventOut(Answer):
    event: str = Field(examples=["start"])
    from_status: str | None
    to_status: str
    at: datetime
    actor: str = Field(description="`you`, `worker`, `sweep`, or `someone` else.")
    attempt: int
    error_code: str | None


class EventPage(Answer):
    items: list[EventOut]
    next_cursor: str | None
    capabilities: CapabilitiesOut


class LibraryOut(Answer):
    id: UUID
    name: str
    is_default: bool
    role: str
    created_at: datetime


class LibraryList(Answer):
    items: list[LibraryOut]


class MemberOut(Answer):
    user_id: UUID
    role: str
    created_at: datetime


class MemberList(Answer):
    items: list[MemberOut]


class Done(Answer):
    done: Literal[True] = True


class Health(Answer):
    status: str = Field(examples=["ok"])


def media_json(view: View, viewer: UUID) -> dict[str, Any]:
    """What the first user typed is his: others see the canonical address."""
    row = view.row
    return {
        "id": str(row.id),
        "kind": row.kind,
        "title": row.title,
        "processing_status": row.processing_status,
        "failure_stage": row.failure_stage,
        "last_error_code": public_code(row.last_error_code),
        "last_error_message": row.last_error_message,
        "processing_attempts": row.processing_attempts,
        "processing_started_at": iso(row.processing_started_at),
        "processing_completed_at": iso(row.processing_completed_at),
        "failed_at": iso(row.failed_at),
        "requested_url": row.requested_url if row.created_by_user_id == viewer else None,
        "canonical_url": row.canonical_url,
        "provider": row.provider,
        "provider_id": row.provider_id,
        "external_playback_url": row.external_playback_url,
        "file_name": row.file_name,
        "file_size": row.file_size,
        "created_at": iso(row.created_at),
        "updated_at": iso(row.updated_at),
        "capabilities": vars(view.capabilities),
        "may_retry": view.may_retry,
    }


def fragment_json(row: Row) -> dict[str, Any]:
    return {"id": str(row.id), "position": row.position, "text": row.text, "html": row.html}


def document_json(found: Document) -> dict[str, Any]:
    row, asked = found.row, found.refresh
    return {
        "revision": row.revision,
        "extractor": row.extractor,
        "byline": row.byline,
        "site": row.site,
        "published": row.published,
        "language": row.language,
        "lead_image": row.lead_image,
        "excerpt": row.excerpt,
        "words": row.words,
        "reading_minutes": found.reading_minutes,
        "outline": [vars(line) for line in found.outline],
        "fetched_url": row.fetched_url,
        "written_at": iso(row.written_at),
        "refresh": asked
        and {
            "requested_at": iso(asked.requested_at),
            "error_code": public_code(asked.error_code),
            "error_message": asked.error_message,
        },
        "capabilities": vars(found.capabilities),
    }


def event_json(row: Row, viewer: UUID) -> dict[str, Any]:
    return {
        "event": row.event,
        "from_status": row.from_status,
        "to_status": row.to_status,
        "at": iso(row.at),
        "actor": actor(row.actor, viewer),
        "attempt": row.attempt,
        "error_code": public_code(row.error_code),
    }


def actor(recorded: str, viewer: UUID) -> str:
    """Who else has the same page in his library is nobody's business."""
    if recorded == str(viewer):
        return "you"
    return recorded if recorded in {"worker", "sweep"} else "someone"


def library_json(row: Row) -> dict[str, Any]:
    return {
        "id": str(row.id),
        "name": row.name,
        "is_default": row.is_default,
        "role": row.role,
        "created_at": iso(row.created_at),
    }


def member_json(row: Row) -> dict[str, Any]:
    return {"user_id": str(row.user_id), "role": row.role, "created_at": iso(row.created_at)}


def page_json(page: Page[Any], items: list[dict[str, Any]]) -> dict[str, Any]:
    return {"items": items, "next_cursor": page.next_cursor}


def part_json(part: Part[Any], items: list[dict[str, Any]]) -> dict[str, Any]:
    return {**page_json(part, items), "capabilities": vars(part.capabilities)}


def iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
