"""An import whose COMMIT nobody answers says nothing before it has looked in the database."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from sqlalchemy import make_url

from nexus.app import App
from nexus.errors import InvalidState
from nexus.imports.service import ImportDesk, Leave
from nexus.settings import Settings
from nexus.states.attempt import AttemptStatus
from nexus.states.media import MediaStatus
from tests.kit import documents
from tests.kit.faults.network_lines import COMMIT, Armed, Line, Lines, Moment, Trap
from tests.kit.http import Caller, data, problem, serve
from tests.kit.http_imports import open_batch, stage_file, wait_for_import
from tests.kit.installation import installed
from tests.kit.media import walk_media_to
from tests.kit.settings import make_settings
from tests.kit.uploads import Uploader, stored_paths
from tests.kit.waiting import eventually

pytestmark = [pytest.mark.wall_clock, pytest.mark.usefixtures("installed_extractors")]

SENTENCE = "The ferry left the harbour at noon and came back in the evening, as it does every day. "
PATIENCE = 60.0
ROUNDS = 5
WAITING = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
)


def commit(moment: Moment) -> Trap:
    """A trap at the COMMIT that puts media into a library, whichever process sends it."""
    return Trap((b"INSERT INTO library_media", COMMIT), moment)


@pytest.fixture
def own_postgres_line(lines: Lines, own_postgres_url: str) -> Line:
    return lines.to(own_postgres_url)


@pytest.fixture
def settings(own_postgres_line: Line, tmp_path: Path) -> Settings:
    return make_settings(own_postgres_line.url, tmp_path / "data")


@pytest.fixture
def import_desk(app: App) -> ImportDesk:
    return app.imports.of(uuid4())


@pytest.fixture
def two_books(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / "one.txt", tmp_path / "two.pdf"]
    paths[0].write_text(SENTENCE * 4)
    paths[1].write_bytes(documents.pdf(SENTENCE))
    return paths


def begun(desk: ImportDesk, books: list[Path], name: str = "Research") -> UUID:
    """The batch that is being imported."""
    batch = desk.staging.open(None, name)
    for path in books:
        desk.staging.add(batch.id, path.name, path)
    desk.start(batch.id)
    return batch.id


def rest(desk: ImportDesk) -> AttemptStatus:
    assert desk.wait(PATIENCE)
    return desk.state.status


def ask(postgres: str, question: str) -> Any:
    """Ask the database itself, past the line."""
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


def stage_all(me: Caller, paths: list[Path]) -> str:
    """A new batch with these files."""
    batch = open_batch(me)
    for path in paths:
        data(stage_file(me, batch, path.name, path.read_bytes()))
    return batch


def test_an_import_whose_commit_lost_its_answer_is_complete_and_can_not_be_discarded(
    app: App, own_postgres_line: Line, own_postgres_url: str, two_books: list[Path]
) -> None:
    with serve(app) as site:
        me = site.caller()
        batch = stage_all(me, two_books)
        armed = own_postgres_line.arm(commit(Moment.AFTER))
        data(me.post(f"/imports/batches/{batch}/start"))
        done = wait_for_import(me, "COMPLETE", "PAUSED")
        assert armed.sprung.is_set()
        assert (done["status"], done["error"]) == ("COMPLETE", None)
        assert {one["outcome"] for one in done["lines"]} == {"committed"}
        assert len(data(me.get(f"/libraries/{done['library_id']}/media"))["items"]) == 2
        assert data(me.get(f"/imports/batches/{batch}/leave"))["safe"]
        assert problem(me.delete(f"/imports/batches/{batch}")) == (404, "E_NOT_FOUND")
    assert (
        libraries_named_research(own_postgres_url),
        in_research(own_postgres_url),
        len(stored_paths(app)),
    ) == (1, 2, 2)


@pytest.mark.parametrize("then", ["discard", "resume"])
def test_an_import_whose_commit_never_arrived_is_paused_with_an_empty_library(
    app: App, own_postgres_line: Line, own_postgres_url: str, two_books: list[Path], then: str
) -> None:
    with serve(app) as site:
        me = site.caller()
        batch = stage_all(me, two_books)
        armed = own_postgres_line.arm(commit(Moment.BEFORE))
        data(me.post(f"/imports/batches/{batch}/start"))
        paused = wait_for_import(me, "COMPLETE", "PAUSED")
        assert armed.sprung.is_set()
        assert (paused["status"], paused["error"]["code"]) == ("PAUSED", "E_INTERNAL")
        assert (libraries_named_research(own_postgres_url), stored_paths(app)) == (0, [])
        if then == "discard":
            assert data(me.delete(f"/imports/batches/{batch}"))["status"] == "IDLE"
        else:
            data(me.post("/imports/attempt/resume"))
            assert wait_for_import(me, "COMPLETE", "PAUSED")["status"] == "COMPLETE"
    there = 0 if then == "discard" else 2
    assert (in_research(own_postgres_url), len(stored_paths(app))) == (there, there)


@pytest.mark.parametrize("moment", [Moment.BEFORE, Moment.AFTER])
@pytest.mark.parametrize("standing", ["known", "unread"])
def test_an_import_without_new_media_survives_a_lost_answer(
    app: App,
    own_postgres_line: Line,
    own_postgres_url: str,
    two_books: list[Path],
    moment: Moment,
    standing: str,
) -> None:
    person = Uploader(app)
    media_id = person.upload(two_books[1].read_bytes())
    walk_media_to(app, media_id, MediaStatus.READY_FOR_READING if standing == "known" else MediaStatus.FAILED)
    desk = app.imports.of(person.id)
    armed = own_postgres_line.arm(commit(moment))
    begun(desk, two_books[1:])
    assert rest(desk) is (AttemptStatus.COMPLETE if moment is Moment.AFTER else AttemptStatus.PAUSED)
    assert armed.sprung.is_set()
    assert in_research(own_postgres_url) == (moment is Moment.AFTER)


@pytest.mark.parametrize("arrives", [True, False])
def test_an_import_waits_for_a_commit_that_is_still_on_its_way(
    own_postgres_line: Line,
    import_desk: ImportDesk,
    own_postgres_url: str,
    two_books: list[Path],
    arrives: bool,
) -> None:
    armed = own_postgres_line.arm(commit(Moment.HELD))
    begun(import_desk, two_books)
    assert armed.sprung.wait(PATIENCE)
    eventually(lambda: ask(own_postgres_url, WAITING), "the look waits for the transaction")
    assert (import_desk.state.status, import_desk.in_doubt) == (AttemptStatus.RUNNING, True)
    armed.arrives.set_result(arrives)
    assert rest(import_desk) is (AttemptStatus.COMPLETE if arrives else AttemptStatus.PAUSED)
    assert in_research(own_postgres_url) == (2 if arrives else 0)


class TestTheDatabaseStaysAway:
    """The database is away from the cut until the test lets it come back."""

    def arm(self, line: Line, moment: Moment) -> Armed:
        return line.arm(commit(moment), lambda _: line.refuse())

    def in_doubt(self, armed: Armed, desk: ImportDesk) -> None:
        assert armed.sprung.wait(PATIENCE)
        eventually(lambda: desk.trouble, "the database was asked in vain")
        assert desk.trouble
        assert desk.trouble.code == "E_NOT_READY"

    @pytest.mark.parametrize("moment", [Moment.BEFORE, Moment.AFTER])
    def test_an_import_says_nothing_of_its_commit_until_the_database_is_back(
        self,
        own_postgres_line: Line,
        import_desk: ImportDesk,
        own_postgres_url: str,
        two_books: list[Path],
        moment: Moment,
    ) -> None:
        armed = self.arm(own_postgres_line, moment)
        batch_id = begun(import_desk, two_books)
        self.in_doubt(armed, import_desk)
        assert import_desk.state.status is AttemptStatus.RUNNING
        assert import_desk.leave(batch_id) == Leave(safe=False, should_warn=True, would_discard=False)
        with pytest.raises(InvalidState):
            import_desk.staging.discard(batch_id)
        own_postgres_line.restore()
        if moment is Moment.AFTER:
            assert rest(import_desk) is AttemptStatus.COMPLETE
            assert import_desk.leave(batch_id).safe
            assert in_research(own_postgres_url) == 2
        else:
            assert rest(import_desk) is AttemptStatus.PAUSED
            import_desk.staging.discard(batch_id)
            assert in_research(own_postgres_url) == 0

    @pytest.mark.parametrize("moment", [Moment.BEFORE, Moment.AFTER])
    def test_a_pause_does_not_settle_a_commit_while_the_database_is_away(
        self, app: App, own_postgres_line: Line, own_postgres_url: str, two_books: list[Path], moment: Moment
    ) -> None:
        for _ in range(ROUNDS):
            armed = self.arm(own_postgres_line, moment)
            desk, before = app.imports.of(uuid4()), in_research(own_postgres_url)
            batch_id = begun(desk, two_books)
            self.in_doubt(armed, desk)
            assert desk.pause().status is AttemptStatus.STOPPING
            with pytest.raises(InvalidState):
                desk.staging.discard(batch_id)
            own_postgres_line.restore()
            assert rest(desk) is (AttemptStatus.IDLE if moment is Moment.AFTER else AttemptStatus.PAUSED)
            assert desk.is_committed is (moment is Moment.AFTER)
            assert in_research(own_postgres_url) - before == (2 if moment is Moment.AFTER else 0)

    def test_a_process_ends_without_waiting_for_an_absent_database(
        self,
        app: App,
        own_postgres_line: Line,
        import_desk: ImportDesk,
        own_postgres_url: str,
        two_books: list[Path],
    ) -> None:
        armed = self.arm(own_postgres_line, Moment.AFTER)
        begun(import_desk, two_books)
        self.in_doubt(armed, import_desk)
        app.imports.close()
        assert import_desk.state.status is AttemptStatus.STOPPING
        assert rest(import_desk) is AttemptStatus.STOPPING
        assert import_desk.in_doubt
        assert (in_research(own_postgres_url), len(stored_paths(app))) == (2, 2)

    def test_a_stopped_command_does_not_claim_that_nothing_was_imported(
        self, own_postgres_line: Line, own_postgres_url: str, tmp_path: Path, two_books: list[Path]
    ) -> None:
        self.arm(own_postgres_line, Moment.AFTER)
        with installed(own_postgres_line.url, tmp_path, plugins=(), log_level="info") as nexus:
            command = nexus.start("import", *map(str, two_books), "--library", "Research")
            command.wait_for("import_look_up_failed")
            command.send(signal.SIGTERM)
            assert command.wait() == 143, command.tail()
        assert "it has all files or none" in command.tail()
        assert "Nothing was imported" not in command.tail()
        assert in_research(own_postgres_url) == 2
