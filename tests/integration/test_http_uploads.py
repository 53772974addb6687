"""Files over real HTTP: begun, sent to the link, confirmed, fetched again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit
from uuid import uuid4

import httpx2
import pytest

from nexus.app import App
from nexus.extract import AVAILABLE_EXTRACTORS
from nexus.states.media import Kind
from tests.files import EPUB, PDF, count, epub, pdf, stored
from tests.http import Caller, Site, data, problem, serve
from tests.runs import run_prefix
from tests.support import SetClock
from tests.walks import good

SIZE = 500


@pytest.fixture
def site(app: App) -> Iterator[Site]:
    with serve(app) as running:
        yield running


@pytest.fixture
def me(site: Site) -> Caller:
    return site.caller()


def fields(body: bytes, kind: str = "pdf", **changes: Any) -> dict[str, Any]:
    given = {
        "kind": kind,
        "filename": f"a file.{kind}",
        "content_type": PDF if kind == "pdf" else EPUB,
        "size_bytes": len(body),
    }
    return {**given, **changes}


def begin(me: Caller, body: bytes, kind: str = "pdf", **changes: Any) -> dict[str, Any]:
    begun: dict[str, Any] = data(me.post("/media/upload/init", json=fields(body, kind, **changes)))
    return begun


def send(site: Site, begun: dict[str, Any], body: bytes) -> httpx2.Response:
    """As anyone: the link is what opens."""
    return site.anyone().put(begun["upload_url"], content=body, headers=begun["upload_headers"])


def upload(site: Site, me: Caller, body: bytes, kind: str = "pdf", **changes: Any) -> str:
    begun = begin(me, body, kind, **changes)
    assert data(send(site, begun, body)) == {"done": True}
    return str(data(me.post(f"/media/{begun['media_id']}/ingest"))["media_id"])


def link_to(me: Caller, media_id: str) -> str:
    return str(data(me.get(f"/media/{media_id}/file"))["url"])


def changed(url: str, **changes: str | None) -> str:
    """The same link with other parameters; None leaves one out."""
    parts = urlsplit(url)
    query = {**dict(parse_qsl(parts.query)), **changes}
    return parts._replace(query=urlencode({k: v for k, v in query.items() if v is not None})).geturl()


class TestTheWholeWay:
    @pytest.mark.parametrize(("kind", "body"), [("pdf", pdf(SIZE)), ("epub", epub())], ids=["pdf", "epub"])
    def test_of_a_file(self, site: Site, me: Caller, kind: str, body: bytes) -> None:
        begun = begin(me, body, kind)
        assert set(begun) == {"media_id", "storage_path", "upload_url", "upload_headers", "expires_at"}
        assert begun["storage_path"] == f"{run_prefix()}media/{begun['media_id']}/original.{kind}"
        assert data(send(site, begun, body)) == {"done": True}
        done = data(me.post(f"/media/{begun['media_id']}/ingest"))
        assert done == {"media_id": begun["media_id"], "duplicate": False, "enqueued": False}
        assert data(me.get(f"/media/{begun['media_id']}"))["capabilities"]["can_download_file"]
        answer = site.anyone().get(link_to(me, begun["media_id"]))
        assert (answer.status_code, answer.content) == (200, body)

    def test_begun_by_the_general_call(self, site: Site, me: Caller) -> None:
        body = pdf()
        begun = data(me.post("/media", json=fields(body)))
        assert send(site, begun, body).status_code == 200
        assert data(me.post(f"/media/{begun['media_id']}/ingest"))["media_id"] == begun["media_id"]

    def test_of_a_file_that_one_has(self, site: Site, me: Caller) -> None:
        body = pdf()
        first, begun = upload(site, me, body), begin(me, body)
        send(site, begun, body)
        for _ in range(2):
            done = data(me.post(f"/media/{begun['media_id']}/ingest"))
            assert (done["media_id"], done["duplicate"]) == (first, True)
        assert problem(me.get(f"/media/{begun['media_id']}")) == (404, "E_NOT_FOUND")

    def test_work_is_announced(self, site: Site, me: Caller) -> None:
        AVAILABLE_EXTRACTORS[Kind.PDF] = good
        body = pdf()
        begun = begin(me, body)
        send(site, begun, body)
        assert data(me.post(f"/media/{begun['media_id']}/ingest"))["enqueued"]

    def test_of_an_upload_that_failed_and_was_made_good(self, site: Site, me: Caller) -> None:
        begun = begin(me, b"no pdf")
        send(site, begun, b"no pdf")
        path = f"/media/{begun['media_id']}"
        assert problem(me.post(f"{path}/ingest")) == (400, "E_INVALID_FILE_TYPE")
        assert problem(me.post(f"{path}/ingest")) == (409, "E_INVALID_STATE")
        assert problem(me.get(f"{path}/file")) == (404, "E_NOT_FOUND")
        body = pdf(SIZE)
        again = data(me.post(f"{path}/retry", json=fields(body)))
        assert (again["media_id"], again["enqueued"]) == (begun["media_id"], False)
        assert send(site, again["upload"], body).status_code == 200
        assert data(me.post(f"{path}/ingest"))["media_id"] == begun["media_id"]

    def test_of_a_deleted_file(self, site: Site, me: Caller) -> None:
        media_id = upload(site, me, pdf())
        link = link_to(me, media_id)
        data(me.delete(f"/media/{media_id}"))
        assert problem(site.anyone().get(link)) == (404, "E_NOT_FOUND")
        assert stored(site.app) == []

    def test_of_a_library_that_is_deleted(self, site: Site, me: Caller) -> None:
        media_id, library = upload(site, me, pdf()), me.library()
        data(me.post(f"/libraries/{library}/media", json={"media_id": media_id}))
        data(me.delete(f"/libraries/{me.default_library()}/media/{media_id}"))
        assert len(stored(site.app)) == 1
        data(me.delete(f"/libraries/{library}"))
        assert stored(site.app) == []


class TestBegin:
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
    def test_what_can_not_come_is_refused(
        self, app: App, me: Caller, changes: dict[str, Any], status: int, code: str
    ) -> None:
        given = fields(pdf(), **changes)
        for path in ("/media/upload/init", "/media"):
            assert problem(me.post(path, json=given))[0] == status
        assert problem(me.post("/media/upload/init", json=given)) == (status, code)
        assert count(app) == 0

    def test_confirming_before_the_bytes_came(self, me: Caller, clock: SetClock) -> None:
        begun = begin(me, pdf())
        for _ in range(2):
            answer = me.post(f"/media/{begun['media_id']}/ingest")
            assert problem(answer) == (400, "E_STORAGE_MISSING")
        assert data(me.get(f"/media/{begun['media_id']}"))["processing_status"] == "pending"
        clock.forward(minutes=6)
        assert problem(me.post(f"/media/{begun['media_id']}/ingest")) == (400, "E_UPLOAD_EXPIRED")

    def test_somebody_elses_upload(self, site: Site, me: Caller) -> None:
        begun, other = begin(me, pdf()), site.caller()
        assert problem(other.post(f"/media/{begun['media_id']}/ingest")) == (404, "E_NOT_FOUND")
        assert problem(other.get(f"/media/{begun['media_id']}/file")) == (404, "E_NOT_FOUND")


def test_links_and_signatures_are_never_logged(
    site: Site, me: Caller, capsys: pytest.CaptureFixture[str]
) -> None:
    begun = begin(me, body := pdf(), filename="a secret name.pdf")
    send(site, begun, b"wrong")
    send(site, begun, body)
    send(site, begun, body)
    data(me.post(f"/media/{begun['media_id']}/ingest"))
    link = link_to(me, begun["media_id"])
    site.anyone().get(link)
    site.anyone().get(changed(link, expires="1"))
    logged = capsys.readouterr().out
    assert '"event": "request"' in logged
    for url in (begun["upload_url"], link):
        assert dict(parse_qsl(urlsplit(url).query))["signature"] not in logged
    assert not re.search(r"signature|expires=|secret name", logged)
