"""A process frozen between a commit and the removal of an object never removes what others need by then."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from sqlalchemy import Integer, column, text

from nexus.db.session import Statement
from tests.kit import servers
from tests.kit.http import NO_CERTIFICATES, Caller, data, problem
from tests.kit.http_uploads import begin_upload, link_to
from tests.kit.installation import Nexus, installed, start_server
from tests.kit.plugins.freeze_once import FREEZE_AT, IDLE_SECONDS, MOMENTS, is_frozen
from tests.kit.processes import Process
from tests.kit.uploads import unique_pdf
from tests.kit.waiting import eventually

#: Transactions that have been idle for longer than they may be, unless somebody said that they may.
_LONG_IDLE = Statement(
    text(
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'"
        f" AND clock_timestamp() - state_change > interval '{4 * IDLE_SECONDS} seconds'"
    ).columns(column("pid", Integer))
)


@pytest.fixture
def nexus(own_postgres_url: str, tmp_path: Path) -> Iterator[Nexus]:
    plugins = ("tests.kit.plugins.extract_by_url", "tests.kit.plugins.freeze_once")
    with installed(own_postgres_url, tmp_path, plugins=plugins) as made:
        yield made


def serving(nexus: Nexus) -> tuple[Process, str]:
    """One more server of the same installation, and its address."""
    port = servers.free_port()
    return start_server(nexus, port), f"http://127.0.0.1:{port}"


def send(begun: dict[str, Any], body: bytes) -> None:
    sent = httpx2.put(
        begun["upload_url"], content=body, headers=begun["upload_headers"], verify=NO_CERTIFICATES
    )
    assert data(sent) == {"done": True}


def once_more(me: Caller, media_id: str, body: bytes) -> None:
    """The user tries again with a good file."""
    begun = data(me.post(f"/media/{media_id}/retry", timeout=60))["upload"]
    send(begun, body)
    assert data(me.post(f"/media/{media_id}/ingest", timeout=60))["media_id"] == media_id


def outlasted(nexus: Nexus, again: Future[None]) -> bool:
    """Either the user was not blocked, or the frozen process kept its lock beyond the idle limit."""
    with nexus.app.sessions.read() as session:
        return again.done() or session.first(_LONG_IDLE) is not None


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_server_that_freezes_while_it_refuses_an_upload_never_deletes_the_good_file_after_it(
    nexus: Nexus, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    monkeypatch.setenv(FREEZE_AT, moment)
    first, first_address = serving(nexus)
    monkeypatch.delenv(FREEZE_AT)
    _, second_address = serving(nexus)
    user, good = uuid4(), unique_pdf(500)
    with (
        Caller(first_address, nexus.app.settings, user) as at_first,
        Caller(second_address, nexus.app.settings, user) as at_second,
        ThreadPoolExecutor(2) as threads,
    ):
        begun = begin_upload(at_first, bytes(500))
        send(begun, bytes(500))
        media_id = begun["media_id"]
        refused = threads.submit(at_first.post, f"/media/{media_id}/ingest", timeout=120)
        eventually(lambda: is_frozen(first.pid), "the first server is frozen")
        again = threads.submit(once_more, at_second, media_id, good)
        try:
            eventually(lambda: outlasted(nexus, again), "the frozen server is left behind, or waited for")
        finally:
            first.send(signal.SIGCONT)
        again.result(60)
        assert problem(refused.result(60)) == (400, "E_INVALID_FILE_TYPE")
        assert httpx2.get(link_to(at_second, media_id), verify=NO_CERTIFICATES).content == good
