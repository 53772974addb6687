"""Uploads whose process is killed: no half file is ever a file, and what is left behind can be put right."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import httpx2
import pytest

from nexus.app import App, build
from nexus.media import uploads
from nexus.settings import Settings
from nexus.storage.local import Local
from nexus.upkeep import clean, doctor
from nexus.upkeep.doctor import Patient, Verdict
from tests import servers
from tests.deadly import confirm, delete, killed, take_in
from tests.files import PDF, Person, count, pdf, stored
from tests.integration.test_faults_local import address, served
from tests.processes import eventually, installed
from tests.support import make_settings, row_of
from tests.walks import events_of, status_of

MIB = 2**20


@pytest.fixture
def settings(database_url: str, tmp_path: Path) -> Settings:
    return make_settings(database_url, tmp_path, internal_secret="i" * 40)


@pytest.fixture
def app(settings: Settings) -> Iterator[App]:
    built = build(settings)
    yield built
    built.close()


@contextmanager
def days_later(settings: Settings, days: float) -> Iterator[App]:
    built = build(settings, lambda: datetime.now(UTC) + timedelta(days=days))
    yield built
    built.close()


def cleaned(app: App) -> list[str]:
    return [found.what for found in clean.clean(app.sessions, app.files, remove=True)]


def complaints(app: App) -> dict[str, Verdict]:
    """What the doctor says of rows and files; nobody works here, which is not the matter."""
    findings = doctor.examine(Patient(app.settings, app.sessions, app.tools.extractors, app.files))
    return {f.name: f.verdict for f in findings if f.verdict is not Verdict.OK and "work" not in f.name}


def put_right(settings: Settings, *what: str) -> None:
    """The next day: exactly this is found, and after it nothing; the doctor is content."""
    with days_later(settings, 2) as later:
        assert cleaned(later) == list(what)
        assert cleaned(later) == []
        assert complaints(later) == {}


def test_killed_while_it_reads_changes_nothing(app: App, settings: Settings) -> None:
    me = Person(app)
    media_id = me.sent(pdf())
    killed(settings, "stream", confirm, me.id, media_id)
    assert events_of(app.sessions, media_id) == ["create"]
    assert me.confirm(media_id).media_id == media_id
    put_right(settings)


def test_killed_before_a_bad_file_is_removed(app: App, settings: Settings) -> None:
    me = Person(app)
    media_id = me.sent(b"no pdf")
    killed(settings, "delete", confirm, me.id, media_id)
    assert events_of(app.sessions, media_id) == ["create", "fail"]
    assert len(stored(app)) == 1
    put_right(settings, "an object that no media has")
    assert row_of(app.sessions, media_id).last_error_code == "E_INVALID_FILE_TYPE"


def test_killed_before_the_loser_of_two_twins_is_removed(app: App, settings: Settings) -> None:
    me, body = Person(app), pdf()
    first, second = me.upload(body), me.sent(body)
    killed(settings, "delete", confirm, me.id, second)
    assert len(stored(app)) == 2
    put_right(settings, "an object that no media has")
    assert me.confirm(second).media_id == first
    assert stored(app) == [app.files.path(first, uploads.Kind.PDF)]


def test_killed_between_the_deletion_and_its_objects(app: App, settings: Settings) -> None:
    me = Person(app)
    media_id = me.upload(pdf())
    killed(settings, "delete", delete, me.id, media_id)
    assert (count(app), len(stored(app))) == (0, 1)
    put_right(settings, "an object that no media has")
    assert stored(app) == []


def test_killed_while_a_file_at_hand_is_put(app: App, settings: Settings) -> None:
    killed(settings, "put", take_in, Person(app).id, pdf())
    assert (count(app), stored(app)) == (1, [])
    put_right(settings, "an upload that was never confirmed", "an upload that broke off")
    assert count(app) == 0


def test_nothing_of_it_is_removed_too_early(app: App, settings: Settings) -> None:
    """An hour is long enough for an object that nobody knows; a day for an upload that is on its way."""
    me = Person(app)
    media_id = me.upload(pdf())
    killed(settings, "delete", delete, me.id, media_id)
    killed(settings, "put", take_in, me.id, pdf())
    me.sent(pdf())
    assert cleaned(app) == []
    with days_later(settings, 0.5) as later:
        assert cleaned(later) == ["an object that no media has"]
        assert count(later) == 2


def test_a_server_that_is_killed_during_an_upload_serves_no_half_file(
    sqlite_url: str, tmp_path: Path
) -> None:
    with installed(sqlite_url, tmp_path, port=servers.free_port()) as nexus:
        server = served(nexus)
        me, body = Person(nexus.app), pdf(3 * MIB)
        begun = me.begin(body)
        link = urljoin(address(nexus), begun.target.url)
        storage = nexus.app.files.storage
        assert isinstance(storage, Local)
        with half_sent(link, body):
            eventually(lambda: sum(d.size for d in storage.drafts()) >= MIB, "a part of it is written")
            server.kill()
        assert stored(nexus.app) == []
        served(nexus)
        assert storage.head(begun.storage_path) is None
        answer = httpx2.put(link, content=body, headers=dict(begun.target.headers))
        assert answer.status_code == 200
        assert me.confirm(begun.media_id).media_id == begun.media_id
        assert status_of(nexus.app.sessions, begun.media_id)
        with days_later(nexus.app.settings, 2) as later:
            assert cleaned(later) == ["an upload that broke off"]
            assert list(storage.drafts()) == []
        assert b"".join(storage.stream(begun.storage_path)) == body


@contextmanager
def half_sent(link: str, body: bytes) -> Iterator[None]:
    """A client that has sent two thirds and waits."""
    parts = urlsplit(link)
    head = f"PUT {parts.path}?{parts.query} HTTP/1.1\r\nHost: x\r\nContent-Type: {PDF}\r\n"
    with socket.create_connection((parts.hostname, parts.port)) as connection:
        connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode())
        connection.sendall(body[: 2 * MIB])
        yield
