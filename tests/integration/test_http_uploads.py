"""Files over real HTTP: begun, sent to the link, confirmed, fetched again."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qsl, urlsplit
from uuid import uuid4

import pytest

from nexus.app import App
from nexus.extract import AVAILABLE_EXTRACTORS
from nexus.states.media import Kind
from tests.kit.clock import SetClock
from tests.kit.http import Caller, Site, data, problem
from tests.kit.http_uploads import (
    SIZE,
    begin_upload,
    changed_link,
    link_to,
    send_bytes,
    upload_fields,
    upload_file,
)
from tests.kit.media import good_extractor
from tests.kit.run_storage import run_prefix
from tests.kit.uploads import Uploader, count_media, stored_paths, unique_epub, unique_pdf


@pytest.mark.parametrize(
    ("kind", "body"), [("pdf", unique_pdf(SIZE)), ("epub", unique_epub())], ids=["pdf", "epub"]
)
def test_a_file_is_begun_sent_confirmed_and_downloaded(
    site: Site, me: Caller, kind: str, body: bytes
) -> None:
    begun = begin_upload(me, body, kind)
    assert set(begun) == {"media_id", "storage_path", "upload_url", "upload_headers", "expires_at"}
    assert begun["storage_path"] == f"{run_prefix()}media/{begun['media_id']}/original.{kind}"
    assert data(send_bytes(site, begun, body)) == {"done": True}
    done = data(me.post(f"/media/{begun['media_id']}/ingest"))
    assert done == {"media_id": begun["media_id"], "duplicate": False, "enqueued": False}
    assert data(me.get(f"/media/{begun['media_id']}"))["capabilities"]["can_download_file"]
    answer = site.anyone().get(link_to(me, begun["media_id"]))
    assert (answer.status_code, answer.content) == (200, body)


def test_an_upload_can_be_begun_by_the_general_call(site: Site, me: Caller) -> None:
    body = unique_pdf()
    begun = data(me.post("/media", json=upload_fields(body)))
    assert send_bytes(site, begun, body).status_code == 200
    assert data(me.post(f"/media/{begun['media_id']}/ingest"))["media_id"] == begun["media_id"]


def test_uploading_a_file_again_answers_with_the_first_media(site: Site, me: Caller) -> None:
    body = unique_pdf()
    first, begun = upload_file(site, me, body), begin_upload(me, body)
    send_bytes(site, begun, body)
    for _ in range(2):
        done = data(me.post(f"/media/{begun['media_id']}/ingest"))
        assert (done["media_id"], done["duplicate"]) == (first, True)
    assert problem(me.get(f"/media/{begun['media_id']}")) == (404, "E_NOT_FOUND")


def test_a_confirmed_upload_is_enqueued(site: Site, me: Caller) -> None:
    AVAILABLE_EXTRACTORS[Kind.PDF] = good_extractor
    body = unique_pdf()
    begun = begin_upload(me, body)
    send_bytes(site, begun, body)
    assert data(me.post(f"/media/{begun['media_id']}/ingest"))["enqueued"]


def test_a_failed_upload_can_be_replaced_by_a_good_file(site: Site, me: Caller) -> None:
    begun = begin_upload(me, b"no pdf")
    send_bytes(site, begun, b"no pdf")
    path = f"/media/{begun['media_id']}"
    assert problem(me.post(f"{path}/ingest")) == (400, "E_INVALID_FILE_TYPE")
    assert problem(me.post(f"{path}/ingest")) == (409, "E_INVALID_STATE")
    assert problem(me.get(f"{path}/file")) == (404, "E_NOT_FOUND")
    body = unique_pdf(SIZE)
    again = data(me.post(f"{path}/retry", json=upload_fields(body)))
    assert (again["media_id"], again["enqueued"]) == (begun["media_id"], False)
    assert send_bytes(site, again["upload"], body).status_code == 200
    assert data(me.post(f"{path}/ingest"))["media_id"] == begun["media_id"]


def test_a_deleted_file_can_no_longer_be_downloaded(site: Site, me: Caller) -> None:
    media_id = upload_file(site, me, unique_pdf())
    link = link_to(me, media_id)
    data(me.delete(f"/media/{media_id}"))
    assert problem(site.anyone().get(link)) == (404, "E_NOT_FOUND")
    assert stored_paths(site.app) == []


def test_deleting_a_library_deletes_its_files(site: Site, me: Caller) -> None:
    media_id, library = upload_file(site, me, unique_pdf()), me.library()
    data(me.post(f"/libraries/{library}/media", json={"media_id": media_id}))
    data(me.delete(f"/libraries/{me.default_library()}/media/{media_id}"))
    assert len(stored_paths(site.app)) == 1
    data(me.delete(f"/libraries/{library}"))
    assert stored_paths(site.app) == []


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        ({"kind": "video"}, 400, "E_INVALID_KIND"),
        ({"kind": "web_article"}, 400, "E_INVALID_KIND"),
        ({"content_type": "text/html"}, 400, "E_INVALID_FILE_TYPE"),
        ({"size_bytes": 0}, 400, "E_INVALID_REQUEST"),
        ({"size_bytes": -5}, 400, "E_INVALID_REQUEST"),
        ({"size_bytes": 100 * 2**20 + 1}, 413, "E_FILE_TOO_LARGE"),
        ({"size_bytes": 2**63}, 400, "E_INVALID_REQUEST"),
        ({"size_bytes": "many"}, 400, "E_INVALID_REQUEST"),
        ({"filename": ""}, 400, "E_INVALID_REQUEST"),
        ({"filename": "../"}, 400, "E_INVALID_REQUEST"),
        ({"filename": "x" * 300}, 400, "E_INVALID_REQUEST"),
        ({"filename": None}, 400, "E_INVALID_REQUEST"),
        ({"user_id": str(uuid4())}, 400, "E_INVALID_REQUEST"),
    ],
)
def test_an_upload_with_invalid_fields_is_refused(
    app: App, me: Caller, changes: dict[str, Any], status: int, code: str
) -> None:
    given = upload_fields(unique_pdf(), **changes)
    for path in ("/media/upload/init", "/media"):
        assert problem(me.post(path, json=given))[0] == status
    assert problem(me.post("/media/upload/init", json=given)) == (status, code)
    assert count_media(app) == 0


def test_confirming_before_the_bytes_arrived_is_refused(me: Caller, clock: SetClock) -> None:
    begun = begin_upload(me, unique_pdf())
    for _ in range(2):
        answer = me.post(f"/media/{begun['media_id']}/ingest")
        assert problem(answer) == (400, "E_STORAGE_MISSING")
    assert data(me.get(f"/media/{begun['media_id']}"))["processing_status"] == "pending"
    clock.forward(minutes=6)
    assert problem(me.post(f"/media/{begun['media_id']}/ingest")) == (400, "E_UPLOAD_EXPIRED")


def test_somebody_elses_upload_can_not_be_confirmed(site: Site, me: Caller) -> None:
    begun, other = begin_upload(me, unique_pdf()), site.caller()
    assert problem(other.post(f"/media/{begun['media_id']}/ingest")) == (404, "E_NOT_FOUND")
    assert problem(other.get(f"/media/{begun['media_id']}/file")) == (404, "E_NOT_FOUND")


def test_links_and_signatures_are_never_logged(
    site: Site, me: Caller, capsys: pytest.CaptureFixture[str]
) -> None:
    begun = begin_upload(me, body := unique_pdf(), filename="a secret name.pdf")
    send_bytes(site, begun, b"wrong")
    send_bytes(site, begun, body)
    send_bytes(site, begun, body)
    data(me.post(f"/media/{begun['media_id']}/ingest"))
    link = link_to(me, begun["media_id"])
    site.anyone().get(link)
    site.anyone().get(changed_link(link, expires="1"))
    logged = capsys.readouterr().out
    assert '"event": "request"' in logged
    for url in (begun["upload_url"], link):
        assert dict(parse_qsl(urlsplit(url).query))["signature"] not in logged
    assert not re.search(r"signature|expires=|secret name", logged)


def test_a_download_carries_the_extension_of_its_kind(app: App, me: Caller) -> None:
    """A PDF that was uploaded as a web page is never saved as one."""
    media_id = Uploader(app, me.user).upload(unique_pdf(), filename="quarterly.html")
    link = data(me.get(f"/media/{media_id}/file"))["url"]
    saved = me.get(link).headers["content-disposition"]
    assert "quarterly.pdf" in saved
    assert "html" not in saved
