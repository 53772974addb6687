"""What requests and answers about jobs look like. Their names are written as editors' pages write them: camelCase."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from nexus.db.session import Row
from nexus.web.api.schemas import Answer, Body, EventOut

ERROR_CODE = r"^[A-Z0-9_]{1,64}$"
_URL = "https://example.com/an-article"
_TEXT = "The article's text, at least 100 characters."


class Camel(Answer):
    model_config = ConfigDict(alias_generator=to_camel)


class JobBody(Body):
    """An address to fetch, or an article that was entered by hand, or both."""

    model_config = ConfigDict(alias_generator=to_camel)

    url: str | None = Field(None, examples=[_URL])
    title: str | None = Field(None, examples=["A title"])
    text: str | None = Field(None, examples=[_TEXT])
    media_id: UUID | None = None
    library_id: UUID | None = None


class RetryBody(Body):
    model_config = ConfigDict(alias_generator=to_camel)

    error_code: str = Field(pattern=ERROR_CODE, examples=["E_FETCH_TIMEOUT"])


class ManualBody(Body):
    title: str = Field(examples=["A title"])
    text: str = Field(examples=[_TEXT])


class Job(Camel):
    id: UUID
    status: str = Field(examples=["READY_TO_GENERATE"])
    url: str | None
    canonical_url: str | None
    fetched_url: str | None
    media_id: UUID | None
    library_id: UUID | None
    http_status: int | None
    content_type: str | None
    extracted_title: str | None
    manually_provided: bool
    error_code: str | None
    error_message: str | None = Field(examples=["[FETCH] The site answered 404. Check the address."])
    story_id: UUID | None
    created_at: datetime
    updated_at: datetime
    fetched_at: datetime | None
    extracted_at: datetime | None
    generated_at: datetime | None


class WholeJob(Job):
    raw_html: str | None
    extracted_text: str | None


class DraftOut(Camel):
    id: UUID
    status: str = Field(examples=["draft"])
    headline: str
    model: str = Field(examples=["extractive"])
    created_at: datetime


class JobOut(Camel):
    success: bool = True
    skipped: bool = False
    error: str | None = Field(None, description="Why the step failed, where it did.")
    message: str | None = None
    job: WholeJob
    history: list[EventOut] | None = None
    stories: list[DraftOut] | None = None


class JobPage(Camel):
    success: Literal[True] = True
    jobs: list[Job]
    next_cursor: str | None


class RetriedJobs(Camel):
    success: Literal[True] = True
    job_ids: list[UUID]


class JobRefusal(Camel):
    success: Literal[False] = False
    error: str = Field(examples=["NOT_READY"])
    message: str
    request_id: str


def job_json(row: Row, viewer: UUID) -> dict[str, Any]:
    """Every field that the row has and the model shows. What its creator typed is his: others see the canonical URL."""
    shown = {name: plain(getattr(row, name)) for name in WholeJob.model_fields if hasattr(row, name)}
    if row.created_by_user_id != viewer:
        shown["url"] = row.canonical_url
    return {to_camel(name): value for name, value in shown.items()}


def draft_json(row: Row) -> dict[str, Any]:
    return {to_camel(name): plain(getattr(row, name)) for name in DraftOut.model_fields}


def plain(value: object) -> object:
    match value:
        case UUID():
            return str(value)
        case datetime():
            return value.isoformat()
        case bytes() | memoryview():
            return bytes(value).decode(errors="replace")
    return value
