"""Steps that an editor leaves to a worker: announce them after the commit."""

from __future__ import annotations

from contextlib import suppress
from uuid import UUID

from nexus.editorial import claims, drafts, jobs, queries
from nexus.editorial.steps import NOT_TO_FETCH
from nexus.errors import InvalidState, JobNotReady, RateLimited
from nexus.media.queries import MOST
from nexus.media.workbench import Tools
from nexus.states.job import Status

NOT_TO_RETRY = "Only a job that failed before its text was there can be retried."


def leave_fetch(
    tools: Tools, job_id: UUID, actor: str, *, again: bool = False, request_id: str | None = None
) -> None:
    """Leave the fetch of a job that waits, or with `again` of one that failed without a text, to a worker. Raises
    InvalidState."""
    with tools.sessions.begin() as session:
        if again and not jobs.retry(session, job_id, actor):
            raise InvalidState(NOT_TO_RETRY)
        if not claims.begin_step(session, job_id, Status.FETCHING, None, actor, request_id=request_id):
            raise InvalidState(NOT_TO_FETCH)


def leave_all_failed(
    tools: Tools, viewer: UUID, error_code: str, request_id: str | None = None
) -> list[UUID]:
    """Leave every visible job that failed with this error to a worker once more; return which.

    Each goes on from the step that failed: a text that is there is not fetched again.
    """
    with tools.sessions.read() as session:
        failed = queries.newest(session, viewer, status=Status.FAILED, error_code=error_code, most=MOST).items
    left = []
    for job in failed:
        with suppress(InvalidState, JobNotReady, RateLimited):
            if job.extracted_at is None:
                leave_fetch(tools, job.id, str(viewer), again=True, request_id=request_id)
            else:
                drafts.begin(tools, job.id, viewer, again=True, request_id=request_id)
            left.append(job.id)
    return left
