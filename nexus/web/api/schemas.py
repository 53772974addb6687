"""What requests and answers of the API look like: requests are checked, answers serialized, both documented."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator

from nexus import urls
from nexus.db.rows import HistoryRow
from nexus.errors import public_code
from nexus.media.history import KnownEvent
from nexus.media.illustrations import Illustrations, name_image
from nexus.media.queries import ItemPage, Page, View
from nexus.media.reader import Document
from nexus.media.uploads import Begun, Expected
from nexus.states.capabilities import FLAGS
from nexus.states.media import FILE_KINDS
from nexus.web.http.envelope import Answer, Moment

EXAMPLE_ID = "6f1c9a52-7d0e-4d8e-9d7c-0a7e3a1b2c3d"
_EXAMPLE_URL = "https://example.com/an-article"
#: The code of a failure. Codes that say too much about the server are shown as a general one.
PublicCode = Annotated[str | None, AfterValidator(public_code)]


class Body(BaseModel):
    """Refuses unknown fields, so that a misspelt name does not pass unnoticed."""

    model_config = ConfigDict(extra="forbid")

    @field_validator("*")
    @classmethod
    def _is_encodable(cls, value: object) -> object:
        """JSON can spell half a character, which neither a database nor an answer can hold."""
        if isinstance(value, str):
            value.encode()
        return value


class UrlBody(Body):
    """An address to add. `kind` is web_article or video."""

    kind: str = Field(examples=["web_article"])
    url: str = Field(examples=[_EXAMPLE_URL])


class UploadBody(Body):
    """The file to upload. `kind` is pdf, epub or text."""

    kind: str = Field(examples=["pdf"])
    filename: str = Field(examples=["document.pdf"])
    content_type: str = Field(examples=["application/pdf"])
    size_bytes: int = Field(examples=[1048576], lt=2**50)

    def expected(self) -> Expected:
        return Expected(self.kind, self.filename, self.content_type, self.size_bytes)


class SubmittedOut(Answer):
    media_id: UUID = Field(examples=[EXAMPLE_ID])
    created: bool = Field(description="Whether the item is new to you.")
    enqueued: bool


class BegunOut(Answer):
    media_id: UUID = Field(examples=[EXAMPLE_ID])
    storage_path: str = Field(examples=[f"media/{EXAMPLE_ID}/original.pdf"])
    upload_url: str
    upload_headers: dict[str, str] = Field(examples=[{"Content-Type": "application/pdf"}])
    expires_at: Moment

    @classmethod
    def of(cls, begun: Begun, url: str) -> BegunOut:
        return cls(
            media_id=begun.media_id,
            storage_path=begun.storage_path,
            upload_url=url,
            upload_headers=dict(begun.target.headers),
            expires_at=begun.target.expires_at,
        )


class ConfirmedOut(Answer):
    media_id: UUID = Field(examples=[EXAMPLE_ID])
    duplicate: bool
    enqueued: bool


class RetriedOut(Answer):
    media_id: UUID
    enqueued: bool
    upload: BegunOut | None = Field(None, description="Where to upload the file again, if its upload failed.")


class CapabilitiesOut(Answer):
    """What you can do with the item now: rely on these, not on its status."""

    can_read: bool = Field(description=FLAGS["can_read"].means)
    can_highlight: bool = Field(description=FLAGS["can_highlight"].means)
    can_quote: bool = Field(description=FLAGS["can_quote"].means)
    can_search: bool = Field(description=FLAGS["can_search"].means)
    can_play: bool = Field(description=FLAGS["can_play"].means)
    can_download_file: bool = Field(description=FLAGS["can_download_file"].means)


class LinkOut(Answer):
    url: str
    expires_at: Moment
    capabilities: CapabilitiesOut


class MediaOut(Answer):
    id: UUID = Field(examples=[EXAMPLE_ID])
    kind: str = Field(examples=["web_article"])
    title: str | None = Field(description="Your own title for it, or else that of its text.")
    original_title: str | None
    processing_status: str = Field(examples=["ready_for_reading"])
    failure_stage: str | None
    last_error_code: PublicCode
    last_error_message: str | None
    processing_attempts: int
    waiting_for: str | None = Field(
        None,
        examples=["example.com"],
        description="The site, if that is busy or asked Nexus to wait.",
    )
    waiting_until: Moment | None = Field(
        None, description="When it is fetched, if it waits for its site; once passed, it is next."
    )
    processing_started_at: Moment | None
    processing_completed_at: Moment | None
    failed_at: Moment | None
    requested_url: str | None = Field(
        description="As the user who was first gave it; for others the canonical address."
    )
    canonical_url: str | None = Field(examples=[_EXAMPLE_URL])
    provider: str | None
    provider_id: str | None
    external_playback_url: str | None
    file_name: str | None = Field(description="The name of the uploaded file, once it has arrived.")
    file_size: int | None = Field(description="In bytes.")
    file_type: str | None = Field(
        None,
        examples=["application/pdf"],
        description="Also of a file that the address of an item answered with.",
    )
    created_at: Moment = Field(
        description="Since when one of your libraries has held it; no date is earlier."
    )
    updated_at: Moment
    revision: int = Field(description="The version that your libraries hold; 0 before there is a text.")
    newer_revision: int | None = Field(description="A newer version that you can take, if there is one.")
    host: str = Field(examples=["example.com"], description="The site of its address; empty for a file.")
    site: str | None = Field(examples=["The Example"], description="What the site calls itself.")
    byline: str | None
    published: str | None = Field(examples=["2026-01-31"])
    excerpt: str | None = Field(description="The first words of its text, or what it says about itself.")
    words: int
    reading_minutes: int
    lead_picture: str | None = Field(description="Its name at `/media/{id}/assets/{name}`, if it is there.")
    is_read: bool = Field(description="This, like all that you note about an item, is for you alone.")
    is_archived: bool
    is_favourite: bool
    progress: float = Field(examples=[0.4], description="How much of the text lies behind you, from 0 to 1.")
    capabilities: CapabilitiesOut
    may_retry: bool
    is_uploader: bool = Field(
        description="Whether this is a file of yours: only you can put it into a library, and delete it everywhere."
    )

    @classmethod
    def of(cls, view: View, viewer: UUID) -> MediaOut:
        """An item as a viewer may see it: what someone else typed as its address is not shown."""
        row: dict[str, Any] = view.row._asdict()
        is_own = view.row.created_by_user_id == viewer
        if not is_own:
            row["requested_url"] = view.row.canonical_url
        return cls.model_validate(
            {
                **row,
                "capabilities": view.capabilities,
                "may_retry": view.may_retry,
                "waiting_for": urls.host_of(view.row.canonical_url) if view.waiting_until else None,
                "waiting_until": view.waiting_until,
                "newer_revision": view.newer_revision,
                "reading_minutes": view.reading_minutes,
                "lead_picture": view.lead,
                "is_read": view.row.read_at is not None,
                "is_archived": view.row.archived_at is not None,
                "is_favourite": view.row.favourite_at is not None,
                "is_uploader": is_own and view.row.kind in FILE_KINDS,
            }
        )


class MediaPage(Answer):
    items: list[MediaOut]
    next_cursor: str | None

    @classmethod
    def of(cls, page: Page[View], viewer: UUID) -> MediaPage:
        return cls(items=[MediaOut.of(view, viewer) for view in page.items], next_cursor=page.next_cursor)


class FragmentOut(Answer):
    id: UUID = Field(description="Stays the same in a new revision if the text stays the same.")
    position: int
    text: str
    html: str | None = Field(
        description="Clean, and its text content is exactly `text`: offsets are the same in both. Pictures are named "
        "`asset:{name}`; those that are not there have no `src`, but their `alt`."
    )
    times: list[tuple[int, int, int, int]] | None = Field(
        None,
        examples=[[[0, 24, 1000, 2500]]],
        description="Only in transcripts with times: for each sentence its first character and the first after it, "
        "then when it begins and ends, in milliseconds.",
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
    requested_at: Moment
    error_code: PublicCode
    error_message: str | None


class PictureOut(Answer):
    """A picture of an article, which Nexus has fetched for its readers, or will."""

    source: str = Field(description="Its address. A reader who asks there is seen by the site.")
    asset: str | None = Field(
        examples=["0a1b2c3d4e5f60718293a4b5c6d7e8f9.webp"],
        description="Its name at `/media/{id}/assets/{name}`; null if it is not there.",
    )
    error_code: PublicCode = Field(description="Why it was given up; null while it is on its way, or there.")
    content_type: str | None
    size_bytes: int | None
    width: int | None
    height: int | None


class DocumentOut(Answer):
    revision: int
    extractor: str = Field(examples=["nexus 0.1.0"])
    byline: str | None
    site: str | None
    published: str | None = Field(examples=["2026-01-31"])
    language: str | None = Field(examples=["en"])
    lead_image: str | None = Field(
        examples=["asset:0a1b2c3d4e5f60718293a4b5c6d7e8f9.webp"],
        description="The picture above the text, named as in its html; null if there is none, or it is not there.",
    )
    pictures: list[PictureOut] = Field(description="The pictures of an article, in their order.")
    excerpt: str | None
    words: int
    reading_minutes: int
    outline: list[HeadingOut]
    fetched_url: str | None = Field(description="The address after all redirects.")
    written_at: Moment
    refresh: RefreshOut | None = Field(
        description="A refresh that is under way, or the last one if it failed."
    )
    capabilities: CapabilitiesOut

    @classmethod
    def of(cls, found: Document, pictures: Illustrations) -> DocumentOut:
        about = {
            "lead_image": name_image(found.row.lead_image, pictures),
            "pictures": [{**one._asdict(), "asset": one.name} for one in pictures.values()],
            "reading_minutes": found.reading_minutes,
            "outline": found.outline,
            "refresh": found.refresh,
            "capabilities": found.capabilities,
        }
        return cls.model_validate({**found.row._asdict(), "revision": found.row.number, **about})


class VersionOut(Answer):
    number: int
    title: str | None
    origin: str = Field(examples=["extracted"], description="`extracted`, or `entered` by you.")
    extractor: str = Field(examples=["nexus 0.1.0"])
    words: int
    fetched_url: str | None = Field(description="The address after all redirects.")
    written_at: Moment
    seen_at: Moment = Field(description="When a refresh last found the same text.")
    is_held: bool = Field(description="One of your libraries holds it.")
    was_held: bool = Field(description="One of your libraries held it before.")


class VersionList(Answer):
    items: list[VersionOut]
    revision: int = Field(description="The one that you read.")
    capabilities: CapabilitiesOut


class VersionTextOut(VersionOut):
    """A version with its text. `next_cursor` gets the next page of it."""

    items: list[FragmentOut]
    next_cursor: str | None
    capabilities: CapabilitiesOut


class UsedOut(Answer):
    media_id: UUID
    revision: int
    moved: int = Field(description="How many of the libraries that you administer held another version.")


class SpanOut(Answer):
    text: str
    is_marked: bool = Field(description="Whether the other version does not have it.")


class BesideOut(Answer):
    before: list[SpanOut]
    after: list[SpanOut]
    left_out: int = Field(description="How many equal paragraphs are left out here.")


class DifferenceOut(Answer):
    """Two versions side by side: `before` is the text of the version it is compared with, `after` its own."""

    number: int
    compared_with: int
    words_added: int
    words_removed: int
    rows: list[BesideOut]
    capabilities: CapabilitiesOut


class EventOut(Answer):
    event: str = Field(examples=["start"])
    from_status: str | None
    to_status: str
    at: Moment
    actor: str = Field(description="`you`, `worker`, `sweep`, or `someone` else.")
    actor_name: str | None = Field(
        None, description="The name of someone who shares a library with you that holds the item."
    )
    attempt: int
    error_code: PublicCode

    @classmethod
    def of(cls, row: HistoryRow, viewer: UUID) -> Self:
        return cls.model_validate({**row._asdict(), "actor": actor_of(row, viewer)})


class EventPage(Answer):
    items: list[EventOut]
    next_cursor: str | None
    capabilities: CapabilitiesOut

    @classmethod
    def of(cls, part: ItemPage[KnownEvent], viewer: UUID) -> EventPage:
        events = [
            EventOut.of(known.entry, viewer).model_copy(update={"actor_name": known.actor_name})
            for known in part.items
        ]
        return cls.model_validate({**vars(part), "items": events})


class Done(Answer):
    done: Literal[True] = True


class Health(Answer):
    status: str = Field(examples=["ok"])


def actor_of(row: HistoryRow, viewer: UUID) -> str:
    """Who did it, as a viewer may know: not which other user has the same page."""
    if row.actor == str(viewer):
        return "you"
    return row.actor if row.actor in {"worker", "sweep"} else "someone"
