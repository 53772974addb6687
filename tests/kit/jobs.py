"""Jobs and stories: brought into any state along legal edges, and checked against their history."""

from __future__ import annotations

from datetime import timedelta
from enum import Enum
from typing import Any, TypeVar
from uuid import UUID, uuid4

from sqlalchemy import bindparam, column, null, select, table, text, update

from nexus.app import App
from nexus.db.editorial import jobs as jobs_table
from nexus.db.moves import JOB_ROWS, STORY_ROWS, Missed, Subject
from nexus.db.rows import JobRow
from nexus.db.session import Session, Sessions, Statement
from nexus.editorial import drafts, jobs, queries, requests, step_claims, stories
from nexus.errors import ExtractionFailed
from nexus.extract import Extraction, Fetched
from nexus.libraries import access
from nexus.states import story
from nexus.states.job import JOB, JobStatus
from nexus.states.machine import Machine
from tests.kit.job_calls import TEXT
from tests.kit.media import history_of

#: For steps whose lease nobody renews.
LEASE = timedelta(seconds=60)

S = TypeVar("S", bound=Enum)

#: The states of a job that a walk leads to.
REACHABLE = [status for status in JobStatus if status not in JOB.retired]
#: The verbs that raise a job's fence.
BEGIN = {"fetch", "claim_extraction", "generate", "manual_entry"}
PAGE = Fetched("https://example.com/boats", 200, "text/html", "utf-8", b"<p>Boats</p>")
_ROWS = {
    subject: Statement(select(subject.table).where(subject.table.c.id == bindparam("row_id")))
    for subject in (JOB_ROWS, STORY_ROWS)
}
_GUARD = Statement(
    select(column("sql")).select_from(table("sqlite_master")).where(column("name") == "jobs_status_edge")
)
_PUT_JOB = Statement(
    update(jobs_table)
    .where(jobs_table.c.id == bindparam("job_id"))
    .values(
        status=bindparam("put_status"),
        error_code=bindparam("put_error", type_=jobs_table.c.error_code.type),
        error_message=bindparam("put_error", type_=jobs_table.c.error_message.type),
        story_id=jobs_table.c.id,
        lease_expires_at=null(),
    )
)


def new_job(app: App, user: UUID, url: str | None = None) -> UUID:
    with app.sessions.begin() as session:
        library = access.ensure_user(session, user)
        return jobs.queue_job(session, user, library, url or f"https://example.com/{uuid4().hex}", {})


def start_fetch(
    session: Session, job_id: UUID, lease: timedelta | None, actor: str
) -> JobRow | Missed[JobStatus]:
    return step_claims.begin_step(session, job_id, JobStatus.FETCHING, lease, actor)


def claim_extraction(
    session: Session, job_id: UUID, lease: timedelta | None, actor: str
) -> JobRow | Missed[JobStatus]:
    return step_claims.begin_step(session, job_id, JobStatus.EXTRACTING, lease, actor)


def walk_job_to(app: App, job_id: UUID, user: UUID, status: JobStatus) -> None:
    """Walk a new job to a state; one in work is held by a lease."""
    with app.sessions.begin() as session:
        if status is JobStatus.QUEUED:
            return
        fetch = _claimed(start_fetch(session, job_id, LEASE, "test"))
        if status is JobStatus.FAILED:
            jobs.fail_step(session, job_id, JobStatus.FETCHING, fetch.attempt, ExtractionFailed(), "test")
        if status in {JobStatus.FAILED, JobStatus.FETCHING}:
            return
        jobs.mark_fetched(session, job_id, fetch.attempt, PAGE, "test")
        claim = _claimed(claim_extraction(session, job_id, LEASE, "test"))
        if status is JobStatus.EXTRACTING:
            return
        jobs.mark_extracted(session, job_id, claim.attempt, Extraction.plain("Boats", TEXT), None, "test")
    if status in {JobStatus.GENERATING, JobStatus.SAVED}:
        job = drafts.begin_draft(app.tools, job_id, user, lease=LEASE)
        if status is JobStatus.SAVED:
            requests.finish_draft(app.tools, job, "test")


def _claimed(row: Any) -> Any:
    assert row, row
    return row


def jobs_in_every_state(app: App, user: UUID) -> dict[JobStatus, UUID]:
    made = {status: new_job(app, user) for status in REACHABLE}
    for status, job_id in made.items():
        walk_job_to(app, job_id, user, status)
    return made


def stories_of(app: App, job_id: UUID) -> list[Any]:
    with app.sessions.read() as session:
        return queries.drafts_of(session, job_id)


def stories_in_every_state(app: App, user: UUID) -> dict[story.StoryStatus, UUID]:
    return {status: new_story_in(app, user, status) for status in story.StoryStatus}


def new_story_in(app: App, user: UUID, status: story.StoryStatus) -> UUID:
    """A story of a job of its own, walked to a state."""
    job_id = new_job(app, user)
    walk_job_to(app, job_id, user, JobStatus.SAVED)
    (made,) = stories_of(app, job_id)
    for revision, verb in enumerate(verbs_to(story.STORY, status), start=1):
        with app.sessions.begin() as session:
            assert stories.walk_story(session, made.id, verb, revision, str(user))
    return made.id


def verbs_to(machine: Machine[S], target: S) -> list[str]:
    """The verbs of a shortest walk from the initial state to this one."""
    ways: dict[S, list[str]] = {machine.initial: []}
    while target not in ways:
        ways = {
            edge.target: [*verbs, edge.verb]
            for state, verbs in ways.items()
            for edge in machine
            if state in edge.sources
        } | ways
    return ways[target]


def subject_row(sessions: Sessions, subject: Subject[Any], row_id: UUID) -> Any:
    with sessions.read() as session:
        return session.first(_ROWS[subject], row_id=row_id)


def job_events(app: App, job_id: UUID) -> list[str]:
    return [entry.event for entry in history_of(app.sessions, job_id)]


def assert_job_replays(app: App, job_id: UUID) -> Any:
    """Check that its history is one walk to its state, with each attempt and story once."""
    job = _assert_replays(app, JOB_ROWS, job_id)
    begun = [entry.attempt for entry in history_of(app.sessions, job_id) if entry.event in BEGIN]
    assert begun == list(range(1, job.attempt + 1))
    made = stories_of(app, job_id)
    assert len(made) == job_events(app, job_id).count("saved")
    assert job.story_id in {None, *(one.id for one in made)}
    for one in made:
        _assert_replays(app, STORY_ROWS, one.id)
    return job


def _assert_replays(app: App, subject: Subject[Any], row_id: UUID) -> Any:
    edges = {edge.verb: edge for edge in subject.machine}
    state, entries = None, history_of(app.sessions, row_id)
    for entry in entries:
        assert entry.from_status == state, [tuple(entry) for entry in entries]
        if entry.event != "create":
            edge = edges[entry.event]
            assert entry.from_status in {source.value for source in edge.sources}
            assert entry.to_status == edge.target.value
        state = entry.to_status
    row = subject_row(app.sessions, subject, row_id)
    assert row.status == state
    return row


def force_job_into(sessions: Sessions, job_id: UUID, status: JobStatus) -> None:
    """Force a job into a state past the guards: one that only old rows have, or a distant one."""
    error = "E_ANY" if status is JobStatus.FAILED else None
    values = {"job_id": job_id, "put_status": status.value, "put_error": error}
    with sessions.begin() as session:
        if session.is_sqlite:
            guard = session.first(_GUARD).sql
            session.run(Statement(text("DROP TRIGGER jobs_status_edge")))
            session.run(_PUT_JOB, **values)
            session.run(Statement(text(guard)))
        else:
            session.run(Statement(text("SET LOCAL session_replication_role = replica")))
            session.run(_PUT_JOB, **values)
