"""Whenever and however the process of an import ends: the library has all of it or nothing, and no leftovers."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest
import uvicorn
from sqlalchemy import select

from nexus.app import build
from nexus.cli.server import Server
from nexus.db.session import Statement, wall_clock
from nexus.db.tables import libraries
from nexus.states.media import MediaStatus
from nexus.upkeep import clean
from tests.kit import documents, servers
from tests.kit.http import Caller, data
from tests.kit.http_imports import open_batch, stage_file, wait_for_import
from tests.kit.installation import Nexus, installed, post_url, server_url, start_server
from tests.kit.media import status_of
from tests.kit.plugins.dying_imports import BEFORE_THE_COMMIT
from tests.kit.processes import Process
from tests.kit.settings import make_settings
from tests.kit.uploads import count_media, stored_paths
from tests.kit.waiting import eventually

SENTENCE = "The ferry left the harbour at noon and came back in the evening, as it does every day. "
#: Longer than a parser and the import may take to obey, by far shorter than a parser may take for a document.
IN_TIME = 15.0
_NAMES = Statement(select(libraries.c.name).where(libraries.c.name == "Research"))


@pytest.fixture
def nexus(sqlite_url: str, tmp_path: Path) -> Iterator[Nexus]:
    given = {
        "port": servers.free_port(),
        "plugins": ("tests.kit.plugins.gated_imports",),
        "log_level": "debug",
    }
    with installed(sqlite_url, tmp_path, **given) as running:
        yield running


@pytest.fixture
def bookshelf(tmp_path: Path) -> Path:
    folder = tmp_path / "Bookshelf"
    folder.mkdir()
    (folder / "anchor.pdf").write_bytes(documents.pdf(SENTENCE))
    (folder / "beacon.md").write_text(f"# Beacon\n\n{SENTENCE * 5}")
    (folder / "cutter.txt").write_text(SENTENCE * 4)
    return folder


def workspaces(nexus: Nexus) -> list[Path]:
    """The folders of processes, whether they live or not."""
    base = nexus.folder / "imports"
    return [path for path in base.iterdir() if path.is_dir()] if base.is_dir() else []


def research(nexus: Nexus) -> int:
    with nexus.app.sessions.read() as session:
        return len(session.all(_NAMES))


def imported(nexus: Nexus, books: Path, moment: str = "") -> Process:
    """`nexus import` in a process of its own, which has ended."""
    process = nexus.start(
        "import",
        str(books),
        "--library",
        "Research",
        plugins=("tests.kit.plugins.dying_imports",) if moment else (),
    )
    process.wait()
    return process


def left_in_the_store(nexus: Nexus, *, remove: bool = False) -> list[str]:
    """What `nexus clean` finds there a day later."""
    later = build(make_settings(nexus.database, nexus.folder), lambda: wall_clock() + timedelta(days=1))
    try:
        return [found.path for found in clean.find_leftovers(later.sessions, later.files, remove=remove)]
    finally:
        later.close()


@pytest.mark.parametrize("moment", BEFORE_THE_COMMIT)
def test_a_killed_import_leaves_no_part_of_a_library_and_the_next_start_tidies_up(
    nexus: Nexus, bookshelf: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    alive = nexus.app.imports.staging_folder() / "another"
    alive.touch()
    monkeypatch.setenv("DIE_IN", moment)
    killed = imported(nexus, bookshelf, moment)
    assert killed.code == -signal.SIGKILL, killed.tail()
    assert (count_media(nexus.app), research(nexus)) == (0, 0)
    assert len(workspaces(nexus)) == 2
    left = stored_paths(nexus.app)
    assert set(left) <= set(left_in_the_store(nexus, remove=True))  # and what was still on its way in
    assert (stored_paths(nexus.app), left_in_the_store(nexus)) == ([], [])
    again = imported(nexus, bookshelf)
    assert again.code == 0, again.tail()
    assert (count_media(nexus.app), research(nexus), len(stored_paths(nexus.app))) == (3, 1, 3)
    assert workspaces(nexus) == [alive.parent.parent]
    assert alive.exists()


def test_an_import_killed_after_its_commit_has_everything_once(
    nexus: Nexus, bookshelf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIE_IN", "after the commit")
    killed = imported(nexus, bookshelf, "after the commit")
    assert killed.code == -signal.SIGKILL, killed.tail()
    assert (count_media(nexus.app), research(nexus), len(stored_paths(nexus.app))) == (3, 1, 3)
    assert left_in_the_store(nexus) == []
    again = imported(nexus, bookshelf)
    assert again.code == 0, again.tail()
    assert (count_media(nexus.app), research(nexus), len(stored_paths(nexus.app))) == (3, 1, 3)
    assert workspaces(nexus) == []


def running(nexus: Nexus, me: Caller) -> Process:
    """A server that imports two files, and is in the middle of the second."""
    server = start_server(nexus)
    batch = open_batch(me)
    for name in ("quick.txt", "slow.txt"):
        data(stage_file(me, batch, name, f"{name} {SENTENCE}".encode()))
    data(me.post(f"/imports/batches/{batch}/start"))
    eventually(lambda: "slow.txt" in names_read(nexus), "the second is being read")
    return server


def names_read(nexus: Nexus) -> list[str]:
    path = nexus.folder / "read"
    return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def caller(nexus: Nexus) -> Iterator[Caller]:
    with Caller(server_url(nexus), nexus.app.settings, uuid4()) as caller:
        yield caller


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_stopped_import_commits_nothing_and_leaves_its_folder_to_the_next_start(
    nexus: Nexus, caller: Caller, sign: signal.Signals
) -> None:
    server = running(nexus, caller)
    began = time.monotonic()
    server.send(sign)
    code = server.wait()
    assert time.monotonic() - began < IN_TIME
    assert (code < 0) is (sign is signal.SIGKILL), server.tail()
    assert (count_media(nexus.app), research(nexus), stored_paths(nexus.app)) == (0, 0, [])
    (left,) = workspaces(nexus)
    again = start_server(nexus)
    assert left not in workspaces(nexus)
    assert wait_for_import(caller, "IDLE")["batches"] == []
    assert again.stop() == 0


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_cancels_imports_before_the_server_begins_to_wait_for_requests(
    sign: signal.Signals,
) -> None:
    waits: list[bool] = []
    server = Server(uvicorn.Config("no:app", log_config=None), lambda: None)
    server.stopping = lambda: waits.append(server.should_exit)
    server.handle_exit(sign, None)
    assert (waits, server.should_exit) == ([False], True)


class TestStoppedWhileAWorkerIsAtWork:
    """The server waits for the worker; by then the import must have been cancelled."""

    @pytest.fixture
    def nexus(self, sqlite_url: str, tmp_path: Path) -> Iterator[Nexus]:
        plugins = ("tests.kit.plugins.extract_by_url", "tests.kit.plugins.gated_imports")
        with installed(sqlite_url, tmp_path, port=servers.free_port(), plugins=plugins) as running:
            yield running

    @pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
    def test_a_stopping_server_cancels_its_import_before_its_worker_finishes(
        self, nexus: Nexus, caller: Caller, sign: signal.Signals
    ) -> None:
        server = start_server(nexus)
        article = post_url(nexus, "gated")
        eventually(nexus.starts, "a worker is in the middle of a fetch")
        batch = open_batch(caller)
        data(stage_file(caller, batch, "held.txt", SENTENCE.encode()))
        data(caller.post(f"/imports/batches/{batch}/start"))
        eventually(lambda: "held.txt" in names_read(nexus), "the import is in the middle of a file")
        with (
            Caller(server_url(nexus), nexus.app.settings, caller.user) as other,
            other.stream("GET", "/events"),
        ):
            server.send(sign)
            server.wait_for("import_closed")
        (nexus.folder / "held.txt").touch()
        server.wait_for("import_ends_with_the_process")
        assert [event["verb"] for event in server.events("import_moved")][-1] == "advance"
        nexus.open_gate()
        assert server.wait() == 0, server.tail()
        assert status_of(nexus.app.sessions, article) is MediaStatus.READY_FOR_READING
        assert (count_media(nexus.app), research(nexus), stored_paths(nexus.app)) == (1, 0, [])
        (left,) = workspaces(nexus)
        again = start_server(nexus)
        assert left not in workspaces(nexus)
        assert again.stop() == 0


class TestLogs:
    """No path, no file name, no text, at any level."""

    def test_logs_tell_a_whole_import_with_a_pause_and_a_failure(self, nexus: Nexus, caller: Caller) -> None:
        server = running(nexus, caller)
        data(caller.post("/imports/attempt/pause"))
        (batch,) = wait_for_import(caller, "PAUSED")["batches"]
        data(stage_file(caller, batch["id"], "torn.pdf", b"%PDF-1.4 nothing else"))
        (nexus.folder / "slow.txt").touch()
        data(caller.post("/imports/attempt/resume"))
        failed = wait_for_import(caller, "PAUSED")["batches"][0]["sources"][-1]
        assert (failed["name"], failed["outcome"]) == ("torn.pdf", "failed")
        data(caller.delete(f"/imports/batches/{batch['id']}/sources/{failed['id']}"))
        data(caller.post("/imports/attempt/resume"))
        wait_for_import(caller, "COMPLETE")
        assert server.stop() == 0
        assert {"import_moved", "import_stop_finished"} <= {event["event"] for event in server.events()}
        check_private(nexus, server, "quick", "slow.txt", "torn", "ferry")

    @pytest.mark.parametrize(
        ("moment", "said"), [("a full disk", "The disk is"), ("a lost disk", "E_INTERNAL")]
    )
    def test_logs_tell_an_import_that_ran_out_of_disk_space(
        self, nexus: Nexus, bookshelf: Path, monkeypatch: pytest.MonkeyPatch, moment: str, said: str
    ) -> None:
        monkeypatch.setenv("DIE_IN", moment)
        broken = imported(nexus, bookshelf, moment)
        assert broken.code == 1, broken.tail()
        assert said in broken.tail()
        assert bool(broken.events("import_broke")) is (moment == "a lost disk")
        assert (count_media(nexus.app), stored_paths(nexus.app)) == (0, [])
        check_private(nexus, broken, "Bookshelf", "anchor", "beacon", "cutter", "ferry")


def check_private(nexus: Nexus, process: Process, *words: str) -> None:
    """In the log; what a command prints for its user may name files."""
    logged = json.dumps(process.events())
    assert [word for word in (*words, str(nexus.folder)) if word in logged] == []
