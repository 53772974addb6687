"""Simultaneous requests for one job, over HTTP on PostgreSQL: each step runs once, and all callers learn its result."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from uuid import UUID

import httpx2
import pytest

from nexus.app import App
from nexus.draft import make_drafter
from nexus.extract import Extraction
from nexus.extract.sandbox import Sandbox
from nexus.settings import Settings
from tests.kit.articles import ARTICLE
from tests.kit.clock import SetClock
from tests.kit.crowd import THREADS, Crowd
from tests.kit.http import PATIENCE, Caller, job_problem
from tests.kit.job_calls import SAID, TEXT, begin_job, call_step, enter_job, job_event_names, job_of
from tests.kit.jobs import assert_job_replays, stories_of
from tests.kit.servers.openai_api import Asked, Model, Step, says
from tests.kit.servers.web_pages import Answer, Pages
from tests.kit.work import take_step

ROUNDS = 5
TYPED = {"title": "Typed", "text": TEXT}
EXTRACTED_ONCE = ["create", "fetch", "fetched", "claim_extraction", "extracted"]


class Counted(Sandbox):
    """A sandbox that counts its reads, and runs a hook during each."""

    reads = 0
    meanwhile: Callable[[], object] | None = None

    def read(self, *given: object) -> Extraction:
        self.reads += 1
        if self.meanwhile is not None:
            self.meanwhile()
        return super().read(*given)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def parsers() -> Iterator[Counted]:
    with closing(Counted()) as made:
        yield made


@pytest.fixture
def database_url(clean_postgres: str) -> str:
    """PostgreSQL alone: SQLite has one writer at a time."""
    return clean_postgres


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """With a connection for everybody."""
    return settings.model_copy(update={"database_pool": 40})


@pytest.fixture
def app(app: App, llm: Model) -> App:
    return replace(app, tools=replace(app.tools, drafter=make_drafter(llm.url, "key", "test-model")))


def test_many_simultaneous_extractions_read_a_page_once(
    app: App, me: Caller, pages: Pages, parsers: Counted, crowd: Crowd
) -> None:
    for _ in range(ROUNDS):
        job_id, before = begin_job(me, pages), parsers.reads
        call_step(me, job_id, "fetch")
        answers = crowd.rush(lambda _, job_id=job_id: call_step(me, job_id, "extract"))
        assert {answer.status_code for answer in answers} == {200}
        assert [answer.json()["skipped"] for answer in answers].count(False) == 1
        first, *others = [answer.json()["job"] for answer in answers]
        assert all(job == first for job in others)
        assert (first["status"], parsers.reads - before) == ("READY_TO_GENERATE", 1)
        assert job_event_names(me, job_id) == EXTRACTED_ONCE
        assert_job_replays(app, UUID(job_id))


def test_workers_and_callers_that_race_read_a_page_once(
    app: App, me: Caller, pages: Pages, parsers: Counted, crowd: Crowd
) -> None:
    """As after a fetch: a worker extracts the text on its own while callers ask for it too."""
    for _ in range(ROUNDS):
        job_id, before = begin_job(me, pages), parsers.reads
        call_step(me, job_id, "fetch")

        def act(place: int, job_id: str = job_id) -> int:
            if place % 2:
                take_step(app.tools, UUID(job_id))
                return 200
            return call_step(me, job_id, "extract").status_code

        assert set(crowd.rush(act)) == {200}
        assert parsers.reads - before == 1
        assert job_event_names(me, job_id) == EXTRACTED_ONCE


@pytest.mark.parametrize("page", [ARTICLE, "<p>Hardly a word.</p>"])
def test_text_entered_by_hand_while_the_page_is_read_stays(
    app: App, me: Caller, pages: Pages, parsers: Counted, monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    """Whatever the page holds, and the extraction answers that there was nothing to do."""
    pages["/boats"] = Answer(page.encode())
    job_id = begin_job(me, pages)
    call_step(me, job_id, "fetch")
    monkeypatch.setattr(parsers, "meanwhile", lambda: call_step(me, job_id, "manual-entry", **TYPED))
    answer = call_step(me, job_id, "extract")
    assert job_of(answer)["extractedTitle"] == TYPED["title"]
    assert answer.json()["skipped"] is True
    assert me.get("/media").json()["data"]["items"] == []
    assert_job_replays(app, UUID(job_id))


def test_many_simultaneous_fetches_request_a_page_once(
    app: App, me: Caller, pages: Pages, crowd: Crowd
) -> None:
    for round_ in range(1, ROUNDS + 1):
        job_id = begin_job(me, pages)
        answers = crowd.rush(lambda _, job_id=job_id: call_step(me, job_id, "fetch"))
        assert_one_of(answers, (409, "E_INVALID_STATE"))
        assert len(pages.asked) == round_
        assert job_event_names(me, job_id) == ["create", "fetch", "fetched"]


def assert_one_of(answers: list[httpx2.Response], others: tuple[int, str]) -> httpx2.Response:
    """The only answer that succeeded; all the others are the same."""
    (won,) = [answer for answer in answers if answer.status_code == 200]
    assert {job_problem(answer) for answer in answers if answer is not won} == {others}
    return won


class Turnstile:
    """A model that answers only after all other callers have been answered."""

    def __init__(self) -> None:
        self._answered = threading.Semaphore(0)

    def ask(self, me: Caller, job_id: str, step: str) -> httpx2.Response:
        answer = call_step(me, job_id, step)
        self._answered.release()
        return answer

    def then(self, step: Step) -> Step:
        def held(handler: object, asked: Asked) -> None:
            assert all(self._answered.acquire(timeout=PATIENCE) for _ in range(THREADS - 1))
            step(handler, asked)  # type: ignore[arg-type]

        return held


def drafted_by_many(me: Caller, job_id: str, step: str, server: Model, crowd: Crowd) -> httpx2.Response:
    """The answer to the caller for whom the model wrote; the others are told to wait meanwhile."""
    turnstile, asked = Turnstile(), len(server.asked)
    server.will(turnstile.then(says(SAID)))
    answers = crowd.rush(lambda _: turnstile.ask(me, job_id, step))
    won = assert_one_of(answers, (429, "E_RATE_LIMITED"))
    assert {answer.headers.get("retry-after") for answer in answers if answer is not won} == {"5"}
    assert len(server.asked) == asked + 1
    return won


def test_many_simultaneous_drafts_ask_the_model_once_and_save_one_story(
    app: App, me: Caller, llm: Model, crowd: Crowd
) -> None:
    for _ in range(ROUNDS):
        job_id = enter_job(me)
        job = job_of(drafted_by_many(me, job_id, "generate", llm, crowd))
        assert job["status"] == "SAVED"
        assert [str(story.id) for story in stories_of(app, UUID(job_id))] == [job["storyId"]]
        assert job_event_names(me, job_id)[-2:] == ["generate", "saved"]
        assert_job_replays(app, UUID(job_id))


def test_many_simultaneous_redrafts_ask_the_model_once_and_keep_the_earlier_story(
    app: App, me: Caller, llm: Model, crowd: Crowd, clock: SetClock
) -> None:
    job_id = enter_job(me)
    llm.will(says(SAID))
    made = [job_of(call_step(me, job_id, "generate"))["storyId"]]
    for _ in range(ROUNDS):
        clock.forward(seconds=6)
        made.insert(0, job_of(drafted_by_many(me, job_id, "regenerate", llm, crowd))["storyId"])
        assert [str(story.id) for story in stories_of(app, UUID(job_id))] == made
        assert job_event_names(me, job_id)[-3:] == ["regenerate", "generate", "saved"]
        assert_job_replays(app, UUID(job_id))


def test_a_draft_that_is_being_written_is_not_begun_by_anybody_else(
    app: App, me: Caller, llm: Model, crowd: Crowd, clock: SetClock
) -> None:
    """Even after the five seconds, which apply to the next draft; a refused request costs nothing."""
    begun, gate = threading.Event(), threading.Event()

    def held(handler: object, asked: Asked) -> None:
        begun.set()
        assert gate.wait(PATIENCE)
        says(SAID)(handler, asked)  # type: ignore[arg-type]

    llm.will(held)
    job_id = enter_job(me)
    with ThreadPoolExecutor(1) as alone:
        first = alone.submit(call_step, me, job_id, "generate")
        assert begun.wait(PATIENCE)
        clock.forward(seconds=6)
        steps = ("generate", "regenerate")
        answers = crowd.rush(lambda place: call_step(me, job_id, steps[place % 2]))
        gate.set()
    assert {job_problem(answer) for answer in answers} == {(409, "E_INVALID_STATE")}
    assert job_of(first.result())["status"] == "SAVED"
    assert len(llm.asked) == 1
    assert_job_replays(app, UUID(job_id))


def test_verbs_that_race_on_a_failed_job_leave_one_consistent_history(
    app: App, me: Caller, pages: Pages, llm: Model, crowd: Crowd, clock: SetClock
) -> None:
    asked: list[tuple[str, dict[str, str]]] = [
        ("manual-entry", TYPED),
        ("retry", {}),
        ("extract", {}),
        ("generate", {}),
        ("regenerate", {}),
    ]
    for round_ in range(2 * ROUNDS):
        job_id = begin_job(me, pages, path := f"/late/{round_}")
        assert job_of(call_step(me, job_id, "fetch"))["status"] == "FAILED"
        pages[path] = Answer(ARTICLE.encode())
        llm.will(says(SAID))

        def act(place: int, job_id: str = job_id) -> tuple[str, httpx2.Response]:
            step, body = asked[place % len(asked)]
            return step, call_step(me, job_id, step, **body)

        assert_told(me, job_id, crowd.rush(act))
        assert_job_replays(app, UUID(job_id))
        llm.steps.clear()


def assert_told(me: Caller, job_id: str, answers: list[tuple[str, httpx2.Response]]) -> None:
    """What was answered is what happened: no more, and no less."""
    done = [step for step, answer in answers if answer.status_code == 200 and not answer.json()["skipped"]]
    history = job_event_names(me, job_id)
    assert {answer.status_code for _, answer in answers} <= {200, 409, 429}
    assert done.count("manual-entry") == history.count("manual_entry")
    assert done.count("extract") == history.count("extracted") - history.count("manual_entry")
    assert done.count("generate") + done.count("regenerate") == history.count("saved") <= 1
    assert done.count("retry") <= history.count("retry")
    assert "manual-entry" in done or "retry" in done
    in_vain = [answer for step, answer in answers if step == "extract" and answer.status_code != 200]
    assert {job_problem(answer) for answer in in_vain} <= {(409, "NOT_READY")}
