"""A disk that is full, or that refuses: an answer that says so and what to do, no traceback, and nothing half-done."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from nexus.app import App, build
from nexus.errors import FileUnreachable, NotReady, StorageFull
from nexus.extract import Fetched
from nexus.imports.workspaces import STAGED
from nexus.media import uploads
from nexus.media.workbench import Bench
from nexus.storage.local import DRAFTS, Local
from tests.disks import full_disk, stuck, without_drafts
from tests.files import PDF, Person, count, expected, pdf, stored
from tests.http import Caller, Site, data, problem, serve
from tests.integration.test_http_uploads import begin, send, upload
from tests.support import SetClock, make_settings, new_media, row_of
from tests.walks import events_of

MIB = 2**20


@pytest.fixture
def site(sqlite_url: str, tmp_path: Path, clock: SetClock) -> Iterator[Site]:
    app = build(make_settings(sqlite_url, tmp_path), clock)
    with serve(app) as running:
        yield running
    app.close()


@pytest.fixture
def me(site: Site) -> Caller:
    return site.caller()


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Iterator[None]:
    """Whatever happens, no traceback is logged."""
    yield
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err
    assert "request_broke" not in out + err


def local(app: App) -> Local:
    assert isinstance(app.files.storage, Local)
    return app.files.storage


def left(app: App) -> list[str]:
    """Objects and drafts."""
    return stored(app) + [draft.path for draft in local(app).drafts()]


@pytest.mark.usefixtures("said")
@pytest.mark.parametrize("size", [500, 3 * MIB, 30 * MIB])
def test_a_put_onto_a_full_disk_is_507_and_leaves_nothing(
    site: Site, me: Caller, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    body = pdf(size)
    begun = begin(me, body)
    with monkeypatch.context() as full:
        full_disk(full, DRAFTS)
        answer = send(site, begun, body)
        assert problem(answer) == (507, "E_STORAGE_FULL")
        assert "Free some disk space" in answer.json()["error"]["message"]
        assert left(site.app) == []
    assert send(site, begun, body).status_code == 200
    assert data(me.post(f"/media/{begun['media_id']}/ingest"))["media_id"] == begun["media_id"]


@pytest.mark.usefixtures("said")
def test_a_put_into_a_store_that_refuses_is_503(site: Site, me: Caller) -> None:
    without_drafts(local(site.app))
    begun = begin(me, body := pdf())
    assert problem(send(site, begun, body)) == (503, "E_NOT_READY")
    assert stored(site.app) == []


@pytest.mark.usefixtures("said")
def test_a_deletion_is_done_also_if_the_object_can_not_be_removed(site: Site, me: Caller) -> None:
    media_id = upload(site, me, pdf())
    stuck(local(site.app), f"{site.app.files.prefix}media/{media_id}/original.pdf")
    assert data(me.delete(f"/media/{media_id}")) == {"done": True}
    assert problem(me.get(f"/media/{media_id}")) == (404, "E_NOT_FOUND")
    assert row_of(site.app.sessions, UUID(media_id)) is None


@pytest.mark.usefixtures("said")
def test_a_confirmation_of_what_can_not_be_read_is_503_and_changes_nothing(site: Site, me: Caller) -> None:
    begun = begin(me, pdf())
    stuck(local(site.app), begun["storage_path"])
    assert problem(me.post(f"/media/{begun['media_id']}/ingest")) == (503, "E_NOT_READY")
    assert events_of(site.app.sessions, UUID(begun["media_id"])) == ["create"]


@pytest.mark.usefixtures("said")
def test_a_bad_upload_is_refused_also_if_it_can_not_be_removed(
    site: Site, me: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = begin(me, body := bytes(500))
    assert send(site, begun, body).status_code == 200
    real = Path.unlink

    def unlink(path: Path, missing_ok: bool = False) -> None:
        if path.name == "original.pdf":
            raise PermissionError(1, "Operation not permitted", str(path))
        real(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", unlink)
    assert problem(me.post(f"/media/{begun['media_id']}/ingest")) == (400, "E_INVALID_FILE_TYPE")
    assert problem(me.post(f"/media/{begun['media_id']}/retry")) == (502, "E_SIGN_UPLOAD_FAILED")
    monkeypatch.undo()
    assert data(me.post(f"/media/{begun['media_id']}/retry"))["upload"]["media_id"] == begun["media_id"]
    assert stored(site.app) == []


def test_a_file_at_hand_is_refused_and_forgotten(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    body, me = pdf(), Person(app)
    with monkeypatch.context() as full:
        full_disk(full, DRAFTS)
        with pytest.raises(StorageFull):
            uploads.take_in(app.sessions, app.files, me.id, expected(body), [body])
    assert (count(app), left(app)) == (0, [])
    (local(app).folder / DRAFTS).rmdir()
    without_drafts(local(app))
    with pytest.raises(NotReady):
        uploads.take_in(app.sessions, app.files, me.id, expected(body), [body])
    assert (count(app), stored(app)) == (0, [])


def test_the_pdf_of_an_address_waits_for_room(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    row = row_of(app.sessions, new_media(app))
    full_disk(monkeypatch, DRAFTS)
    with pytest.raises(FileUnreachable):
        Bench(app.tools, row, attempt=1).keep(Fetched("https://example.com/a", 200, PDF, None, pdf()))
    assert left(app) == []


@pytest.mark.usefixtures("said")
@pytest.mark.parametrize("size", [500, 3 * MIB])
def test_a_file_staged_onto_a_full_disk_is_refused_with_what_to_do(
    site: Site, me: Caller, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    batch = data(me.post("/imports/batches", json={}))["id"]
    with monkeypatch.context() as full:
        full_disk(full, STAGED)
        answer = me.post(f"/imports/batches/{batch}/sources", params={"name": "a.pdf"}, content=pdf(size))
        assert problem(answer) == (503, "E_NOT_READY")
        assert "Free some disk space" in answer.json()["error"]["message"]
    (shown,) = data(me.get("/imports"))["batches"]
    assert shown["sources"] == []
    assert list(site.app.imports.room().iterdir()) == []
    sent = me.post(f"/imports/batches/{batch}/sources", params={"name": "a.pdf"}, content=pdf(size))
    assert data(sent)["name"] == "a.pdf"
