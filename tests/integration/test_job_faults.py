"""What the death of a worker costs a job, whatever step it was at: time, and nothing else. In real processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from nexus.app import App
from nexus.db.moves import JOB_ROWS
from nexus.db.session import Row
from nexus.editorial import drafts, editing, jobs, steps
from nexus.states.job import Status
from nexus.upkeep import doctor, sweep
from nexus.upkeep.doctor import Patient, Verdict
from tests.editorial import pages
from tests.integration.test_generating import SAID
from tests.integration.test_whole_path import ARTICLE
from tests.job_walks import LEASE, assert_job_replays, job_events, new_job, put, row_of, stories_of
from tests.openai_server import Model, hangs, model, says
from tests.pages import Answer, Pages
from tests.processes import LONG_LEASE, Nexus, end_leases, eventually, fresh_postgres, installed
from tests.support import SetClock
from tests.walks import whole

__all__ = ["pages"]


@pytest.fixture
def server() -> Iterator[Model]:
    with model() as running:
        yield running


@pytest.fixture(params=["local", "celery"])
def nexus(request: pytest.FixtureRequest, tmp_path: Path, pages: Pages, server: Model) -> Iterator[Nexus]:
    """Threads on SQLite, as one person runs it; Celery on PostgreSQL, as a team does."""
    real = {
        "plugins": ("tests.held_reading",),
        "fetch_allow": (pages.place,),
        "fetch_delay_seconds": 0.0,
        "llm_base_url": server.url,
        "llm_api_key": "key",
        "llm_model": "test-model",
        "lease_seconds": LONG_LEASE,
        "fetch_seconds": 600.0,
    }
    with ExitStack() as stack:
        if request.param == "local":
            url, queue = request.getfixturevalue("sqlite_url"), {"queue": "local"}
        else:
            url = stack.enter_context(fresh_postgres(request.getfixturevalue("postgres_server_url")))
            queue = {"queue": "celery", "redis_url": request.getfixturevalue("redis_url")}
        yield stack.enter_context(installed(url, tmp_path, **real, **queue))


def left_to_fetch(nexus: Nexus, pages: Pages, path: str) -> UUID:
    pages[path] = Answer(ARTICLE.encode())
    job_id = new_job(nexus.app, uuid4(), pages.url(path))
    editing.leave_fetch(nexus.app.tools, job_id, "test")
    nexus.app.queue.announce(job_id, None)
    return job_id


def left_to_generate(nexus: Nexus) -> UUID:
    user = uuid4()
    job_id = new_job(nexus.app, user)
    put(nexus.app, job_id, user, Status.READY_TO_GENERATE)
    drafts.begin(nexus.app.tools, {}, job_id, user)
    nexus.app.queue.announce(job_id, None)
    return job_id


def kill_a_worker(nexus: Nexus, job_id: UUID, at_work: Callable[[], object]) -> None:
    """In the middle of its step. Its lease holds the job a while longer, as long as any lease, and then is over."""
    worker = nexus.worker()
    eventually(at_work, "a worker is at work")
    worker.kill()
    assert due(nexus) == []
    end_leases(nexus)
    assert due(nexus) == [job_id]


def due(nexus: Nexus) -> list[UUID]:
    with nexus.app.sessions.read() as session:
        return steps.due(session, 10)


def taken_up(nexus: Nexus, job_id: UUID, status: Status) -> Row:
    """The job when another worker has brought it this far, and has kept every promise on the way."""
    nexus.worker()
    app = nexus.app
    eventually(lambda: row_of(app.sessions, JOB_ROWS, job_id).status == status, f"it is {status}")
    job = assert_job_replays(app, job_id)
    assert (job.lease_expires_at, job.tries, job.error_code) == (None, 0, None)
    findings = doctor.examine(Patient(app.settings, app.sessions, app.tools.extractors, app.files))
    assert [finding for finding in findings if finding.verdict is Verdict.PROBLEM] == []
    return job


def test_a_fetch_whose_worker_is_killed_is_done_by_another(nexus: Nexus, pages: Pages) -> None:
    job_id = left_to_fetch(nexus, pages, "/held/boats")
    kill_a_worker(nexus, job_id, lambda: pages.asked)
    pages.gate.set()
    job = taken_up(nexus, job_id, Status.READY_TO_GENERATE)
    assert job_events(nexus.app, job_id) == [
        "create",
        *["fetch"] * 3,  # asked for, killed, done
        "fetched",
        "claim_extraction",
        "extracted",
    ]
    assert len(pages.asked) == 2
    assert_read_once(nexus, job)


def test_an_extraction_whose_worker_is_killed_is_done_by_another_without_a_fetch(
    nexus: Nexus, pages: Pages
) -> None:
    job_id = left_to_fetch(nexus, pages, "/gated/boats")
    kill_a_worker(nexus, job_id, nexus.starts)
    nexus.open_gate()
    job = taken_up(nexus, job_id, Status.READY_TO_GENERATE)
    assert job_events(nexus.app, job_id) == [
        "create",
        *["fetch"] * 2,
        "fetched",
        *["claim_extraction"] * 2,
        "extracted",
    ]
    assert len(pages.asked) == 1
    assert [start.attempt for start in nexus.starts()] == [job.attempt - 1, job.attempt]
    assert_read_once(nexus, job)


def assert_read_once(nexus: Nexus, job: Row) -> None:
    """Its article is one media with one text, and no story has come of it by itself."""
    assert (job.extracted_title, job.raw_html) == ("The harbour", None)
    article = whole(nexus.app.sessions, job.media_id)
    assert [entry.event for entry in article.history] == ["create", "start", "readable"]
    assert (len(article.texts), len(article.holders)) == (1, 1)
    assert stories_of(nexus.app, job.id) == []


def test_a_draft_whose_worker_is_killed_is_written_by_another_and_saved_once(
    nexus: Nexus, server: Model
) -> None:
    server.will(hangs, says(SAID))
    job_id = left_to_generate(nexus)
    kill_a_worker(nexus, job_id, lambda: server.asked)
    job = taken_up(nexus, job_id, Status.SAVED)
    assert job_events(nexus.app, job_id)[-4:] == [*["generate"] * 3, "saved"]
    (story,) = stories_of(nexus.app, job_id)
    assert (story.id, story.headline) == (job.story_id, SAID["headline"])
    assert len(server.asked) == 2


@pytest.mark.parametrize("status", [Status.FETCHING, Status.EXTRACTING, Status.GENERATING])
def test_a_step_whose_third_worker_is_lost_fails_and_is_taken_up_by_nobody(
    app: App, clock: SetClock, status: Status
) -> None:
    """Whoever looks first, a worker or the sweep."""
    user = uuid4()
    job_id = new_job(app, user)
    put(app, job_id, user, status)
    lose(app, clock, job_id, status, times=2)
    clock.forward(seconds=LEASE.total_seconds() + 1)
    assert not editing.run_next(app.tools)
    sweep.run(app.tools, app.queue)
    job = assert_job_replays(app, job_id)
    assert (job.status, job.error_code) == (Status.FAILED, "E_JOB_TIMEOUT")
    assert job.error_message.startswith(f"[{jobs.STEPS[status]}] ")


def lose(app: App, clock: SetClock, job_id: UUID, status: Status, *, times: int) -> None:
    """Taken up again by a worker who is lost, too."""
    take = {
        Status.FETCHING: jobs.start_fetch,
        Status.EXTRACTING: jobs.claim_extraction,
        Status.GENERATING: jobs.start_generating,
    }[status]
    for _ in range(times):
        clock.forward(seconds=LEASE.total_seconds() + 1)
        with app.sessions.begin() as session:
            assert steps.due(session, 10) == [job_id]
            assert take(session, job_id, LEASE, "test")


def test_a_draft_that_is_asked_for_again_has_all_its_tries_again(app: App, clock: SetClock) -> None:
    user = uuid4()
    job_id = new_job(app, user)
    put(app, job_id, user, Status.GENERATING)
    lose(app, clock, job_id, Status.GENERATING, times=2)
    clock.forward(seconds=LEASE.total_seconds() + 1)
    sweep.run(app.tools, app.queue)
    drafts.begin(app.tools, {}, job_id, user, again=True, lease=LEASE)
    lose(app, clock, job_id, Status.GENERATING, times=2)
