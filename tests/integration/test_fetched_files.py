"""The PDF that an address answers with: it stays exactly as long as its media needs it, whatever came in between."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from nexus.app import App, build
from nexus.errors import FileUnreachable
from nexus.extract import AVAILABLE_EXTRACTORS, Extraction, Source
from nexus.extract.builtin import READERS
from nexus.extract.registry import load_installed
from nexus.extract.sandbox import Sandbox
from nexus.media import documents, refresh, runner, submit
from nexus.media.lifecycle import worker_start_attempt
from nexus.media.runner import Outcome
from nexus.queue.local import Local
from nexus.states.media import Kind
from tests import documents as made
from tests.files import Person, stored
from tests.pages import Answer, Pages
from tests.processes import eventually
from tests.support import make_settings, new_media

TEXT = "A paper about the harbour, its boats and the weather of the year, which is long enough to be read."
PAPER = Answer(made.pdf(TEXT), "application/pdf")
SCAN = Answer(made.pdf(""), "application/pdf")


@pytest.fixture
def pages() -> Iterator[Pages]:
    with Pages() as served:
        yield served


@pytest.fixture(scope="module")
def parsers() -> Iterator[Sandbox]:
    with closing(Sandbox(preload=READERS)) as made:
        yield made


@pytest.fixture
def app(database_url: str, tmp_path: Path, pages: Pages, parsers: Sandbox) -> Iterator[App]:
    load_installed()
    built = build(make_settings(database_url, tmp_path, fetch_allow=(pages.place,), fetch_delay_seconds=0))
    yield replace(built, tools=replace(built.tools, sandbox=parsers))
    built.close()


@pytest.fixture
def me(app: App) -> Person:
    return Person(app)


def read(app: App, me: Person, pages: Pages, path: str = "/paper") -> UUID:
    """An address whose PDF is read."""
    pages[path] = PAPER
    media_id = new_media(app, me.id, pages.url(path))
    assert runner.run(app.tools, media_id) is Outcome.READABLE
    return media_id


def file_of(app: App, media_id: UUID) -> str | None:
    with app.sessions.read() as session:
        found = documents.file_of(session, media_id)
    return found and str(found.storage_path)


def asked(pages: Pages, path: str) -> bool:
    return path in {each for each, _ in pages.asked}


class Apart(threading.Thread):
    """Work in a thread of its own."""

    def __init__(self, work: Callable[[], object]) -> None:
        super().__init__()
        self._work = work
        self.start()

    def run(self) -> None:
        self.result = self._work()


def test_an_address_deleted_while_its_pdf_is_fetched_leaves_no_object(
    app: App, me: Person, pages: Pages
) -> None:
    pages["/held/paper"] = PAPER
    media_id = new_media(app, me.id, pages.url("/held/paper"))
    work = Apart(lambda: runner.run(app.tools, media_id))
    eventually(lambda: asked(pages, "/held/paper"), "it is being fetched")
    me.delete(media_id)
    pages.gate.set()
    work.join(60)
    assert work.result is Outcome.STALE
    assert stored(app) == []


def test_an_address_deleted_while_it_is_refreshed_leaves_no_object(
    app: App, me: Person, pages: Pages
) -> None:
    pages.gate.set()
    media_id = read(app, me, pages, "/held/paper")
    pages.gate.clear()
    pages.asked.clear()
    refresh.request(app.sessions, Local(), media_id, me.id, None)
    work = Apart(lambda: refresh.run(app.tools, media_id))
    eventually(lambda: asked(pages, "/held/paper"), "it is being fetched")
    me.delete(media_id)
    pages.gate.set()
    work.join(60)
    assert stored(app) == []


def test_a_result_whose_first_writing_got_no_answer_keeps_its_file(
    app: App, me: Person, pages: Pages
) -> None:
    """The answer to a COMMIT gets lost, and the worker writes the same result again."""
    pages["/paper"] = PAPER
    media_id = new_media(app, me.id, pages.url("/paper"))
    with app.sessions.begin() as session:
        claim = worker_start_attempt(session, media_id)
    done = runner.attempt(app.tools, claim)
    for _ in range(2):
        assert runner.settle(app.tools, [done]) == [Outcome.READABLE]
    assert stored(app) == [file_of(app, media_id)]


def test_an_attempt_that_is_tried_again_takes_its_file_back(
    app: App, me: Person, pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unlucky(source: Source) -> Extraction:
        source.bench.keep(source.bench.fetch(str(source.url)))
        raise FileUnreachable

    monkeypatch.setitem(AVAILABLE_EXTRACTORS, Kind.WEB_ARTICLE, unlucky)
    pages["/paper"] = PAPER
    media_id = new_media(app, me.id, pages.url("/paper"))
    assert runner.run(app.tools, media_id) is Outcome.RELEASED
    assert stored(app) == []


def test_a_failed_pdf_that_is_retried_has_one_file(app: App, me: Person, pages: Pages) -> None:
    pages["/paper"] = SCAN
    media_id = new_media(app, me.id, pages.url("/paper"))
    assert runner.run(app.tools, media_id) is Outcome.FAILED
    assert stored(app) == [file_of(app, media_id)]
    submit.retry(app.sessions, Local(), media_id, me.id)
    pages["/paper"] = PAPER
    assert runner.run(app.tools, media_id) is Outcome.READABLE
    assert stored(app) == [file_of(app, media_id)]


def test_the_same_pdf_fetched_again_never_has_the_path_that_it_had(
    app: App, me: Person, pages: Pages
) -> None:
    """So whoever is late to remove the old one can't meet the new one."""
    media_id = read(app, me, pages)
    seen = [file_of(app, media_id)]
    for _ in range(3):
        refresh.request(app.sessions, Local(), media_id, me.id, None)
        assert str(refresh.run(app.tools, media_id)).startswith("revision ")
        seen.append(file_of(app, media_id))
        assert stored(app) == [seen[-1]]
    assert len(set(seen)) == len(seen)


def test_a_refresh_that_finds_no_text_takes_its_file_back(app: App, me: Person, pages: Pages) -> None:
    media_id = read(app, me, pages)
    before = file_of(app, media_id)
    pages["/paper"] = SCAN
    refresh.request(app.sessions, Local(), media_id, me.id, None)
    assert refresh.run(app.tools, media_id) == "failed"
    assert (file_of(app, media_id), stored(app)) == (before, [before])
