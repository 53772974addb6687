"""What requests and answers about jobs look like, in camelCase."""

from __future__ import annotations

from typing import Annotated, Literal, Self
from uuid import UUID

from pydantic import BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

from nexus.db.rows import JobRow
from nexus.editorial.queries import ShownJobRow
from nexus.states.job import JobStatus
from nexus.web.api.schemas import Body, EventOut
from nexus.web.http.envelope import CamelAnswer, Moment

ERROR_CODE = r"^[A-Z0-9_]{1,64}$"
_URL = "https://example.com/an-article"
_TEXT = "The article's text, at least 100 characters."


def _decoded(page: bytes | memoryview | str | None) -> str | None:
    return page if page is None or isinstance(page, str) else bytes(page).decode(errors="replace")


class JobBody(Body):
    """An address to fetch, or an article entered by hand, or both; or an item to write about."""

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


class JobSummary(CamelAnswer):
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
    error_message: str | None = Field(
        examples=["[FETCH] Page not found (404). Check the address, or open the original."]
    )
    story_id: UUID | None
    waiting_until: Moment | None = Field(
        description="When its page is fetched, if its site is busy or asked Nexus to wait; null otherwise."
    )
    created_at: Moment
    updated_at: Moment
    fetched_at: Moment | None
    extracted_at: Moment | None
    generated_at: Moment | None

    @classmethod
    def of(cls, row: ShownJobRow, viewer: UUID) -> Self:
        """A job as a viewer may see it: what someone else typed as its address is not shown."""
        url = row.url if row.created_by_user_id == viewer else row.canonical_url
        unbegun = row.status is JobStatus.FETCHING and row.lease_expires_at is None
        return cls.model_validate(
            {**row._asdict(), "url": url, "waiting_until": row.run_after if unbegun else None}
        )


class JobDetail(JobSummary):
    raw_html: Annotated[str | None, BeforeValidator(_decoded)]
    extracted_text: str | None


class DraftOut(CamelAnswer):
    id: UUID
    status: str = Field(examples=["draft"])
    headline: str
    model: str = Field(examples=["extractive"])
    created_at: Moment


class JobOut(CamelAnswer):
    success: bool
    skipped: bool = False
    error: str | None = Field(None, description="Why the step failed, if it did.")
    message: str | None = None
    job: JobDetail
    history: list[EventOut] | None = None
    stories: list[DraftOut] | None = None

    @classmethod
    def after_step(cls, row: JobRow, viewer: UUID, *, skipped: bool = False) -> JobOut:
        """A job after one of its steps. A step that ran and failed is no success, and the answer says why."""
        job = JobDetail.of(row, viewer)
        if row.status != JobStatus.FAILED or skipped:
            return cls(success=True, skipped=skipped, job=job)
        return cls(success=False, skipped=False, error=row.error_code, message=row.error_message, job=job)


class JobPage(CamelAnswer):
    success: Literal[True]
    jobs: list[JobSummary]
    next_cursor: str | None


class RetriedJobs(CamelAnswer):
    success: Literal[True]
    job_ids: list[UUID]


class RemovedJob(CamelAnswer):
    success: Literal[True]
    job_id: UUID
