"""The life of an editorial job: each function walks one edge, in the caller's transaction.

The result of a step carries the attempt that it belongs to, so a worker that lost its lease can't write.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from math import ceil
from typing import NamedTuple
from uuid import UUID, uuid4

from sqlalchemy import (
    and_,
    bindparam,
    delete,
    exists,
    func,
    insert,
    literal_column,
    null,
    or_,
    select,
    update,
)

from nexus import logging, urls
from nexus.db.editorial import jobs, stories
from nexus.db.moves import JOB_ROWS, Missed, Move, Moved, log_created
from nexus.db.rows import JobRow
from nexus.db.session import Query, Session, Statement
from nexus.db.tables import UNSTORABLE, history
from nexus.errors import FetchGivenUp, InvalidRequest, NexusError, NotFound, RateLimited
from nexus.extract import Extraction, Fetched
from nexus.libraries import access, quota
from nexus.libraries.quota import Allowances, Operation
from nexus.states import job as edges
from nexus.states.job import HELD, JobStatus

log = logging.get_logger(__name__)

#: For text that is extracted, and for text that a person pastes.
LEAST_TEXT = 100
MOST_TEXT = 50_000
MOST_TITLE = 500
#: The least time between two drafts of one job, over all users and processes.
DRAFTS_APART = timedelta(seconds=5)

#: What messages call each step, by the status in which it runs.
STEPS = {JobStatus.FETCHING: "FETCH", JobStatus.EXTRACTING: "EXTRACT", JobStatus.GENERATING: "GENERATE"}

_now = bindparam("now", type_=jobs.c.updated_at.type)
_LET_GO = {"lease_expires_at": null(), "tries": literal_column("0")}
_NO_PAGE = dict.fromkeys(("raw_html", "charset"), null())
#: Also kept of an answer that was not a page.
_ANSWERED = ("http_status", "content_type")
_NO_FETCH = dict.fromkeys((*_ANSWERED, "fetched_url", "fetched_at"), null())
_NO_TEXT = dict.fromkeys(("extracted_title", "extracted_text", "extracted_at"), null())
_NO_ERROR = dict.fromkeys(("error_code", "error_message"), null())
_TEXT = {
    "extracted_title": bindparam("title"),
    "extracted_text": bindparam("text"),
    "extracted_at": _now,
    **_NO_PAGE,
    **_LET_GO,
}
HAS_TEXT = and_(
    jobs.c.extracted_at.is_not(None),
    func.coalesce(jobs.c.extracted_title, "") != "",
    func.coalesce(jobs.c.extracted_text, "") != "",
)
_FETCHED = Move(
    JOB_ROWS,
    edges.FETCHED,
    sets={
        **{
            name: bindparam(name)
            for name in ("raw_html", "charset", "http_status", "content_type", "fetched_url")
        },
        "fetched_at": _now,
        **_LET_GO,
    },
    fenced=True,
)
_EXTRACTED = Move(JOB_ROWS, edges.EXTRACTED, sets={**_TEXT, "media_id": bindparam("media_id")}, fenced=True)
_ADOPT = Move(
    JOB_ROWS,
    edges.ADOPT,
    sets={
        **_TEXT,
        "media_id": bindparam("media_id"),
        "media_revision": bindparam("revision", type_=jobs.c.media_revision.type),
    },
)
_MANUAL = Move(
    JOB_ROWS,
    edges.MANUAL_ENTRY,
    sets={
        **_NO_ERROR,
        **_LET_GO,
        "attempt": jobs.c.attempt + literal_column("1"),
        "manually_provided": literal_column("true"),
    },
)
_ENTERED = Move(JOB_ROWS, edges.EXTRACTED, sets=_TEXT)
_RETRY = Move(
    JOB_ROWS,
    edges.RETRY,
    sets={
        **_NO_ERROR,
        **_NO_PAGE,
        **_NO_FETCH,
        **_NO_TEXT,
        **_LET_GO,
        "manually_provided": literal_column("false"),
    },
    guards=[~HAS_TEXT],
)
_FAIL = {
    status: Move(
        JOB_ROWS,
        edges.FAIL,
        sets={
            "error_code": bindparam("error_code"),
            "error_message": bindparam("error_message"),
            **_NO_PAGE,
            **({name: bindparam(name) for name in _ANSWERED} if status is JobStatus.FETCHING else {}),
            "lease_expires_at": null(),
        },
        only=frozenset({status}),
        fenced=True,
    )
    for status in STEPS
}

_SAVED = Move(
    JOB_ROWS,
    edges.SAVED,
    sets={"story_id": bindparam("story_id"), "generated_at": _now, **_LET_GO},
    fenced=True,
)
_REGENERATE = Move(JOB_ROWS, edges.REGENERATE, sets={**_NO_ERROR, **_LET_GO}, guards=[HAS_TEXT])
_AGAIN = bindparam("again", type_=jobs.c.generate_after.type)
_PACE = Statement(
    update(jobs)
    .where(
        jobs.c.id == bindparam("job_id"), or_(jobs.c.generate_after.is_(None), jobs.c.generate_after <= _now)
    )
    .values(generate_after=_AGAIN)
)


class JobState(NamedTuple):
    """The part of a job that is looked at often, without its page, which is large."""

    status: JobStatus
    attempt: int
    lease_expires_at: datetime | None
    run_after: datetime | None


_DELETE = Statement(
    delete(jobs).where(
        jobs.c.id == bindparam("job_id"), ~exists(select(stories.c.id).where(stories.c.job_id == jobs.c.id))
    )
)
_FORGET = Statement(delete(history).where(history.c.subject_id == bindparam("job_id")))
_HIDE = Statement(
    update(jobs)
    .where(jobs.c.id == bindparam("job_id"))
    .values(removed_at=_now, updated_at=_now, raw_html=null())
)
_COLUMNS = ("id", "created_by_user_id", "library_id", "url", "canonical_url", "created_at", "updated_at")
_NEW = Statement(insert(jobs).values({jobs.c[name]: bindparam(name) for name in _COLUMNS}))
_STATE = Query(
    select(jobs.c.status, jobs.c.attempt, jobs.c.lease_expires_at, jobs.c.run_after).where(
        jobs.c.id == bindparam("job_id")
    ),
    JobState,
)
_ONE = Query(select(jobs).where(jobs.c.id == bindparam("job_id")), JobRow)


def queue_job(session: Session, viewer: UUID, library_id: UUID, url: str | None, limits: Allowances) -> UUID:
    """Create a job, QUEUED.

    Raises InvalidUrl, RateLimited; NotFound or Forbidden if the viewer may not add to the library.
    """
    if url is None:
        return _insert(session, viewer, library_id, None, None)
    source = urls.identify_article(url)
    job_id = _insert(session, viewer, library_id, source.requested_url, source.canonical_url)
    quota.require_quota(session, limits, viewer, Operation.INGEST_URLS, 1)
    quota.record_usage(session, viewer, Operation.INGEST_URLS, 1, None)
    return job_id


def queue_job_for_item(session: Session, viewer: UUID, library_id: UUID, canonical_url: str | None) -> UUID:
    """Create a job, QUEUED, for an item that is there already. Raises NotFound or Forbidden as `queue_job` does."""
    return _insert(session, viewer, library_id, canonical_url, canonical_url)


def _insert(
    session: Session, viewer: UUID, library_id: UUID, url: str | None, canonical_url: str | None
) -> UUID:
    access.require_admin(session, access.keep_library(session, library_id), viewer)
    job_id = uuid4()
    session.run(
        _NEW,
        id=job_id,
        created_by_user_id=viewer,
        library_id=library_id,
        url=url,
        canonical_url=canonical_url,
        created_at=session.now,
        updated_at=session.now,
    )
    log_created(session, JOB_ROWS, job_id, actor=str(viewer))
    return job_id


def find_job(session: Session, job_id: UUID) -> JobRow | None:
    return session.first(_ONE, job_id=job_id)


def job_state(session: Session, job_id: UUID) -> JobState | None:
    return session.first(_STATE, job_id=job_id)


def mark_fetched(
    session: Session, job_id: UUID, attempt: int, page: Fetched, actor: str
) -> Moved | Missed[JobStatus]:
    """FETCHING → EXTRACTING, with the page. Missed if the attempt is no longer the current one."""
    return _FETCHED(
        session,
        job_id,
        actor=actor,
        fence=attempt,
        raw_html=page.body,
        charset=page.charset,
        http_status=page.status,
        content_type=page.content_type_header,
        fetched_url=page.url,
    )


def mark_extracted(
    session: Session, job_id: UUID, attempt: int, found: Extraction, media_id: UUID | None, actor: str
) -> Moved | Missed[JobStatus]:
    """EXTRACTING → READY_TO_GENERATE. Missed if the attempt is no longer the current one."""
    title, body = title_and_text(found)
    return _EXTRACTED(session, job_id, actor=actor, fence=attempt, title=title, text=body, media_id=media_id)


def adopt_text(
    session: Session, job_id: UUID, title: str, body: str, media_id: UUID, revision: int, actor: str
) -> bool:
    """QUEUED → READY_TO_GENERATE, with the text of an item that can be read already."""
    text = body[:MOST_TEXT]
    row = _ADOPT(session, job_id, actor=actor, title=title, text=text, media_id=media_id, revision=revision)
    return not isinstance(row, Missed)


def mark_entered(
    session: Session, job_id: UUID, title: str, body: str, actor: str
) -> Missed[JobStatus] | None:
    """Give a job the text that a person pasted: → EXTRACTING → READY_TO_GENERATE. None if that worked.

    A running fetch is given up first, because a person who has the text need not wait for a slow site. Raises
    InvalidRequest if the title or the text has the wrong length.
    """
    title, body = (UNSTORABLE.sub("", given).strip() for given in (title, body))
    if not title or len(title) > MOST_TITLE:
        raise InvalidRequest(f"Give a title of at most {MOST_TITLE} characters.")
    if not LEAST_TEXT <= len(body) <= MOST_TEXT:
        raise InvalidRequest(f"Paste the article's text: {LEAST_TEXT} to {MOST_TEXT:,} characters.")
    job = job_state(session, job_id)
    if job is not None and job.status is JobStatus.FETCHING:
        fail_step(session, job_id, JobStatus.FETCHING, job.attempt, FetchGivenUp(), actor)
    begun = _MANUAL(session, job_id, actor=actor)
    if isinstance(begun, Missed):
        return begun
    _ENTERED(session, job_id, actor=actor, title=title, text=body)
    return None


def keep_pace(session: Session, job_id: UUID) -> None:
    """Raises RateLimited if a draft was requested a moment ago. A rollback also undoes the rate limit."""
    if session.run(_PACE, job_id=job_id, now=session.now, again=session.now + DRAFTS_APART):
        return
    job = find_job(session, job_id)
    if job is None or job.generate_after is None:
        raise NotFound
    wait = max(1, ceil((job.generate_after - session.now).total_seconds()))
    raise RateLimited(f"A draft was requested a moment ago. Try again in {wait} s.", retry_after=wait)


def mark_saved(
    session: Session, job_id: UUID, attempt: int, story_id: UUID, actor: str
) -> Moved | Missed[JobStatus]:
    """GENERATING → SAVED. Missed if the attempt is no longer the current one."""
    return _SAVED(session, job_id, actor=actor, fence=attempt, story_id=story_id)


def reopen_job(session: Session, job_id: UUID, actor: str) -> Moved | Missed[JobStatus]:
    """SAVED, or FAILED with title and text, → READY_TO_GENERATE."""
    return _REGENERATE(session, job_id, actor=actor)


def requeue(session: Session, job_id: UUID, actor: str) -> Moved | Missed[JobStatus]:
    """FAILED without text → QUEUED; everything that the failed try left is cleared."""
    return _RETRY(session, job_id, actor=actor)


def fail_step(
    session: Session, job_id: UUID, status: JobStatus, attempt: int, error: NexusError, actor: str
) -> Moved | Missed[JobStatus]:
    """Fail the step that runs in this status; the message says which step it was and what to do.

    A failed fetch keeps the site's answer, if there was one. Missed if the attempt is no longer the current one.
    """
    answered = dict[str, object]()
    if status is JobStatus.FETCHING:
        answered = {name: getattr(error, name, None) for name in _ANSWERED}
    return _FAIL[status](
        session,
        job_id,
        actor=actor,
        fence=attempt,
        error_code=error.code,
        error_message=f"[{STEPS[status]}] {error.message}",
        **answered,
    )


def remove_job(session: Session, job_id: UUID, actor: str) -> None:
    """Remove a job, and end the step that it is in. Its stories stay, and the row that they refer to stays unseen."""
    job = job_state(session, job_id)
    if job is not None and job.status in HELD:
        fail_step(session, job_id, job.status, job.attempt, FetchGivenUp(), actor)
    if session.run(_DELETE, job_id=job_id):
        session.run(_FORGET, job_id=job_id)
    else:
        session.run(_HIDE, job_id=job_id, now=session.now)


def title_and_text(found: Extraction) -> tuple[str, str]:
    """Return the title and text that a job keeps: always with a title, and the text cut to its limit."""
    body = "\n\n".join(fragment.text.strip() for fragment in found.fragments).strip()[:MOST_TEXT]
    first_line = next(iter(body.splitlines()), "")
    return (found.title or first_line)[:MOST_TITLE].strip(), body
