"""Uploads whose process is killed: half a file never becomes a file, and leftovers can be cleaned up."""

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
from nexus.storage.local import LocalStorage
from nexus.upkeep import clean, doctor
from nexus.upkeep.doctor import CheckVerdict, Patient
from tests.kit import servers
from tests.kit.faults.killed_in_storage import confirm, delete, kill_during, take_in
from tests.kit.http import NO_CERTIFICATES
from tests.kit.installation import installed, server_url, start_server
from tests.kit.media import events_of, row_of, status_of
from tests.kit.settings import make_settings
from tests.kit.uploads import PDF, Uploader, count_media, stored_paths, unique_pdf
from tests.kit.waiting import eventually

pytestmark = pytest.mark.wall_clock

MIB = 2**20


@pytest.fixture
def settings(database_url: str, tmp_path: Path) -> Settings:
    return make_settings(database_url, tmp_path, internal_secret="i" * 40)


@contextmanager
def days_later(settings: Settings, days: float) -> Iterator[App]:
    built = build(settings, lambda: datetime.now(UTC) + timedelta(days=days))
    yield built
    built.close()


def cleaned(app: App) -> list[str]:
    return [found.what for found in clean.find_leftovers(app.sessions, app.files, remove=True)]


def complaints(app: App) -> dict[str, CheckVerdict]:
    """The doctor's complaints about rows and files, leaving out that no worker runs."""
    findings = doctor.examine(Patient(app.settings, app.sessions, app.tools.extractors, app.files))
    return {f.name: f.verdict for f in findings if f.verdict is not CheckVerdict.OK and "work" not in f.name}


def put_right(settings: Settings, *what: str) -> None:
    """The next day, clean finds exactly this, and nothing afterwards; the doctor is content."""
    with days_later(settings, 2) as later:
        assert cleaned(later) == list(what)
        assert cleaned(later) == []
        assert complaints(later) == {}


def test_a_confirmation_killed_while_it_reads_changes_nothing(app: App, settings: Settings) -> None:
    me = Uploader(app)
    media_id = me.sent(unique_pdf())
    kill_during(settings, "stream", confirm, me.id, media_id)
    assert events_of(app.sessions, media_id) == ["create"]
    assert me.confirm(media_id).media_id == media_id
    put_right(settings)


def test_a_confirmation_killed_before_a_bad_file_is_removed_leaves_a_failed_upload(
    app: App, settings: Settings
) -> None:
    me = Uploader(app)
    media_id = me.sent(b"no pdf")
    kill_during(settings, "delete", confirm, me.id, media_id)
    assert events_of(app.sessions, media_id) == ["create", "fail"]
    assert len(stored_paths(app)) == 1
    put_right(settings, "a file that belongs to no item")
    assert row_of(app.sessions, media_id).last_error_code == "E_INVALID_FILE_TYPE"


def test_a_confirmation_killed_before_a_duplicate_is_removed_leaves_one_media(
    app: App, settings: Settings
) -> None:
    me, body = Uploader(app), unique_pdf()
    first, second = me.upload(body), me.sent(body)
    kill_during(settings, "delete", confirm, me.id, second)
    assert len(stored_paths(app)) == 2
    put_right(settings, "a file that belongs to no item")
    assert me.confirm(second).media_id == first
    assert stored_paths(app) == [app.files.path(first, uploads.Kind.PDF)]


def test_a_deletion_killed_before_its_objects_are_removed_leaves_them_to_clean(
    app: App, settings: Settings
) -> None:
    me = Uploader(app)
    media_id = me.upload(unique_pdf())
    kill_during(settings, "delete", delete, me.id, media_id)
    assert (count_media(app), len(stored_paths(app))) == (0, 1)
    put_right(settings, "a file that belongs to no item")
    assert stored_paths(app) == []


def test_an_addition_killed_while_its_file_is_stored_is_cleaned_up(app: App, settings: Settings) -> None:
    kill_during(settings, "put", take_in, Uploader(app).id, unique_pdf())
    assert (count_media(app), stored_paths(app)) == (1, [])
    put_right(settings, "an upload that was never confirmed", "an upload that broke off")
    assert count_media(app) == 0


def test_clean_does_not_remove_leftovers_of_killed_uploads_too_early(app: App, settings: Settings) -> None:
    """Orphaned objects go after an hour, unfinished uploads after a day."""
    me = Uploader(app)
    media_id = me.upload(unique_pdf())
    kill_during(settings, "delete", delete, me.id, media_id)
    kill_during(settings, "put", take_in, me.id, unique_pdf())
    me.sent(unique_pdf())
    assert cleaned(app) == []
    with days_later(settings, 0.5) as later:
        assert cleaned(later) == ["a file that belongs to no item"]
        assert count_media(later) == 2


def test_a_server_that_is_killed_during_an_upload_serves_no_half_file(
    sqlite_url: str, tmp_path: Path
) -> None:
    with installed(sqlite_url, tmp_path, port=servers.free_port()) as nexus:
        server = start_server(nexus)
        me, body = Uploader(nexus.app), unique_pdf(3 * MIB)
        begun = me.begin(body)
        link = urljoin(server_url(nexus), begun.target.url)
        storage = nexus.app.files.storage
        assert isinstance(storage, LocalStorage)
        with half_sent(link, body):
            eventually(lambda: sum(d.size for d in storage.partial_files()) >= MIB, "a part of it is written")
            server.kill()
        assert stored_paths(nexus.app) == []
        start_server(nexus)
        assert storage.head(begun.storage_path) is None
        answer = httpx2.put(link, content=body, headers=dict(begun.target.headers), verify=NO_CERTIFICATES)
        assert answer.status_code == 200
        assert me.confirm(begun.media_id).media_id == begun.media_id
        assert status_of(nexus.app.sessions, begun.media_id)
        with days_later(nexus.app.settings, 2) as later:
            assert cleaned(later) == ["an upload that broke off"]
            assert list(storage.partial_files()) == []
        assert b"".join(storage.stream(begun.storage_path)) == body


@contextmanager
def half_sent(link: str, body: bytes) -> Iterator[None]:
    """A client that has sent two thirds and waits."""
    parts = urlsplit(link)
    head = f"PUT {parts.path}?{parts.query} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {PDF}\r\n"
    with socket.create_connection((parts.hostname, parts.port)) as connection:
        connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode())
        connection.sendall(body[: 2 * MIB])
        yield
