"""Many who ask the same of one job at once, over HTTP on PostgreSQL: each step is taken once, and all are told so."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import httpx2
import pytest

from nexus.app import App, build
from nexus.draft import drafter
from nexus.editorial import editing
from nexus.extract import Extraction
from nexus.extract.builtin import READERS
from nexus.extract.registry import load_installed
from nexus.extract.sandbox import Sandbox
from nexus.queue.local import Local
from tests.editorial import TEXT, begin, call, entered, events, job_of, pages
from tests.http import PATIENCE, Caller, Site, refused, serve
from tests.integration.test_generating import SAID
from tests.integration.test_races import THREADS, Crowd
from tests.integration.test_whole_path import ARTICLE
from tests.job_walks import assert_job_replays, stories_of
from tests.openai_server import Asked, Model, Step, model, says
from tests.pages import Answer, Pages
from tests.support import SetClock, make_settings

__all__ = ["pages"]

ROUNDS = 5
TYPED = {"title": "Typed", "text": TEXT}
EXTRACTED_ONCE = ["create", "fetch", "fetched", "claim_extraction", "extracted"]


class Counted(Sandbox):
    """It knows how much it has read, and what is to happen meanwhile."""

    reads = 0
    meanwhile: Callable[[], object] | None = None

    def read(self, *given: object) -> Extraction:
        self.reads += 1
        if self.meanwhile is not None:
            self.meanwhile()
        return super().read(*given)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def parsers() -> Iterator[Counted]:
    with closing(Counted(preload=READERS)) as made:
        yield made


@pytest.fixture
def server() -> Iterator[Model]:
    with model() as running:
        yield running


@pytest.fixture
def app(
    clean_postgres: str, tmp_path: Path, pages: Pages, parsers: Counted, server: Model, clock: SetClock
) -> Iterator[App]:
    """With a connection for everybody, and a clock that stands still: five seconds do not go by unseen."""
    load_installed()
    chosen = make_settings(
        clean_postgres,
        tmp_path,
        database_pool=40,
        fetch_allow=(pages.place,),
        fetch_delay_seconds=0,
        fetch_per_host=64,
    )
    built = build(chosen, clock)
    tools = replace(built.tools, sandbox=parsers, drafter=drafter(server.url, "key", "test-model"))
    yield replace(built, tools=tools, queue=Local())
    built.close()


@pytest.fixture
def site(app: App) -> Iterator[Site]:
    with serve(app) as running:
        yield running


@pytest.fixture
def me(site: Site) -> Caller:
    return site.caller()


@pytest.fixture
def crowd() -> Iterator[Crowd]:
    made = Crowd(THREADS)
    yield made
    made.close()


def test_of_many_who_extract_one_page_one_reads_it(
    app: App, me: Caller, pages: Pages, parsers: Counted, crowd: Crowd
) -> None:
    for _ in range(ROUNDS):
        job_id, before = begin(me, pages), parsers.reads
        call(me, job_id, "fetch")
        answers = crowd.rush(lambda _, job_id=job_id: call(me, job_id, "extract"))
        assert {answer.status_code for answer in answers} == {200}
        assert [answer.json()["skipped"] for answer in answers].count(False) == 1
        first, *others = [answer.json()["job"] for answer in answers]
        assert all(job == first for job in others)
        assert (first["status"], parsers.reads - before) == ("READY_TO_GENERATE", 1)
        assert events(me, job_id) == EXTRACTED_ONCE
        assert_job_replays(app, UUID(job_id))


def test_workers_and_callers_who_come_at_once_read_a_page_once(
    app: App, me: Caller, pages: Pages, parsers: Counted, crowd: Crowd
) -> None:
    """As after a fetch: its text is taken out without being asked for, and it is asked for too."""
    for _ in range(ROUNDS):
        job_id, before = begin(me, pages), parsers.reads
        call(me, job_id, "fetch")

        def act(place: int, job_id: str = job_id) -> int:
            if place % 2:
                editing.run(app.tools, UUID(job_id))
                return 200
            return call(me, job_id, "extract").status_code

        assert set(crowd.rush(act)) == {200}
        assert parsers.reads - before == 1
        assert events(me, job_id) == EXTRACTED_ONCE


@pytest.mark.parametrize("page", [ARTICLE, "<p>Hardly a word.</p>"])
def test_a_text_that_is_entered_while_the_page_is_read_stays(
    app: App, me: Caller, pages: Pages, parsers: Counted, monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    """Whatever is found in the page; and whoever asked for it is told that there was nothing to do."""
    pages["/boats"] = Answer(page.encode())
    job_id = begin(me, pages)
    call(me, job_id, "fetch")
    monkeypatch.setattr(parsers, "meanwhile", lambda: call(me, job_id, "manual-entry", **TYPED))
    answer = call(me, job_id, "extract")
    assert job_of(answer)["extractedTitle"] == TYPED["title"]
    assert answer.json()["skipped"] is True
    assert me.get("/media").json()["data"]["items"] == []
    assert_job_replays(app, UUID(job_id))


def test_of_many_who_fetch_one_page_one_gets_it(app: App, me: Caller, pages: Pages, crowd: Crowd) -> None:
    for round_ in range(1, ROUNDS + 1):
        job_id = begin(me, pages)
        answers = crowd.rush(lambda _, job_id=job_id: call(me, job_id, "fetch"))
        assert_one_of(answers, (409, "E_INVALID_STATE"))
        assert len(pages.asked) == round_
        assert events(me, job_id) == ["create", "fetch", "fetched"]


def assert_one_of(answers: list[httpx2.Response], others: tuple[int, str]) -> httpx2.Response:
    """The one that succeeded, where all others were told the same."""
    (won,) = [answer for answer in answers if answer.status_code == 200]
    assert {refused(answer) for answer in answers if answer is not won} == {others}
    return won


class Turnstile:
    """A model that answers when everybody but its caller has been answered."""

    def __init__(self) -> None:
        self._answered = threading.Semaphore(0)

    def ask(self, me: Caller, job_id: str, step: str) -> httpx2.Response:
        answer = call(me, job_id, step)
        self._answered.release()
        return answer

    def then(self, step: Step) -> Step:
        def held(handler: object, asked: Asked) -> None:
            assert all(self._answered.acquire(timeout=PATIENCE) for _ in range(THREADS - 1))
            step(handler, asked)  # type: ignore[arg-type]

        return held


def drafted_by_many(me: Caller, job_id: str, step: str, server: Model, crowd: Crowd) -> httpx2.Response:
    """The answer of the one for whom the model wrote; the others are told to wait, while it writes."""
    turnstile, asked = Turnstile(), len(server.asked)
    server.will(turnstile.then(says(SAID)))
    answers = crowd.rush(lambda _: turnstile.ask(me, job_id, step))
    won = assert_one_of(answers, (429, "E_RATE_LIMITED"))
    assert {answer.headers.get("retry-after") for answer in answers if answer is not won} == {"5"}
    assert len(server.asked) == asked + 1
    return won


def test_of_many_who_generate_one_asks_the_model_and_saves_one_story(
    app: App, me: Caller, server: Model, crowd: Crowd
) -> None:
    for _ in range(ROUNDS):
        job_id = entered(me)
        job = job_of(drafted_by_many(me, job_id, "generate", server, crowd))
        assert job["status"] == "SAVED"
        assert [str(story.id) for story in stories_of(app, UUID(job_id))] == [job["storyId"]]
        assert events(me, job_id)[-2:] == ["generate", "saved"]
        assert_job_replays(app, UUID(job_id))


def test_of_many_who_regenerate_one_asks_the_model_and_the_earlier_story_stays(
    app: App, me: Caller, server: Model, crowd: Crowd, clock: SetClock
) -> None:
    job_id = entered(me)
    server.will(says(SAID))
    made = [job_of(call(me, job_id, "generate"))["storyId"]]
    for _ in range(ROUNDS):
        clock.forward(seconds=6)
        made.insert(0, job_of(drafted_by_many(me, job_id, "regenerate", server, crowd))["storyId"])
        assert [str(story.id) for story in stories_of(app, UUID(job_id))] == made
        assert events(me, job_id)[-3:] == ["regenerate", "generate", "saved"]
        assert_job_replays(app, UUID(job_id))


def test_a_draft_that_is_being_written_is_not_begun_by_anybody_else(
    app: App, me: Caller, server: Model, crowd: Crowd, clock: SetClock
) -> None:
    """Also when the five seconds are over: they are for the next one, and asking in vain uses nothing up."""
    begun, gate = threading.Event(), threading.Event()

    def held(handler: object, asked: Asked) -> None:
        begun.set()
        assert gate.wait(PATIENCE)
        says(SAID)(handler, asked)  # type: ignore[arg-type]

    server.will(held)
    job_id = entered(me)
    with ThreadPoolExecutor(1) as alone:
        first = alone.submit(call, me, job_id, "generate")
        assert begun.wait(PATIENCE)
        clock.forward(seconds=6)
        steps = ("generate", "regenerate")
        answers = crowd.rush(lambda place: call(me, job_id, steps[place % 2]))
        gate.set()
    assert {refused(answer) for answer in answers} == {(409, "E_INVALID_STATE")}
    assert job_of(first.result())["status"] == "SAVED"
    assert len(server.asked) == 1
    assert_job_replays(app, UUID(job_id))


def test_whatever_is_asked_of_a_failed_job_at_once_leaves_one_walk(
    app: App, me: Caller, pages: Pages, server: Model, crowd: Crowd, clock: SetClock
) -> None:
    asked: list[tuple[str, dict[str, str]]] = [
        ("manual-entry", TYPED),
        ("retry", {}),
        ("extract", {}),
        ("generate", {}),
        ("regenerate", {}),
    ]
    for round_ in range(2 * ROUNDS):
        job_id = begin(me, pages, path := f"/late/{round_}")
        assert job_of(call(me, job_id, "fetch"))["status"] == "FAILED"
        pages[path] = Answer(ARTICLE.encode())
        server.will(says(SAID))

        def act(place: int, job_id: str = job_id) -> tuple[str, httpx2.Response]:
            step, body = asked[place % len(asked)]
            return step, call(me, job_id, step, **body)

        assert_told(me, job_id, crowd.rush(act))
        assert_job_replays(app, UUID(job_id))
        server.steps.clear()


def assert_told(me: Caller, job_id: str, answers: list[tuple[str, httpx2.Response]]) -> None:
    """What was answered is what happened: no more, and no less."""
    done = [step for step, answer in answers if answer.status_code == 200 and not answer.json()["skipped"]]
    history = events(me, job_id)
    assert {answer.status_code for _, answer in answers} <= {200, 409, 429}
    assert done.count("manual-entry") == history.count("manual_entry")
    assert done.count("extract") == history.count("extracted") - history.count("manual_entry")
    assert done.count("generate") + done.count("regenerate") == history.count("saved") <= 1
    assert done.count("retry") <= history.count("retry")
    assert "manual-entry" in done or "retry" in done
    in_vain = [answer for step, answer in answers if step == "extract" and answer.status_code != 200]
    assert {refused(answer) for answer in in_vain} <= {(409, "NOT_READY")}
