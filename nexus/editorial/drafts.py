"""From title and text to a saved story. No transaction is open while the draft is written."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID, uuid4

from nexus import logging
from nexus.db.moves import Missed
from nexus.db.patience import insist_on
from nexus.db.session import Row, Session
from nexus.draft import Article, Draft
from nexus.editorial import jobs, stories
from nexus.errors import ApiError, DraftFailed, InvalidState, JobNotReady, NotFound
from nexus.libraries import quota
from nexus.libraries.quota import Limits, Operation
from nexus.media import passages, queries
from nexus.media.workbench import Tools
from nexus.states.job import Status

log = logging.get(__name__)


def begin(
    tools: Tools,
    limits: Limits,
    job_id: UUID,
    viewer: UUID,
    *,
    again: bool = False,
    lease: timedelta | None = None,
) -> Row:
    """GENERATING; `again` also where there is a story already, or the last draft failed. Without a lease the writing
    is left to a worker. Raises RateLimited, JobNotReady, InvalidState."""
    with tools.sessions.begin() as session:
        jobs.keep_pace(session, job_id)
        if tools.drafter.costs_tokens:
            quota.require_quota(session, limits, viewer, Operation.LLM_TOKENS, 1)
        if again:
            _require(session, job_id, jobs.reopen(session, job_id, str(viewer)))
        return _require(
            session, job_id, jobs.start_generating(session, job_id, lease, str(viewer), drafted_for=viewer)
        )


def write(tools: Tools, job: Row, actor: str) -> None:
    """The draft of a job that is GENERATING: SAVED with its story then, or FAILED with the reason."""
    with tools.step_leases.hold((job.id, job.attempt)):
        try:
            draft = _drafted(tools, job)
        except DraftFailed as error:
            failure = error  # the name of an exception ends with its handler
            insist_on(tools.sessions, lambda session: _fail(session, job, failure, actor))
            return
        if not insist_on(tools.sessions, lambda session: _save(session, job, draft, actor)):
            raise InvalidState("This draft came too late: somebody else has gone on with the job meanwhile.")


def take_up(tools: Tools, job_id: UUID, actor: str) -> None:
    """The same for a worker: what was left to it, or what another one left behind."""
    with tools.sessions.begin() as session:
        lease = tools.step_leases.length
        job = _require(session, job_id, jobs.start_generating(session, job_id, lease, actor))
    write(tools, job, actor)


def adopt(session: Session, viewer: UUID, library_id: UUID, media_id: UUID) -> UUID:
    """A job with the text of a media that is readable already. Raises NotFound, JobNotReady."""
    found = queries.get(session, media_id, viewer)
    if not found.capabilities.can_read:
        raise JobNotReady("Its text is not there yet. Wait until it can be read.")
    body = passages.beginning(session, media_id, jobs.MOST_TEXT)
    if len(body) < jobs.LEAST_TEXT:
        raise JobNotReady("There is too little text in it for a story. Paste the text instead.")
    title = (found.row.title or body.splitlines()[0])[: jobs.MOST_TITLE].strip()
    job_id = jobs.create_from(session, viewer, library_id, found.row)
    jobs.adopt(session, job_id, title, body, media_id, str(viewer))
    return job_id


def _drafted(tools: Tools, job: Row) -> Draft:
    article = Article(job.extracted_title, job.extracted_text, job.canonical_url or "")
    try:
        return tools.drafter.draft(article, tools.draft_seconds)
    except DraftFailed:
        raise
    except Exception as error:
        # Its message may hold the article: only its name is kept.
        log.warning("drafter_crashed", job_id=str(job.id), reason=type(error).__name__)
        raise DraftFailed from error


def _save(session: Session, job: Row, draft: Draft, actor: str) -> bool:
    """False when somebody else has gone on with the job."""
    story_id = uuid4()
    saved = jobs.mark_saved(session, job.id, job.attempt, story_id, actor)
    if not isinstance(saved, Missed):
        stories.save(session, job, draft, story_id, actor)
    _count(session, job, draft.tokens_used, saved)
    return not isinstance(saved, Missed) or saved.repeated


def _fail(session: Session, job: Row, error: DraftFailed, actor: str) -> None:
    failed = jobs.fail(session, job.id, Status.GENERATING, job.attempt, error, actor)
    _count(session, job, error.tokens_used, failed)


def _count(session: Session, job: Row, tokens: int, written: Row | Missed[Status]) -> None:
    """What was used is used, whatever becomes of the draft; but once, if it is written a second time."""
    if tokens and not (isinstance(written, Missed) and written.repeated):
        user_id = job.drafted_for_user_id or job.created_by_user_id
        quota.record_usage(session, user_id, Operation.LLM_TOKENS, tokens, job.media_id)


def _require(session: Session, job_id: UUID, moved: Row | Missed[Status]) -> Row:
    if isinstance(moved, Missed):
        raise _refusal(session, job_id)
    return moved


def _refusal(session: Session, job_id: UUID) -> ApiError:
    job = jobs.get(session, job_id)
    if job is None:
        return NotFound()
    if not (job.extracted_at and job.extracted_title and job.extracted_text):
        return JobNotReady()
    return InvalidState(_ELSEWHERE[Status(job.status)])


_ELSEWHERE = {
    Status.EXTRACTED: "There is no draft of this yet. Generate it.",
    Status.READY_TO_GENERATE: "There is no draft of this yet. Generate it.",
    Status.GENERATING: "A draft is being written. Wait for it.",
    Status.SAVED: "This has its story. Regenerate it to have another draft.",
    Status.FAILED: "The last draft failed. Regenerate it.",
}
