"""What the death of a worker costs a job, whatever step it was at: time, and nothing else. In real processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from nexus.app import App
from nexus.db.moves import JOB_ROWS
from nexus.editorial import drafts, jobs, step_claims, steps
from nexus.editorial.steps import STEP
from nexus.queue import Work
from nexus.states.job import JobStatus
from nexus.upkeep import doctor
from nexus.upkeep.doctor import CheckVerdict, Patient
from tests.kit.articles import ARTICLE
from tests.kit.clock import SetClock
from tests.kit.databases import copied_postgres
from tests.kit.installation import LONG_LEASE, Nexus, end_leases, installed
from tests.kit.job_calls import SAID
from tests.kit.jobs import (
    LEASE,
    assert_job_replays,
    job_events,
    new_job,
    stories_of,
    subject_row,
    walk_job_to,
)
from tests.kit.media import everything_of
from tests.kit.servers.openai_api import Model, hangs, says
from tests.kit.servers.web_pages import Answer, Pages
from tests.kit.waiting import eventually
from tests.kit.work import steps_due, sweep, take_next_step


@pytest.fixture(params=["local", "celery"])
def nexus(request: pytest.FixtureRequest, tmp_path: Path, pages: Pages, llm: Model) -> Iterator[Nexus]:
    """Threads on SQLite, as one person runs it; Celery on PostgreSQL, as a team does."""
    real = {
        "plugins": ("tests.kit.plugins.gated_articles",),
        "fetch_allow": (pages.place,),
        "fetch_delay_seconds": 0.0,
        "llm_base_url": llm.url,
        "llm_api_key": "key",
        "llm_model": "test-model",
        "lease_seconds": LONG_LEASE,
        "fetch_seconds": 600.0,
    }
    with ExitStack() as stack:
        if request.param == "local":
            url, queue = request.getfixturevalue("sqlite_url"), {"queue": "local"}
        else:
            url = stack.enter_context(copied_postgres(request.getfixturevalue("postgres_template")))
            queue = {"queue": "celery", "redis_url": request.getfixturevalue("redis_url")}
        yield stack.enter_context(installed(url, tmp_path, **real, **queue))


def left_to_fetch(nexus: Nexus, pages: Pages, path: str) -> UUID:
    pages[path] = Answer(ARTICLE.encode())
    job_id = new_job(nexus.app, uuid4(), pages.url(path))
    steps.leave_fetch(nexus.app.tools, job_id, "test")
    nexus.app.queue.announce(Work(STEP, job_id))
    return job_id


def left_to_generate(nexus: Nexus) -> UUID:
    user = uuid4()
    job_id = new_job(nexus.app, user)
    walk_job_to(nexus.app, job_id, user, JobStatus.READY_TO_GENERATE)
    drafts.begin_draft(nexus.app.tools, job_id, user)
    nexus.app.queue.announce(Work(STEP, job_id))
    return job_id


def kill_a_worker(nexus: Nexus, job_id: UUID, at_work: Callable[[], object]) -> None:
    """Kill the worker in the middle of its step; its lease then runs out like any other."""
    worker = nexus.worker()
    eventually(at_work, "a worker is at work")
    worker.kill()
    assert steps_due(nexus.app.tools) == []
    assert sweep(nexus.app.tools, nexus.app.queue).released == 0
    end_leases(nexus)
    assert sweep(nexus.app.tools, nexus.app.queue).released == 1


def taken_up(nexus: Nexus, job_id: UUID, status: JobStatus) -> Any:
    """The job once another worker has brought it this far; checks every promise on the way."""
    nexus.worker()
    app = nexus.app
    eventually(lambda: subject_row(app.sessions, JOB_ROWS, job_id).status == status, f"it is {status}")
    job = assert_job_replays(app, job_id)
    assert (job.lease_expires_at, job.tries, job.error_code) == (None, 0, None)
    findings = doctor.examine(Patient(app.settings, app.sessions, app.tools.extractors, app.files))
    assert [finding for finding in findings if finding.verdict is CheckVerdict.PROBLEM] == []
    return job


def test_a_fetch_whose_worker_is_killed_is_done_by_another(nexus: Nexus, pages: Pages) -> None:
    job_id = left_to_fetch(nexus, pages, "/held/boats")
    kill_a_worker(nexus, job_id, lambda: pages.asked)
    pages.gate.set()
    job = taken_up(nexus, job_id, JobStatus.READY_TO_GENERATE)
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
    job = taken_up(nexus, job_id, JobStatus.READY_TO_GENERATE)
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


def assert_read_once(nexus: Nexus, job: Any) -> None:
    """Its article is one media with one text, and no story was made unasked."""
    assert (job.extracted_title, job.raw_html) == ("The harbour", None)
    article = everything_of(nexus.app.sessions, job.media_id)
    assert [entry.event for entry in article.history] == ["create", "start", "readable"]
    assert (len(article.texts), len(article.holders)) == (1, 1)
    assert stories_of(nexus.app, job.id) == []


def test_a_draft_whose_worker_is_killed_is_written_by_another_and_saved_once(
    nexus: Nexus, llm: Model
) -> None:
    llm.will(hangs, says(SAID))
    job_id = left_to_generate(nexus)
    kill_a_worker(nexus, job_id, lambda: llm.asked)
    job = taken_up(nexus, job_id, JobStatus.SAVED)
    assert job_events(nexus.app, job_id)[-4:] == [*["generate"] * 3, "saved"]
    (story,) = stories_of(nexus.app, job_id)
    assert (story.id, story.headline) == (job.story_id, SAID["headline"])
    assert len(llm.asked) == 2


@pytest.mark.parametrize("status", [JobStatus.FETCHING, JobStatus.EXTRACTING, JobStatus.GENERATING])
def test_a_step_that_loses_its_third_worker_fails_for_good(
    app: App, clock: SetClock, status: JobStatus
) -> None:
    user = uuid4()
    job_id = new_job(app, user)
    walk_job_to(app, job_id, user, status)
    lose(app, clock, job_id, status, times=2)
    clock.forward(seconds=LEASE.total_seconds() + 1)
    assert not take_next_step(app.tools)
    sweep(app.tools, app.queue)
    assert not take_next_step(app.tools)
    job = assert_job_replays(app, job_id)
    assert (job.status, job.error_code) == (JobStatus.FAILED, "E_JOB_TIMEOUT")
    assert job.error_message.startswith(f"[{jobs.STEPS[status]}] ")


def lose(app: App, clock: SetClock, job_id: UUID, status: JobStatus, *, times: int) -> None:
    """Taken up again by a worker that is lost, too."""
    for _ in range(times):
        clock.forward(seconds=LEASE.total_seconds() + 1)
        assert sweep(app.tools, app.queue).released == 1
        clock.forward(seconds=4 * app.settings.backoff_seconds)
        assert steps_due(app.tools) == [job_id]
        with app.sessions.begin() as session:
            assert step_claims.begin_step(session, job_id, status, LEASE, "test")


def test_a_draft_that_is_requested_again_has_all_its_tries(app: App, clock: SetClock) -> None:
    user = uuid4()
    job_id = new_job(app, user)
    walk_job_to(app, job_id, user, JobStatus.GENERATING)
    lose(app, clock, job_id, JobStatus.GENERATING, times=2)
    clock.forward(seconds=LEASE.total_seconds() + 1)
    sweep(app.tools, app.queue)
    drafts.begin_draft(app.tools, job_id, user, again=True, lease=LEASE)
    lose(app, clock, job_id, JobStatus.GENERATING, times=2)
