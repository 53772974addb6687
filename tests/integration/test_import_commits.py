"""An import whose COMMIT nobody answers says nothing before it has looked in the database."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from sqlalchemy import make_url

from nexus.app import App, build
from nexus.errors import InvalidState
from nexus.imports.leaving import Leave
from nexus.imports.service import Desk
from nexus.states.attempt import Status
from nexus.states.media import Status as MediaStatus
from tests import documents
from tests.files import Person, stored
from tests.http import data, problem, serve
from tests.integration.test_http_imports import opened, stage, until
from tests.lines import COMMIT, Armed, Line, Lines, Moment, Trap
from tests.processes import eventually, fresh_postgres, installed
from tests.support import make_settings
from tests.walks import put

SENTENCE = "The ferry left the harbour at noon and came back in the evening, as it does every day. "
PATIENCE = 60.0
ROUNDS = 5
WAITING = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
)


def commit(moment: Moment) -> Trap:
    """Of the transaction that puts media into a library, whichever process makes it."""
    return Trap((b"INSERT INTO library_media", COMMIT), moment)


@pytest.fixture
def postgres(postgres_server_url: str) -> Iterator[str]:
    with fresh_postgres(postgres_server_url) as url:
        yield url


@pytest.fixture
def line(postgres: str) -> Iterator[Line]:
    with Lines() as lines:
        yield lines.to(postgres)


@pytest.fixture
def app(line: Line, tmp_path: Path) -> Iterator[App]:
    built = build(make_settings(line.url, tmp_path / "data"))
    yield built
    built.close()


@pytest.fixture
def desk(app: App) -> Desk:
    return app.imports.of(uuid4())


@pytest.fixture
def books(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / "one.txt", tmp_path / "two.pdf"]
    paths[0].write_text(SENTENCE * 4)
    paths[1].write_bytes(documents.pdf(SENTENCE))
    return paths


def begun(desk: Desk, books: list[Path], name: str = "Research") -> UUID:
    """The batch that is being imported."""
    batch = desk.staging.open(None, name)
    for path in books:
        desk.staging.add(batch.id, path.name, path)
    desk.start(batch.id)
    return batch.id


def rest(desk: Desk) -> Status:
    assert desk.wait(PATIENCE)
    return desk.state.status


def ask(postgres: str, question: str) -> Any:
    """Of the database itself, past the line."""
    url = make_url(postgres).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(url) as connection:
        row = connection.execute(question).fetchone()  # type: ignore[call-overload]
    assert row is not None
    return row[0]


def in_research(postgres: str) -> int:
    """How many media are in the libraries of this name."""
    return int(
        ask(
            postgres,
            "SELECT count(*) FROM library_media m JOIN libraries l ON l.id = m.library_id WHERE l.name = 'Research'",
        )
    )


def libraries_named_research(postgres: str) -> int:
    return int(ask(postgres, "SELECT count(*) FROM libraries WHERE name = 'Research'"))


class TestTheAnswerIsLost:
    def test_after_the_commit_and_the_import_is_complete_and_can_not_be_discarded(
        self, app: App, line: Line, postgres: str, books: list[Path]
    ) -> None:
        with serve(app) as site:
            me = site.caller()
            batch = opened(me)
            for path in books:
                data(stage(me, batch, path.name, path.read_bytes()))
            armed = line.arm(commit(Moment.AFTER))
            data(me.post(f"/imports/batches/{batch}/start"))
            done = until(me, "COMPLETE", "PAUSED")
            assert armed.sprung.is_set()
            assert (done["status"], done["error"]) == ("COMPLETE", None)
            assert {one["outcome"] for one in done["lines"]} == {"committed"}
            assert len(data(me.get(f"/libraries/{done['library_id']}/media"))["items"]) == 2
            assert data(me.get(f"/imports/batches/{batch}/leave"))["safe"]
            assert problem(me.delete(f"/imports/batches/{batch}")) == (404, "E_NOT_FOUND")
        assert (libraries_named_research(postgres), in_research(postgres), len(stored(app))) == (1, 2, 2)

    @pytest.mark.parametrize("then", ["discard", "resume"])
    def test_before_the_commit_and_the_import_is_paused_with_nothing_in_the_library(
        self, app: App, line: Line, postgres: str, books: list[Path], then: str
    ) -> None:
        with serve(app) as site:
            me = site.caller()
            batch = opened(me)
            for path in books:
                data(stage(me, batch, path.name, path.read_bytes()))
            armed = line.arm(commit(Moment.BEFORE))
            data(me.post(f"/imports/batches/{batch}/start"))
            paused = until(me, "COMPLETE", "PAUSED")
            assert armed.sprung.is_set()
            assert (paused["status"], paused["error"]["code"]) == ("PAUSED", "E_INTERNAL")
            assert (libraries_named_research(postgres), stored(app)) == (0, [])
            if then == "discard":
                assert data(me.delete(f"/imports/batches/{batch}"))["status"] == "IDLE"
            else:
                data(me.post("/imports/attempt/resume"))
                assert until(me, "COMPLETE", "PAUSED")["status"] == "COMPLETE"
        there = 0 if then == "discard" else 2
        assert (in_research(postgres), len(stored(app))) == (there, there)

    @pytest.mark.parametrize("moment", [Moment.BEFORE, Moment.AFTER])
    @pytest.mark.parametrize("standing", ["known", "unread"])
    def test_of_an_import_that_brings_no_new_media(
        self, app: App, line: Line, postgres: str, books: list[Path], moment: Moment, standing: str
    ) -> None:
        person = Person(app)
        media_id = person.upload(books[1].read_bytes())
        put(app, media_id, MediaStatus.READY_FOR_READING if standing == "known" else MediaStatus.FAILED)
        desk = app.imports.of(person.id)
        armed = line.arm(commit(moment))
        begun(desk, books[1:])
        assert rest(desk) is (Status.COMPLETE if moment is Moment.AFTER else Status.PAUSED)
        assert armed.sprung.is_set()
        assert in_research(postgres) == (moment is Moment.AFTER)

    @pytest.mark.parametrize("arrives", [True, False])
    def test_while_the_commit_is_still_on_its_way_and_its_end_is_waited_for(
        self, line: Line, desk: Desk, postgres: str, books: list[Path], arrives: bool
    ) -> None:
        armed = line.arm(commit(Moment.HELD))
        begun(desk, books)
        assert armed.sprung.wait(PATIENCE)
        eventually(lambda: ask(postgres, WAITING), "the look waits for the transaction")
        assert (desk.state.status, desk.in_doubt) == (Status.RUNNING, True)
        armed.arrives.set_result(arrives)
        assert rest(desk) is (Status.COMPLETE if arrives else Status.PAUSED)
        assert in_research(postgres) == (2 if arrives else 0)


class TestTheDatabaseStaysAway:
    """After the cut, until the test lets it come back."""

    def arm(self, line: Line, moment: Moment) -> Armed:
        return line.arm(commit(moment), lambda _: line.refuse())

    def in_doubt(self, armed: Armed, desk: Desk) -> None:
        assert armed.sprung.wait(PATIENCE)
        eventually(lambda: desk.trouble, "the database was asked in vain")
        assert desk.trouble
        assert desk.trouble.code == "E_NOT_READY"

    @pytest.mark.parametrize("moment", [Moment.BEFORE, Moment.AFTER])
    def test_and_nothing_is_said_until_it_is_back(
        self, line: Line, desk: Desk, postgres: str, books: list[Path], moment: Moment
    ) -> None:
        armed = self.arm(line, moment)
        batch_id = begun(desk, books)
        self.in_doubt(armed, desk)
        assert desk.state.status is Status.RUNNING
        assert desk.leave(batch_id) == Leave(safe=False, should_warn=True, would_discard=False)
        with pytest.raises(InvalidState):
            desk.staging.discard(batch_id)
        line.restore()
        if moment is Moment.AFTER:
            assert rest(desk) is Status.COMPLETE
            assert desk.leave(batch_id).safe
            assert in_research(postgres) == 2
        else:
            assert rest(desk) is Status.PAUSED
            desk.staging.discard(batch_id)
            assert in_research(postgres) == 0

    @pytest.mark.parametrize("moment", [Moment.BEFORE, Moment.AFTER])
    def test_and_a_pause_does_not_make_it_say_more(
        self, app: App, line: Line, postgres: str, books: list[Path], moment: Moment
    ) -> None:
        for _ in range(ROUNDS):
            armed = self.arm(line, moment)
            desk, before = app.imports.of(uuid4()), in_research(postgres)
            batch_id = begun(desk, books)
            self.in_doubt(armed, desk)
            assert desk.pause().status is Status.STOPPING
            with pytest.raises(InvalidState):
                desk.staging.discard(batch_id)
            line.restore()
            assert rest(desk) is (Status.IDLE if moment is Moment.AFTER else Status.PAUSED)
            assert desk.is_committed is (moment is Moment.AFTER)
            assert in_research(postgres) - before == (2 if moment is Moment.AFTER else 0)

    def test_and_the_process_ends_without_waiting_for_it(
        self, app: App, line: Line, desk: Desk, postgres: str, books: list[Path]
    ) -> None:
        armed = self.arm(line, Moment.AFTER)
        begun(desk, books)
        self.in_doubt(armed, desk)
        app.imports.close()
        assert desk.state.status is Status.STOPPING
        assert rest(desk) is Status.STOPPING
        assert desk.in_doubt
        assert (in_research(postgres), len(stored(app))) == (2, 2)

    def test_and_a_command_that_is_ended_does_not_say_that_nothing_was_imported(
        self, line: Line, postgres: str, tmp_path: Path, books: list[Path]
    ) -> None:
        self.arm(line, Moment.AFTER)
        with installed(line.url, tmp_path, plugins=(), log_level="info") as nexus:
            command = nexus.start("import", *map(str, books), "--library", "Research")
            command.wait_for("import_look_up_failed")
            command.send(signal.SIGTERM)
            assert command.wait() == 143, command.tail()
        assert "it has all files or none" in command.tail()
        assert "Nothing was imported" not in command.tail()
        assert in_research(postgres) == 2
