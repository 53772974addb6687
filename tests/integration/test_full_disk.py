"""A disk that is full or fails: an answer that says so and what to do, no traceback, and nothing half-done."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from nexus.app import App
from nexus.errors import FileUnreachable, NotReady, StorageFull
from nexus.extract import Fetched
from nexus.imports.workspaces import STAGED
from nexus.media import uploads
from nexus.media.workbench import Bench
from nexus.storage.local import PARTS, LocalStorage
from tests.kit.faults.broken_disks import full_disk, stuck, without_drafts
from tests.kit.http import Caller, Site, data, problem
from tests.kit.http_uploads import begin_upload, send_bytes, upload_file
from tests.kit.media import events_of, new_media, row_of
from tests.kit.uploads import PDF, Uploader, count_media, expected_upload, stored_paths, unique_pdf

MIB = 2**20


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Iterator[None]:
    """Whatever happens, no traceback is logged."""
    yield
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err
    assert "request_broke" not in out + err


def local(app: App) -> LocalStorage:
    assert isinstance(app.files.storage, LocalStorage)
    return app.files.storage


def left(app: App) -> list[str]:
    """Objects and drafts."""
    return stored_paths(app) + [draft.path for draft in local(app).partial_files()]


@pytest.mark.usefixtures("said")
@pytest.mark.parametrize("size", [500, 3 * MIB, 30 * MIB])
def test_an_upload_to_a_full_disk_is_507_and_leaves_nothing(
    site: Site, me: Caller, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    body = unique_pdf(size)
    begun = begin_upload(me, body)
    with monkeypatch.context() as full:
        full_disk(full, PARTS)
        answer = send_bytes(site, begun, body)
        assert problem(answer) == (507, "E_STORAGE_FULL")
        assert "Free some disk space" in answer.json()["error"]["message"]
        assert left(site.app) == []
    assert send_bytes(site, begun, body).status_code == 200
    assert data(me.post(f"/media/{begun['media_id']}/ingest"))["media_id"] == begun["media_id"]


@pytest.mark.usefixtures("said")
def test_an_upload_to_a_broken_store_is_503(site: Site, me: Caller) -> None:
    without_drafts(local(site.app))
    begun = begin_upload(me, body := unique_pdf())
    assert problem(send_bytes(site, begun, body)) == (503, "E_NOT_READY")
    assert stored_paths(site.app) == []


@pytest.mark.usefixtures("said")
def test_an_item_is_deleted_even_if_its_object_can_not_be_removed(site: Site, me: Caller) -> None:
    media_id = upload_file(site, me, unique_pdf())
    stuck(local(site.app), f"{site.app.files.prefix}media/{media_id}/original.pdf")
    assert data(me.delete(f"/media/{media_id}")) == {"done": True}
    assert problem(me.get(f"/media/{media_id}")) == (404, "E_NOT_FOUND")
    assert row_of(site.app.sessions, UUID(media_id)) is None


@pytest.mark.usefixtures("said")
def test_confirming_an_unreadable_object_is_503_and_changes_nothing(site: Site, me: Caller) -> None:
    begun = begin_upload(me, unique_pdf())
    stuck(local(site.app), begun["storage_path"])
    assert problem(me.post(f"/media/{begun['media_id']}/ingest")) == (503, "E_NOT_READY")
    assert events_of(site.app.sessions, UUID(begun["media_id"])) == ["create"]


@pytest.mark.usefixtures("said")
def test_a_bad_upload_is_refused_even_if_it_can_not_be_removed(
    site: Site, me: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = begin_upload(me, body := bytes(500))
    assert send_bytes(site, begun, body).status_code == 200
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
    assert stored_paths(site.app) == []


def test_a_local_file_that_does_not_fit_is_refused_and_forgotten(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    body, me = unique_pdf(), Uploader(app)
    with monkeypatch.context() as full:
        full_disk(full, PARTS)
        with pytest.raises(StorageFull):
            uploads.take_in(app.sessions, app.files, me.id, expected_upload(body), [body])
    assert (count_media(app), left(app)) == (0, [])
    (local(app).folder / PARTS).rmdir()
    without_drafts(local(app))
    with pytest.raises(NotReady):
        uploads.take_in(app.sessions, app.files, me.id, expected_upload(body), [body])
    assert (count_media(app), stored_paths(app)) == (0, [])


def test_a_fetched_pdf_waits_for_room_on_the_disk(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    row = row_of(app.sessions, new_media(app))
    full_disk(monkeypatch, PARTS)
    with pytest.raises(FileUnreachable):
        Bench(app.tools, row, attempt=1).keep(Fetched("https://example.com/a", 200, PDF, None, unique_pdf()))
    assert left(app) == []


@pytest.mark.usefixtures("said")
@pytest.mark.parametrize("size", [500, 3 * MIB])
def test_a_file_staged_onto_a_full_disk_is_refused_with_what_to_do(
    site: Site, me: Caller, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    batch = data(me.post("/imports/batches", json={}))["id"]
    with monkeypatch.context() as full:
        full_disk(full, STAGED)
        answer = me.post(
            f"/imports/batches/{batch}/sources", params={"name": "a.pdf"}, content=unique_pdf(size)
        )
        assert problem(answer) == (503, "E_NOT_READY")
        assert "Free some disk space" in answer.json()["error"]["message"]
    (shown,) = data(me.get("/imports"))["batches"]
    assert shown["sources"] == []
    assert list(site.app.imports.staging_folder().iterdir()) == []
    sent = me.post(f"/imports/batches/{batch}/sources", params={"name": "a.pdf"}, content=unique_pdf(size))
    assert data(sent)["name"] == "a.pdf"
