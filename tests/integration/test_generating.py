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
from nexus.draft import drafter
from nexus.editorial import drafts, editing, jobs, steps
from nexus.errors import InvalidState
from nexus.libraries.quota import Operation
from nexus.states.job import Status
from tests.editorial import (
    TEXT,
    app,
    begin,
    call,
    entered,
    events,
    job_of,
    me,
    pages,
    parsers,
    ready,
    site,
)
from tests.http import Caller, Site, refused, serve
from tests.job_walks import LEASE
from tests.openai_server import Model, answers, fails, hangs, model, says
from tests.pages import Answer, Pages
from tests.processes import eventually
from tests.support import SetClock, put_job

__all__ = ["app", "me", "pages", "parsers", "site"]

QUOTE = TEXT.split(". ")[0]
SAID = {
    "headline": "Boats leave the harbour again",
    "summary": "After a long winter the boats have left the harbour again, and the town has come to see them.",
    "what_happened": [
        {"text": "The boats have left the harbour.", "quote": QUOTE},
        {"text": "The mayor waved a flag at them.", "quote": "The mayor waved a large flag from the pier"},
    ],
    "background": [],
}
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
def server() -> Iterator[Model]:
    with model() as running:
        yield running


@pytest.fixture
def app_with_model(app: App, server: Model) -> App:
    return replace(app, tools=replace(app.tools, drafter=drafter(server.url, "key", "test-model")))


@pytest.fixture
def writing(app_with_model: App) -> Iterator[Site]:
    with serve(app_with_model) as running:
        yield running


@pytest.fixture
def editor(writing: Site) -> Caller:
    return writing.caller()


def story_of(me: Caller, story_id: str) -> dict[str, Any]:
    answer = me.get(f"/api/stories/{story_id}")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()["story"]
    return found


def used(app: App, user: UUID) -> list[int]:
    with app.sessions.read() as session:
        rows = session.all(_USED, user_id=user, operation=Operation.LLM_TOKENS.value)
    return [row.amount for row in rows]


class TestGenerate:
    def test_saves_a_story_whose_claims_point_into_the_text(self, me: Caller, pages: Pages) -> None:
        job_id = ready(me, pages)
        job = job_of(call(me, job_id, "generate"))
        assert job["status"] == "SAVED"
        assert job["generatedAt"]
        story = story_of(me, job["storyId"])
        assert (story["jobId"], story["status"], story["revision"]) == (job_id, "draft", 1)
        assert (story["model"], story["tokensUsed"]) == ("extractive", 0)
        assert story["articleText"] == job["extractedText"]
        assert story["sources"] == [{"title": job["extractedTitle"], "url": job["canonicalUrl"]}]
        claims = story["sections"]["whatHappened"] + story["sections"]["background"]
        for claim in claims:
            assert claim["supported"]
            assert story["articleText"][claim["start"] : claim["end"]] == claim["quote"]
        assert events(me, job_id)[-2:] == ["generate", "saved"]

    def test_by_a_model_marks_what_the_article_does_not_say(
        self, app_with_model: App, editor: Caller, server: Model
    ) -> None:
        server.will(says(SAID, tokens=321))
        job = job_of(call(editor, entered(editor), "generate"))
        story = story_of(editor, job["storyId"])
        first, second = story["sections"]["whatHappened"]
        assert story["articleText"][first["start"] : first["end"]] == QUOTE
        assert (second["supported"], second["start"], second["end"]) == (False, None, None)
        assert (story["model"], story["tokensUsed"], story["promptVersion"]) == ("test-model", 321, "story-1")
        assert used(app_with_model, editor.user) == [321]

    @pytest.mark.parametrize("status", [Status.QUEUED, Status.FETCHING, Status.EXTRACTING, Status.FAILED])
    def test_without_title_and_text_is_not_ready_and_uses_nothing_up(
        self, app: App, me: Caller, pages: Pages, status: Status
    ) -> None:
        job_id = begin(me, pages)
        put_job(app.sessions, UUID(job_id), status)
        before = me.get(f"/api/ingestion-jobs/{job_id}").json()
        for _ in range(3):
            assert refused(call(me, job_id, "generate")) == (409, "NOT_READY")
        assert me.get(f"/api/ingestion-jobs/{job_id}").json() == before

    def test_of_an_old_row_that_is_extracted_works(self, app: App, me: Caller) -> None:
        job_id = entered(me)
        put_job(app.sessions, UUID(job_id), Status.EXTRACTED)
        assert job_of(call(me, job_id, "generate"))["status"] == "SAVED"

    def test_once_in_five_seconds_and_says_when(self, me: Caller, clock: SetClock) -> None:
        job_id = entered(me)
        call(me, job_id, "generate")
        again = call(me, job_id, "generate")
        assert (refused(again), again.headers["retry-after"]) == ((429, "E_RATE_LIMITED"), "5")
        clock.forward(seconds=3.5)
        again = call(me, job_id, "regenerate")
        assert (refused(again), again.headers["retry-after"]) == ((429, "E_RATE_LIMITED"), "2")
        clock.forward(seconds=1.5)
        assert refused(call(me, job_id, "generate")) == (409, "E_INVALID_STATE")  # and that uses nothing up
        assert job_of(call(me, job_id, "regenerate"))["status"] == "SAVED"

    def test_does_not_steal_a_draft_that_is_being_written(
        self, app: App, me: Caller, clock: SetClock
    ) -> None:
        job_id = entered(me)
        drafts.begin(app.tools, {}, UUID(job_id), me.user, lease=LEASE)
        clock.forward(seconds=6)
        assert refused(call(me, job_id, "generate")) == (409, "E_INVALID_STATE")

    def test_that_fails_says_why_and_keeps_the_text(
        self, app_with_model: App, editor: Caller, server: Model, clock: SetClock
    ) -> None:
        job_id = entered(editor)
        server.will(fails(401))
        body = call(editor, job_id, "generate").json()
        assert (body["success"], body["error"], body["job"]["status"]) == (
            False,
            "E_DRAFT_KEY_REFUSED",
            "FAILED",
        )
        assert body["message"].startswith("[GENERATE] ")
        assert body["message"] == body["job"]["errorMessage"]
        assert body["job"]["extractedText"] == TEXT
        assert refused(call(editor, job_id, "retry")) == (409, "E_INVALID_STATE")
        clock.forward(seconds=6)
        server.will(says(SAID))
        assert job_of(call(editor, job_id, "regenerate"))["status"] == "SAVED"

    def test_counts_the_tokens_of_what_could_not_be_used(
        self, app_with_model: App, editor: Caller, server: Model
    ) -> None:
        server.will(says("no", tokens=40), says("no again", tokens=50))
        assert call(editor, entered(editor), "generate").json()["error"] == "E_DRAFT_UNUSABLE"
        assert used(app_with_model, editor.user) == [90]

    def test_counts_the_tokens_of_what_the_model_declined(
        self, app_with_model: App, editor: Caller, server: Model
    ) -> None:
        server.will(says("", tokens=77, refusal="I would rather not."))
        assert call(editor, entered(editor), "generate").json()["error"] == "E_DRAFT_UNUSABLE"
        assert used(app_with_model, editor.user) == [77]

    def test_stops_at_the_days_allowance(self, app_with_model: App, server: Model) -> None:
        limited = replace(app_with_model, limits={Operation.LLM_TOKENS: 100})
        with serve(limited) as running:
            me = running.caller()
            server.will(says(SAID, tokens=100))
            assert job_of(call(me, entered(me), "generate"))["status"] == "SAVED"
            job_id = entered(me)
            assert refused(call(me, job_id, "generate")) == (429, "E_RATE_LIMITED")
            assert job_of(me.get(f"/api/ingestion-jobs/{job_id}"))["status"] == "READY_TO_GENERATE"
        assert len(server.asked) == 1

    def test_is_taken_up_again_when_its_worker_is_lost_and_a_late_draft_changes_nothing(
        self, app: App, me: Caller, clock: SetClock
    ) -> None:
        job_id = UUID(entered(me))
        lost = drafts.begin(app.tools, {}, job_id, me.user, lease=LEASE)
        clock.forward(seconds=LEASE.total_seconds() + 1)
        assert editing.run_next(app.tools)
        job = job_of(me.get(f"/api/ingestion-jobs/{job_id}"))
        assert job["status"] == "SAVED"
        with pytest.raises(InvalidState):
            drafts.write(app.tools, lost, "test")
        assert job_of(me.get(f"/api/ingestion-jobs/{job_id}")) == job
        assert len(me.get("/api/stories").json()["stories"]) == 1

    def test_a_drafter_that_breaks_fails_the_job_with_a_sentence(self, app: App, me: Caller) -> None:
        class Broken:
            costs_tokens = False

            def draft(self, article: object, seconds: float) -> Any:
                raise RuntimeError(TEXT)

        job_id = UUID(entered(me))
        tools = replace(app.tools, drafter=Broken())
        job = drafts.begin(tools, {}, job_id, me.user, lease=LEASE)
        drafts.write(tools, job, "test")
        shown = job_of(me.get(f"/api/ingestion-jobs/{job_id}"))
        assert (shown["status"], shown["errorCode"]) == ("FAILED", "E_DRAFT_FAILED")
        assert TEXT not in shown["errorMessage"]


class TestRegenerate:
    def test_keeps_the_earlier_draft(self, me: Caller, clock: SetClock) -> None:
        job_id = entered(me)
        first = job_of(call(me, job_id, "generate"))["storyId"]
        before = story_of(me, first)
        clock.forward(seconds=6)
        second = job_of(call(me, job_id, "regenerate"))["storyId"]
        assert second != first
        assert story_of(me, first) == before
        job = me.get(f"/api/ingestion-jobs/{job_id}").json()
        assert [draft["id"] for draft in job["stories"]] == [second, first]

    def test_of_what_has_no_story_yet_is_refused(self, me: Caller, pages: Pages) -> None:
        assert refused(call(me, entered(me), "regenerate")) == (409, "E_INVALID_STATE")
        assert refused(call(me, begin(me, pages), "regenerate")) == (409, "NOT_READY")

    def test_of_a_failure_without_a_text_is_not_ready(self, me: Caller, pages: Pages) -> None:
        job_id = begin(me, pages, "/missing")
        call(me, job_id, "fetch")
        assert refused(call(me, job_id, "regenerate")) == (409, "NOT_READY")


class TestAdopt:
    def test_a_readable_media_becomes_a_job_with_its_text_and_no_fetch(
        self, me: Caller, pages: Pages
    ) -> None:
        media_id = job_of(me.get(f"/api/ingestion-jobs/{ready(me, pages)}"))["mediaId"]
        job = job_of(me.post("/api/ingestion-jobs", json={"mediaId": media_id}))
        assert (job["status"], job["mediaId"], job["extractedTitle"]) == (
            "READY_TO_GENERATE",
            media_id,
            "The harbour",
        )
        assert QUOTE in job["extractedText"]
        assert job["canonicalUrl"] == pages.url("/boats")
        assert events(me, job["id"]) == ["create", "adopt"]
        assert len(pages.asked) == 1
        assert job_of(call(me, job["id"], "generate"))["status"] == "SAVED"

    def test_what_can_not_be_read_yet_is_refused(self, me: Caller) -> None:
        media_id = me.add()
        assert refused(me.post("/api/ingestion-jobs", json={"mediaId": str(media_id)})) == (409, "NOT_READY")

    def test_what_is_not_the_viewers_does_not_exist(self, site: Site, me: Caller, pages: Pages) -> None:
        media_id = job_of(me.get(f"/api/ingestion-jobs/{ready(me, pages)}"))["mediaId"]
        answer = site.caller().post("/api/ingestion-jobs", json={"mediaId": media_id})
        assert refused(answer) == (404, "E_NOT_FOUND")

    @pytest.mark.parametrize("more", [{"url": "https://example.com/"}, {"title": "Boats"}, {"text": TEXT}])
    def test_with_anything_else_is_refused(self, me: Caller, more: dict[str, str]) -> None:
        answer = me.post("/api/ingestion-jobs", json={"mediaId": str(uuid4()), **more})
        assert refused(answer) == (400, "E_INVALID_REQUEST")


class TestRetryingByError:
    def test_everything_that_failed_with_it_is_done_again_by_workers(
        self, app: App, me: Caller, pages: Pages
    ) -> None:
        broken = [begin(me, pages, f"/later-{n}") for n in range(3)]
        other = begin(me, pages, "/boats")
        for job_id in (*broken, other):
            call(me, job_id, "fetch")
        for n in range(3):
            pages[f"/later-{n}"] = Answer(pages["/boats"].body)
        answer = me.post("/api/ingestion-jobs/failed/retry", json={"errorCode": "E_FETCH_HTTP_4XX"})
        assert set(answer.json()["jobIds"]) == set(broken)
        while editing.run_next(app.tools):
            pass
        for job_id in broken:
            assert job_of(me.get(f"/api/ingestion-jobs/{job_id}"))["status"] == "READY_TO_GENERATE"
        assert "retry" not in events(me, other)

    def test_a_draft_that_failed_is_written_again_without_a_fetch(
        self, app_with_model: App, editor: Caller, server: Model, clock: SetClock
    ) -> None:
        job_id = entered(editor)
        server.will(fails(500))
        call(editor, job_id, "generate")
        clock.forward(seconds=6)
        body = {"errorCode": "E_DRAFT_UNREACHABLE"}
        assert editor.post("/api/ingestion-jobs/failed/retry", json=body).json()["jobIds"] == [job_id]
        server.will(says(SAID))
        assert editing.run_next(app_with_model.tools)
        assert job_of(editor.get(f"/api/ingestion-jobs/{job_id}"))["status"] == "SAVED"

    def test_of_others_is_left_alone(self, site: Site, me: Caller, pages: Pages) -> None:
        call(me, begin(me, pages, "/missing"), "fetch")
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
def test_a_bad_day_of_the_model_is_told_and_mended_by_asking_again(
    editor: Caller, server: Model, clock: SetClock, step: Any, code: str
) -> None:
    job_id = entered(editor)
    server.will(step)
    body = call(editor, job_id, "generate").json()
    assert (body["success"], body["error"]) == (False, code)
    clock.forward(seconds=6)
    server.will(says(json.dumps(SAID)))
    assert job_of(call(editor, job_id, "regenerate"))["status"] == "SAVED"


def test_the_hand_over_to_a_worker_is_not_counted_as_a_lost_one(app: App, me: Caller, pages: Pages) -> None:
    job_id = UUID(begin(me, pages))
    editing.leave_fetch(app.tools, job_id, "test")
    with app.sessions.read() as session:
        assert steps.due(session, 10) == [job_id]
    assert editing.run_next(app.tools)
    with app.sessions.read() as session:
        assert jobs.get(session, job_id).tries == 0


def test_whoever_waits_for_a_model_keeps_nobody_else_from_being_answered(
    writing: Site, editor: Caller, server: Model
) -> None:
    crowd = 48  # more than the threads that answer everything else
    server.will(*[hangs] * crowd)
    made = [entered(editor) for _ in range(crowd)]
    with ThreadPoolExecutor(crowd) as threads:
        waiting = [threads.submit(call, editor, job_id, "generate") for job_id in made]
        eventually(lambda: len(server.asked) == crowd, "the model is asked by all of them")
        assert writing.caller(editor.user).get("/libraries").status_code == 200
        server.over.set()
        assert {answer.result().json()["error"] for answer in waiting} == {"E_DRAFT_UNREACHABLE"}
