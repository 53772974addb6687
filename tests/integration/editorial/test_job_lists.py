"""Lists of jobs: complete, in order, quick however many there are, and without the jobs that were removed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import bindparam, insert, text

from nexus.app import App
from nexus.db.editorial import jobs as jobs_table
from nexus.db.session import Statement
from nexus.editorial import job_lists, jobs, requests
from nexus.errors import ExtractionFailed, NotFound
from nexus.libraries import access, catalog
from nexus.media.queries import WALKS
from nexus.states.job import HELD, JobStatus
from nexus.upkeep import doctor
from tests.kit.databases import plan_of
from tests.kit.http import Caller, job_problem
from tests.kit.job_calls import call_step
from tests.kit.jobs import jobs_in_every_state, new_job, stories_of, walk_job_to
from tests.kit.story_calls import draft_story, story_with_history

_COLUMNS = ("id", "created_by_user_id", "library_id", "created_at", "updated_at")
_MANY = Statement(insert(jobs_table).values({jobs_table.c[name]: bindparam(name) for name in _COLUMNS}))
#: So many that reading them all is dearer than any index.
CROWD = 3000


def queue_many(app: App, user: UUID, library: UUID, count: int) -> None:
    with app.sessions.begin() as session:
        rows = []
        for place in range(count):
            at = session.now - timedelta(minutes=place)
            rows.append(dict(zip(_COLUMNS, (uuid4(), user, library, at, at), strict=True)))
        session.run_many(_MANY, rows)


def user_with_libraries(app: App, count: int) -> tuple[UUID, list[UUID]]:
    """Somebody who administers their default library and so many others."""
    user = uuid4()
    with app.sessions.begin() as session:
        default = access.ensure_user(session, user)
        made = [catalog.create_library(session, user, f"Library {place}") for place in range(count)]
    return user, [default, *made]


def walked(app: App, user: UUID, most: int = 7) -> list[UUID]:
    """The whole list, page by page."""
    found: list[UUID] = []
    cursor = None
    while True:
        with app.sessions.read() as session:
            page = job_lists.newest_jobs(session, user, cursor=cursor, most=most)
        found += [row.id for row in page.items]
        cursor = page.next_cursor
        if cursor is None:
            return found


@pytest.mark.parametrize("libraries", [1, WALKS + 1])
def test_a_list_has_each_job_of_one_s_own_and_of_administered_libraries_once(
    app: App, libraries: int
) -> None:
    me, mine = user_with_libraries(app, libraries)
    you, yours = user_with_libraries(app, 0)
    queue_many(app, me, mine[0], 10)
    queue_many(app, you, mine[-1], 10)
    queue_many(app, me, mine[-1], 10)
    queue_many(app, you, yours[0], 10)
    found = walked(app, me)
    assert len(found) == len(set(found)) == 30
    with app.sessions.read() as session:
        newest = job_lists.newest_jobs(session, me, most=30).items
        assert [row.id for row in newest] == found
        assert [row.created_at for row in newest] == sorted((row.created_at for row in newest), reverse=True)
        assert len(job_lists.newest_jobs(session, me, status=JobStatus.QUEUED, most=50).items) == 30
        assert job_lists.newest_jobs(session, me, status=JobStatus.SAVED).items == []
        assert job_lists.newest_jobs(session, me, error_code="E_FETCH_FAILED").items == []


def test_no_list_of_jobs_reads_all_of_them(app: App) -> None:
    me, (default, other) = user_with_libraries(app, 1)
    you, yours = user_with_libraries(app, 0)
    for user, library in ((me, default), (you, other), (you, yours[0])):
        queue_many(app, user, library, CROWD)
    owners = {"viewer": me, "library_0": default, "library_1": other}
    with app.sessions.begin() as session:
        session.run(Statement(text("ANALYZE")))
    with app.sessions.read() as session:
        place = {"created_at": session.now - timedelta(hours=9), "id": uuid4()}
        chosen = {"wanted": JobStatus.QUEUED.value}
        plans = {
            "first": plan_of(session, job_lists._listing(3, False, False, False, 51), **owners),
            "deep": plan_of(session, job_lists._listing(3, False, False, True, 51), **owners, **place),
            "by status": plan_of(session, job_lists._listing(3, True, False, False, 51), **owners, **chosen),
            "failures": plan_of(session, job_lists._failures(3), **owners),
        }
    for what, plan in plans.items():
        assert "Seq Scan on jobs" not in plan, (what, plan)
        assert "SCAN jobs" not in plan, (what, plan)
        assert "ix_jobs_creator" in plan, (what, plan)
        assert "ix_jobs_library" in plan, (what, plan)


def test_a_removed_job_is_gone_and_its_stories_stay(me: Caller, you: Caller) -> None:
    story = draft_story(me)
    job_id = story_with_history(me, story)["story"]["jobId"]
    assert job_problem(you.delete(f"/api/ingestion-jobs/{job_id}")) == (404, "E_NOT_FOUND")
    removed = me.delete(f"/api/ingestion-jobs/{job_id}")
    assert (removed.status_code, removed.json()) == (200, {"success": True, "jobId": job_id})
    for gone in (
        me.get(f"/api/ingestion-jobs/{job_id}"),
        me.delete(f"/api/ingestion-jobs/{job_id}"),
        call_step(me, job_id, "regenerate"),
    ):
        assert job_problem(gone) == (404, "E_NOT_FOUND")
    assert me.get("/api/ingestion-jobs").json()["jobs"] == []
    assert story_with_history(me, story)["story"]["id"] == story
    assert [one["id"] for one in me.get("/api/stories").json()["stories"]] == [story]


def test_a_job_can_be_removed_in_every_state_and_all_is_well_afterwards(app: App) -> None:
    user = uuid4()
    made = jobs_in_every_state(app, user)
    held = {status: job_of_state(app, made[status]) for status in HELD}
    requests.remove_jobs(app.tools, user, list(made.values()))
    assert walked(app, user) == []
    with app.sessions.read() as session:
        assert job_lists.count_failures(session, user) == []
    assert stories_of(app, made[JobStatus.SAVED])
    for status, job in held.items():
        with app.sessions.begin() as session:
            assert not jobs.fail_step(session, job.id, status, job.attempt, ExtractionFailed(), "late"), (
                status
            )
    patient = doctor.Patient(app.settings, app.sessions, app.tools.extractors, app.files)
    asked = [
        finding for finding in doctor.examine(patient) if finding.name.startswith(("jobs.", "stor", "hist"))
    ]
    assert doctor.is_healthy(asked), asked


def job_of_state(app: App, job_id: UUID) -> Any:
    with app.sessions.read() as session:
        return jobs.find_job(session, job_id)


def test_of_several_jobs_either_all_are_removed_or_none(app: App) -> None:
    user = uuid4()
    job_id = new_job(app, user)
    with pytest.raises(NotFound):
        requests.remove_jobs(app.tools, user, [job_id, uuid4()])
    assert walked(app, user) == [job_id]


def test_selected_jobs_that_failed_are_retried_and_others_stay(app: App) -> None:
    user = uuid4()
    failed, waiting = new_job(app, user), new_job(app, user)
    walk_job_to(app, failed, user, JobStatus.FAILED)
    assert requests.retry_jobs(app.tools, app.queue, user, [failed, waiting]) == [failed]
    with app.sessions.read() as session:
        states = [jobs.job_state(session, one) for one in (failed, waiting)]
    assert [state and state.status for state in states] == [JobStatus.FETCHING, JobStatus.QUEUED]
