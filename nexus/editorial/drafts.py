"""Drafts: from title and text to a saved story. No transaction is open while a model writes."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID, uuid4

from nexus import logging
from nexus.db.moves import Missed, Moved
from nexus.db.rows import JobRow
from nexus.db.session import Session
from nexus.draft import Article, Draft
from nexus.editorial import jobs, step_claims, stories
from nexus.errors import ApiError, DraftFailed, InvalidState, JobNotReady, NotFound
from nexus.libraries import quota
from nexus.libraries.quota import Operation
from nexus.media import queries, reader
from nexus.media.workbench import Tools
from nexus.states.job import JobStatus

log = logging.get_logger(__name__)


def begin_draft(
    tools: Tools,
    job_id: UUID,
    viewer: UUID,
    *,
    again: bool = False,
    lease: timedelta | None = None,
    request_id: str | None = None,
) -> JobRow:
    """Move a job to GENERATING, with `again` even if it has a story or its last draft failed.

    Without a lease the writing is left to a worker. Raises RateLimited, JobNotReady, InvalidState.
    """
    with tools.sessions.begin() as session:
        jobs.keep_pace(session, job_id)
        if tools.drafter.costs_tokens:
            quota.require_quota(session, tools.limits, viewer, Operation.LLM_TOKENS, 1)
        if again and isinstance(jobs.reopen_job(session, job_id, str(viewer)), Missed):
            raise _refusal(session, job_id)
        begun = step_claims.begin_step(
            session,
            job_id,
            JobStatus.GENERATING,
            lease,
            str(viewer),
            request_id=request_id,
            drafted_for=viewer,
        )
        if isinstance(begun, Missed):
            raise _refusal(session, job_id)
        return begun


def write_draft(tools: Tools, job: JobRow) -> Draft | DraftFailed:
    """Write the draft of a job that has its text. A failure is a result, too."""
    with tools.sessions.read() as session:
        captions = () if job.media_id is None else reader.captions(session, job.media_id, job.media_revision)
    text = job.extracted_text or ""
    article = Article(job.extracted_title or "", text, job.canonical_url or "", captions)
    try:
        return tools.drafter.draft(article, tools.draft_seconds)
    except DraftFailed as error:
        return error
    except Exception as error:
        # Its message may contain the article, so log only its type.
        log.warning("drafter_crashed", job_id=str(job.id), reason=type(error).__name__)
        return DraftFailed()


def save_draft(
    session: Session, job: JobRow, draft: Draft | DraftFailed, actor: str
) -> Moved | Missed[JobStatus]:
    """GENERATING → SAVED with the story, or FAILED. Missed if the job has moved on meanwhile.

    Tokens are recorded even if the draft is thrown away, but only once if the same draft is saved a second time.
    """
    if isinstance(draft, DraftFailed):
        written = jobs.fail_step(session, job.id, JobStatus.GENERATING, job.attempt, draft, actor)
    else:
        story_id = uuid4()
        written = jobs.mark_saved(session, job.id, job.attempt, story_id, actor)
        if not isinstance(written, Missed):
            stories.save_story(session, job, draft, story_id, actor)
    if draft.tokens_used and not (isinstance(written, Missed) and written.repeated):
        user_id = job.drafted_for_user_id or job.created_by_user_id
        quota.record_usage(session, user_id, Operation.LLM_TOKENS, draft.tokens_used, job.media_id)
    return written


def create_job_from_item(session: Session, viewer: UUID, library_id: UUID, media_id: UUID) -> UUID:
    """Create a job with the text of an item that can be read already. Raises NotFound, JobNotReady."""
    found = queries.get_media(session, media_id, viewer)
    if not found.capabilities.can_read:
        raise JobNotReady("Its text is not ready yet. Try again when it is.")
    body = reader.beginning(session, media_id, found.row.revision, jobs.MOST_TEXT)
    if len(body) < jobs.LEAST_TEXT:
        raise JobNotReady("It has too little text for a story. Paste the text instead.")
    title = (found.row.original_title or body.splitlines()[0])[: jobs.MOST_TITLE].strip()
    job_id = jobs.queue_job_for_item(session, viewer, library_id, found.row.canonical_url)
    jobs.adopt_text(session, job_id, title, body, media_id, found.row.revision, str(viewer))
    return job_id


def _refusal(session: Session, job_id: UUID) -> ApiError:
    job = jobs.find_job(session, job_id)
    if job is None:
        return NotFound()
    if not (job.extracted_at and job.extracted_title and job.extracted_text):
        return JobNotReady()
    return InvalidState(_REFUSALS[job.status])


_REFUSALS = {
    JobStatus.EXTRACTED: "There is no draft yet. Generate one.",
    JobStatus.READY_TO_GENERATE: "There is no draft yet. Generate one.",
    JobStatus.GENERATING: "A draft is being written. Wait for it.",
    JobStatus.SAVED: "This job already has a story. Regenerate it to get another draft.",
    JobStatus.FAILED: "The last draft failed. Regenerate it.",
}
