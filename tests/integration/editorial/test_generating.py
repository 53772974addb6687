"""From title and text to a saved story over HTTP: gated, once at a time, checked, and never written over."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import bindparam, select

from nexus.app import App
from nexus.db.session import Statement
from nexus.db.tables import usage
from nexus.draft import make_drafter
from nexus.editorial import drafts, jobs, requests, steps
from nexus.errors import InvalidState
from nexus.libraries.quota import Operation
from nexus.states.job import JobStatus
from tests.kit.articles import ARTICLE
from tests.kit.clock import SetClock
from tests.kit.http import Caller, Site, job_problem, serve
from tests.kit.job_calls import (
    QUOTE,
    SAID,
    TEXT,
    begin_job,
    call_step,
    enter_job,
    job_event_names,
    job_of,
    ready_job,
)
from tests.kit.jobs import LEASE, force_job_into
from tests.kit.servers.openai_api import Model, answers, fails, hangs, says
from tests.kit.servers.web_pages import Answer, Pages
from tests.kit.story_calls import story_with_history
from tests.kit.waiting import eventually
from tests.kit.work import steps_due, sweep, take_next_step

_USED = Statement(
    select(usage.c.amount).where(
        usage.c.user_id == bindparam("user_id"), usage.c.operation == bindparam("operation")
    )
)


@pytest.fixture
def database_url(clean_postgres: str) -> str:
    """PostgreSQL alone: drafts on SQLite are written by the tests of the pages."""
    return clean_postgres


@pytest.fixture
def app_with_model(app: App, llm: Model) -> App:
    return replace(app, tools=replace(app.tools, drafter=make_drafter(llm.url, "key", "test-model")))


@pytest.fixture
def site_with_model(app_with_model: App) -> Iterator[Site]:
    with serve(app_with_model) as running:
        yield running


@pytest.fixture
def me_with_model(site_with_model: Site) -> Caller:
    return site_with_model.caller()


def shown_story(me: Caller, story_id: str) -> dict[str, Any]:
    found: dict[str, Any] = story_with_history(me, story_id)["story"]
    return found


def used(app: App, user: UUID) -> list[int]:
    with app.sessions.read() as session:
        rows = session.all(_USED, user_id=user, operation=Operation.LLM_TOKENS.value)
    return [row.amount for row in rows]


def test_generating_saves_a_story_whose_claims_point_into_the_text(me: Caller, pages: Pages) -> None:
    job_id = ready_job(me, pages)
    job = job_of(call_step(me, job_id, "generate"))
    assert job["status"] == "SAVED"
    assert job["generatedAt"]
    story = shown_story(me, job["storyId"])
    assert (story["jobId"], story["status"], story["revision"]) == (job_id, "draft", 1)
    assert (story["model"], story["tokensUsed"]) == ("extractive", 0)
    assert story["articleText"] == job["extractedText"]
    assert story["sources"] == [{"title": job["extractedTitle"], "url": job["canonicalUrl"]}]
    claims = story["sections"]["whatHappened"] + story["sections"]["background"]
    for claim in claims:
        assert claim["supported"]
        assert story["articleText"][claim["start"] : claim["end"]] == claim["quote"]
    assert job_event_names(me, job_id)[-2:] == ["generate", "saved"]


def test_a_models_draft_marks_claims_that_the_article_does_not_make(
    app_with_model: App, me_with_model: Caller, llm: Model
) -> None:
    llm.will(says(SAID, tokens=321))
    job = job_of(call_step(me_with_model, enter_job(me_with_model), "generate"))
    story = shown_story(me_with_model, job["storyId"])
    first, second = story["sections"]["whatHappened"]
    assert story["articleText"][first["start"] : first["end"]] == QUOTE
    assert (second["supported"], second["start"], second["end"]) == (False, None, None)
    assert (story["model"], story["tokensUsed"], story["promptVersion"]) == ("test-model", 321, "story-2")
    assert used(app_with_model, me_with_model.user) == [321]


def test_the_caption_of_a_figure_is_drafted_as_no_claim(me: Caller, pages: Pages) -> None:
    caption = (
        "The harbour of the article: boats &amp; their sails on the first day of the year, in fine weather."
    )
    figure = f'<figure><img src="/a.jpg" alt="Boats"><figcaption>{caption}</figcaption></figure>'
    pages["/figure"] = Answer(ARTICLE.replace("<p>", f"{figure}<p>", 1).encode())
    job_id = begin_job(me, pages, "/figure")
    call_step(me, job_id, "fetch")
    job = job_of(call_step(me, job_id, "extract"))
    said = caption.replace("&amp;", "&")
    assert said in job["extractedText"]
    story = shown_story(me, job_of(call_step(me, job_id, "generate"))["storyId"])
    sections = story["sections"]
    claims = [claim["text"] for claim in sections["whatHappened"] + sections["background"]]
    assert claims
    assert said not in claims
    assert said not in story["summary"]


@pytest.mark.parametrize(
    "status", [JobStatus.QUEUED, JobStatus.FETCHING, JobStatus.EXTRACTING, JobStatus.FAILED]
)
def test_a_job_without_title_and_text_can_not_be_drafted_and_costs_nothing(
    app: App, me: Caller, pages: Pages, status: JobStatus
) -> None:
    job_id = begin_job(me, pages)
    force_job_into(app.sessions, UUID(job_id), status)
    before = me.get(f"/api/ingestion-jobs/{job_id}").json()
    for _ in range(3):
        assert job_problem(call_step(me, job_id, "generate")) == (409, "NOT_READY")
    assert me.get(f"/api/ingestion-jobs/{job_id}").json() == before


def test_an_old_job_in_the_retired_extracted_state_can_be_drafted(app: App, me: Caller) -> None:
    job_id = enter_job(me)
    force_job_into(app.sessions, UUID(job_id), JobStatus.EXTRACTED)
    assert job_of(call_step(me, job_id, "generate"))["status"] == "SAVED"


def test_a_job_is_drafted_at_most_once_in_five_seconds(me: Caller, clock: SetClock) -> None:
    job_id = enter_job(me)
    call_step(me, job_id, "generate")
    again = call_step(me, job_id, "generate")
    assert (job_problem(again), again.headers["retry-after"]) == ((429, "E_RATE_LIMITED"), "5")
    clock.forward(seconds=3.5)
    again = call_step(me, job_id, "regenerate")
    assert (job_problem(again), again.headers["retry-after"]) == ((429, "E_RATE_LIMITED"), "2")
    clock.forward(seconds=1.5)
    assert job_problem(call_step(me, job_id, "generate")) == (
        409,
        "E_INVALID_STATE",
    )  # and that costs nothing
    assert job_of(call_step(me, job_id, "regenerate"))["status"] == "SAVED"


def test_generating_does_not_steal_a_draft_that_is_being_written(
    app: App, me: Caller, clock: SetClock
) -> None:
    job_id = enter_job(me)
    drafts.begin_draft(app.tools, UUID(job_id), me.user, lease=LEASE)
    clock.forward(seconds=6)
    assert job_problem(call_step(me, job_id, "generate")) == (409, "E_INVALID_STATE")


def test_a_failed_draft_says_why_and_keeps_the_text(
    app_with_model: App, me_with_model: Caller, llm: Model, clock: SetClock
) -> None:
    job_id = enter_job(me_with_model)
    llm.will(fails(401))
    body = call_step(me_with_model, job_id, "generate").json()
    assert (body["success"], body["error"], body["job"]["status"]) == (
        False,
        "E_DRAFT_KEY_REFUSED",
        "FAILED",
    )
    assert body["message"].startswith("[GENERATE] ")
    assert body["message"] == body["job"]["errorMessage"]
    assert body["job"]["extractedText"] == TEXT
    assert job_problem(call_step(me_with_model, job_id, "retry")) == (409, "E_INVALID_STATE")
    clock.forward(seconds=6)
    llm.will(says(SAID))
    assert job_of(call_step(me_with_model, job_id, "regenerate"))["status"] == "SAVED"


def test_tokens_of_an_unusable_draft_are_counted(
    app_with_model: App, me_with_model: Caller, llm: Model
) -> None:
    llm.will(says("no", tokens=40), says("no again", tokens=50))
    assert (
        call_step(me_with_model, enter_job(me_with_model), "generate").json()["error"] == "E_DRAFT_UNUSABLE"
    )
    assert used(app_with_model, me_with_model.user) == [90]


def test_tokens_of_a_declined_draft_are_counted(
    app_with_model: App, me_with_model: Caller, llm: Model
) -> None:
    llm.will(says("", tokens=77, refusal="I would rather not."))
    assert (
        call_step(me_with_model, enter_job(me_with_model), "generate").json()["error"] == "E_DRAFT_UNUSABLE"
    )
    assert used(app_with_model, me_with_model.user) == [77]


def test_generating_stops_at_the_days_allowance(app_with_model: App, llm: Model) -> None:
    tools = replace(app_with_model.tools, limits={Operation.LLM_TOKENS: 100})
    limited = replace(app_with_model, tools=tools)
    with serve(limited) as running:
        me = running.caller()
        llm.will(says(SAID, tokens=100))
        assert job_of(call_step(me, enter_job(me), "generate"))["status"] == "SAVED"
        job_id = enter_job(me)
        assert job_problem(call_step(me, job_id, "generate")) == (429, "E_RATE_LIMITED")
        assert job_of(me.get(f"/api/ingestion-jobs/{job_id}"))["status"] == "READY_TO_GENERATE"
    assert len(llm.asked) == 1


def test_a_draft_whose_worker_is_lost_is_written_again_and_the_late_one_is_ignored(
    app: App, me: Caller, clock: SetClock
) -> None:
    job_id = UUID(enter_job(me))
    lost = drafts.begin_draft(app.tools, job_id, me.user, lease=LEASE)
    clock.forward(seconds=LEASE.total_seconds() + 1)
    sweep(app.tools, app.queue)
    clock.forward(seconds=app.settings.backoff_seconds)
    assert take_next_step(app.tools)
    job = job_of(me.get(f"/api/ingestion-jobs/{job_id}"))
    assert job["status"] == "SAVED"
    with pytest.raises(InvalidState):
        requests.finish_draft(app.tools, lost, "test")
    assert job_of(me.get(f"/api/ingestion-jobs/{job_id}")) == job
    assert len(me.get("/api/stories").json()["stories"]) == 1


def test_a_drafter_that_breaks_fails_the_job_with_a_sentence(app: App, me: Caller) -> None:
    class Broken:
        costs_tokens = False

        def draft(self, article: object, seconds: float) -> Any:
            raise RuntimeError(TEXT)

    job_id = UUID(enter_job(me))
    tools = replace(app.tools, drafter=Broken())
    job = drafts.begin_draft(tools, job_id, me.user, lease=LEASE)
    requests.finish_draft(tools, job, "test")
    shown = job_of(me.get(f"/api/ingestion-jobs/{job_id}"))
    assert (shown["status"], shown["errorCode"]) == ("FAILED", "E_DRAFT_FAILED")
    assert TEXT not in shown["errorMessage"]


def test_regenerating_keeps_the_earlier_draft(me: Caller, clock: SetClock) -> None:
    job_id = enter_job(me)
    first = job_of(call_step(me, job_id, "generate"))["storyId"]
    before = shown_story(me, first)
    clock.forward(seconds=6)
    second = job_of(call_step(me, job_id, "regenerate"))["storyId"]
    assert second != first
    assert shown_story(me, first) == before
    job = me.get(f"/api/ingestion-jobs/{job_id}").json()
    assert [draft["id"] for draft in job["stories"]] == [second, first]


def test_regenerating_a_job_without_a_story_is_refused(me: Caller, pages: Pages) -> None:
    assert job_problem(call_step(me, enter_job(me), "regenerate")) == (409, "E_INVALID_STATE")
    assert job_problem(call_step(me, begin_job(me, pages), "regenerate")) == (409, "NOT_READY")


def test_regenerating_a_failed_job_without_text_is_refused(me: Caller, pages: Pages) -> None:
    job_id = begin_job(me, pages, "/missing")
    call_step(me, job_id, "fetch")
    assert job_problem(call_step(me, job_id, "regenerate")) == (409, "NOT_READY")


def test_a_readable_item_becomes_a_job_without_a_fetch(me: Caller, pages: Pages) -> None:
    media_id = job_of(me.get(f"/api/ingestion-jobs/{ready_job(me, pages)}"))["mediaId"]
    job = job_of(me.post("/api/ingestion-jobs", json={"mediaId": media_id}))
    assert (job["status"], job["mediaId"], job["extractedTitle"]) == (
        "READY_TO_GENERATE",
        media_id,
        "The harbour",
    )
    assert QUOTE in job["extractedText"]
    assert job["canonicalUrl"] == pages.url("/boats")
    assert job_event_names(me, job["id"]) == ["create", "adopt"]
    assert len(pages.asked) == 1
    assert job_of(call_step(me, job["id"], "generate"))["status"] == "SAVED"


def test_an_item_that_is_not_readable_yet_can_not_become_a_job(me: Caller) -> None:
    media_id = me.add()
    assert job_problem(me.post("/api/ingestion-jobs", json={"mediaId": str(media_id)})) == (409, "NOT_READY")


def test_an_item_that_the_viewer_can_not_see_can_not_become_a_job(
    site: Site, me: Caller, pages: Pages
) -> None:
    media_id = job_of(me.get(f"/api/ingestion-jobs/{ready_job(me, pages)}"))["mediaId"]
    answer = site.caller().post("/api/ingestion-jobs", json={"mediaId": media_id})
    assert job_problem(answer) == (404, "E_NOT_FOUND")


@pytest.mark.parametrize("more", [{"url": "https://example.com/"}, {"title": "Boats"}, {"text": TEXT}])
def test_a_job_for_an_item_takes_no_address_or_text(me: Caller, more: dict[str, str]) -> None:
    answer = me.post("/api/ingestion-jobs", json={"mediaId": str(uuid4()), **more})
    assert job_problem(answer) == (400, "E_INVALID_REQUEST")


def test_retrying_an_error_makes_workers_repeat_every_job_that_failed_with_it(
    app: App, me: Caller, pages: Pages
) -> None:
    broken = [begin_job(me, pages, f"/later-{n}") for n in range(3)]
    other = begin_job(me, pages, "/boats")
    for job_id in (*broken, other):
        call_step(me, job_id, "fetch")
    for n in range(3):
        pages[f"/later-{n}"] = Answer(pages["/boats"].body)
    answer = me.post("/api/ingestion-jobs/failed/retry", json={"errorCode": "E_FETCH_HTTP_4XX"})
    assert set(answer.json()["jobIds"]) == set(broken)
    while take_next_step(app.tools):
        pass
    for job_id in broken:
        assert job_of(me.get(f"/api/ingestion-jobs/{job_id}"))["status"] == "READY_TO_GENERATE"
    assert "retry" not in job_event_names(me, other)


def test_a_failed_draft_is_written_again_without_a_fetch(
    app_with_model: App, me_with_model: Caller, llm: Model, clock: SetClock
) -> None:
    job_id = enter_job(me_with_model)
    llm.will(fails(500))
    call_step(me_with_model, job_id, "generate")
    clock.forward(seconds=6)
    body = {"errorCode": "E_DRAFT_UNREACHABLE"}
    assert me_with_model.post("/api/ingestion-jobs/failed/retry", json=body).json()["jobIds"] == [job_id]
    llm.will(says(SAID))
    assert take_next_step(app_with_model.tools)
    assert job_of(me_with_model.get(f"/api/ingestion-jobs/{job_id}"))["status"] == "SAVED"


def test_retrying_an_error_leaves_other_users_jobs_alone(site: Site, me: Caller, pages: Pages) -> None:
    call_step(me, begin_job(me, pages, "/missing"), "fetch")
    body = {"errorCode": "E_FETCH_HTTP_4XX"}
    assert site.caller().post("/api/ingestion-jobs/failed/retry", json=body).json()["jobIds"] == []


@pytest.mark.parametrize(
    ("step", "code"),
    [
        (fails(429, Retry_After="7"), "E_DRAFT_RATE_LIMITED"),
        (fails(500), "E_DRAFT_UNREACHABLE"),
        (answers(200, "<html>"), "E_DRAFT_UNUSABLE"),
    ],
)
def test_an_error_of_the_model_is_reported_and_asking_again_helps(
    me_with_model: Caller, llm: Model, clock: SetClock, step: Any, code: str
) -> None:
    job_id = enter_job(me_with_model)
    llm.will(step)
    body = call_step(me_with_model, job_id, "generate").json()
    assert (body["success"], body["error"]) == (False, code)
    clock.forward(seconds=6)
    llm.will(says(json.dumps(SAID)))
    assert job_of(call_step(me_with_model, job_id, "regenerate"))["status"] == "SAVED"


def test_handing_a_step_over_to_a_worker_does_not_count_as_a_lost_worker(
    app: App, me: Caller, pages: Pages
) -> None:
    job_id = UUID(begin_job(me, pages))
    steps.leave_fetch(app.tools, job_id, "test")
    assert steps_due(app.tools) == [job_id]
    assert take_next_step(app.tools)
    with app.sessions.read() as session:
        assert jobs.find_job(session, job_id).tries == 0


def test_requests_that_wait_for_a_model_do_not_block_others(
    site_with_model: Site, me_with_model: Caller, llm: Model
) -> None:
    crowd = 48  # more than the threads that answer everything else
    llm.will(*[hangs] * crowd)
    made = [enter_job(me_with_model) for _ in range(crowd)]
    with ThreadPoolExecutor(crowd) as threads:
        waiting = [threads.submit(call_step, me_with_model, job_id, "generate") for job_id in made]
        share = site_with_model.app.settings.slow_calls_per_user
        eventually(lambda: len(llm.asked) == share, "the model is asked as often as one user may")
        assert site_with_model.caller(me_with_model.user).get("/libraries").status_code == 200
        llm.over.set()
        assert {answer.result().json()["error"] for answer in waiting} == {"E_DRAFT_UNREACHABLE"}
