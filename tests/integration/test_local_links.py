"""What a link of the local store allows, and nothing else: one file, one way, for five minutes."""

from __future__ import annotations

import hashlib
import random
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from nexus.app import App, build
from nexus.storage.digest import HEAD, Digest
from nexus.storage.local import DRAFTS, WINDOW, Local
from tests.files import PDF, pdf, stored
from tests.http import Caller, Site, data, problem, serve
from tests.integration.test_http_uploads import SIZE, begin, changed, link_to, send, upload
from tests.runs import run_prefix
from tests.support import SetClock, make_settings


@pytest.fixture
def site(sqlite_url: str, tmp_path: Path, clock: SetClock) -> Iterator[Site]:
    """On SQLite alone: no row has a say in what a link allows."""
    app = build(make_settings(sqlite_url, tmp_path), clock)
    with serve(app) as running:
        yield running
    app.close()


@pytest.fixture
def me(site: Site) -> Caller:
    return site.caller()


def drafts(app: App) -> list[str]:
    storage = app.files.storage
    assert isinstance(storage, Local)
    return [found.path for found in storage.drafts()]


class TestUploadLink:
    @pytest.mark.parametrize(
        "lie",
        [{"Content-Type": "text/html"}, {"Content-Type": ""}, {"Content-Type": f"{PDF}; charset=utf-8"}],
        ids=str,
    )
    def test_takes_its_type_alone(self, site: Site, me: Caller, lie: dict[str, str]) -> None:
        begun = begin(me, body := pdf())
        answer = site.anyone().put(begun["upload_url"], content=body, headers=lie)
        assert problem(answer) == (403, "E_FORBIDDEN")
        assert stored(site.app) == []

    @pytest.mark.parametrize("size", [0, SIZE - 1, SIZE + 1, 3 * 2**20])
    @pytest.mark.parametrize("chunked", [False, True])
    def test_takes_its_length_alone(self, site: Site, me: Caller, size: int, chunked: bool) -> None:
        """Said beforehand or found out on the way."""
        begun, body = begin(me, pdf(SIZE)), bytes(size)
        content = iter([body[:100], body[100:]]) if chunked else body
        answer = site.anyone().put(begun["upload_url"], content=content, headers=begun["upload_headers"])
        assert problem(answer) == (400, "E_INVALID_REQUEST")
        assert (stored(site.app), drafts(site.app)) == ([], [])
        assert send(site, begun, pdf(SIZE)).status_code == 200

    def test_takes_a_file_in_chunks_without_a_length(self, site: Site, me: Caller) -> None:
        body = pdf(3 * 2**20 + 17)
        begun = begin(me, body)
        pieces = (body[at : at + 99_999] for at in range(0, len(body), 99_999))
        answer = site.anyone().put(begun["upload_url"], content=pieces, headers=begun["upload_headers"])
        assert data(answer) == {"done": True}
        storage = site.app.files.storage
        assert b"".join(storage.stream(begun["storage_path"])) == body
        assert drafts(site.app) == []

    def test_takes_a_file_whole_that_goes_to_the_disk_while_it_arrives(self, site: Site, me: Caller) -> None:
        body = random.Random(7).randbytes(3 * WINDOW + 17)
        begun = begin(me, body)
        assert send(site, begun, body).status_code == 200
        storage = site.app.files.storage
        assert b"".join(storage.stream(begun["storage_path"])) == body
        known = storage.digest(begun["storage_path"])
        assert known == Digest(len(body), hashlib.sha256(body).hexdigest(), body[:HEAD])

    def test_a_file_that_breaks_off_leaves_nothing(
        self, site: Site, me: Caller, capsys: pytest.CaptureFixture[str]
    ) -> None:
        begun = begin(me, pdf(3 * 2**20))
        target = urlsplit(begun["upload_url"])
        head = f"PUT {target.path}?{target.query} HTTP/1.1\r\nHost: x\r\nContent-Type: {PDF}\r\n"
        with socket.create_connection((target.hostname, target.port)) as connection:
            connection.sendall(head.encode() + f"Content-Length: {3 * 2**20}\r\n\r\n".encode())
            connection.sendall(bytes(2 * 2**20))
        site.stop()
        assert (stored(site.app), drafts(site.app)) == ([], [])
        assert "request_broke" not in capsys.readouterr().out

    def test_is_used_once(self, site: Site, me: Caller) -> None:
        begun = begin(me, body := pdf(SIZE))
        assert send(site, begun, body).status_code == 200
        assert problem(send(site, begun, pdf(SIZE))) == (409, "E_CONFLICT")
        media_id = data(me.post(f"/media/{begun['media_id']}/ingest"))["media_id"]
        assert problem(send(site, begun, pdf(SIZE))) == (409, "E_CONFLICT")
        assert site.anyone().get(link_to(me, media_id)).content == body

    def test_ends(self, site: Site, me: Caller, clock: SetClock) -> None:
        begun = begin(me, body := pdf())
        clock.forward(minutes=5, seconds=1)
        assert problem(send(site, begun, body)) == (403, "E_FORBIDDEN")
        assert stored(site.app) == []

    @pytest.mark.parametrize(
        "changes",
        [
            {"expires": "9999999999"},
            {"size": str(SIZE + 1)},
            {"signature": "0" * 64},
            {"signature": ""},
            {"signature": "é"},
        ],
        ids=str,
    )
    def test_can_not_be_altered(self, site: Site, me: Caller, changes: dict[str, str]) -> None:
        begun = begin(me, pdf(SIZE))
        body = pdf(int(changes.get("size", SIZE)))
        begun["upload_url"] = changed(begun["upload_url"], **changes)
        assert problem(send(site, begun, body)) == (403, "E_FORBIDDEN")
        assert stored(site.app) == []

    @pytest.mark.parametrize("name", ["expires", "size", "signature"])
    def test_needs_every_part(self, site: Site, me: Caller, name: str) -> None:
        begun = begin(me, body := pdf())
        begun["upload_url"] = changed(begun["upload_url"], **{name: None})
        assert problem(send(site, begun, body)) == (400, "E_INVALID_REQUEST")

    def test_is_for_its_path_alone(self, site: Site, me: Caller) -> None:
        """A link opens for whoever holds it, and opens nothing else."""
        begun, other = begin(me, body := pdf()), begin(site.caller(), body)
        begun["upload_url"] = begun["upload_url"].replace(begun["media_id"], other["media_id"])
        assert problem(send(site, begun, body)) == (403, "E_FORBIDDEN")
        assert stored(site.app) == []

    @pytest.mark.parametrize(
        "path",
        [
            "../secrets.json",
            "..%2f..%2fsecrets.json",
            "%2e%2e/%2e%2e/secrets.json",
            "media/..%5c..%5csecrets.json",
            f"{DRAFTS}/x",
            "%2fetc%2fpasswd",
            "media//x",
            "media/%00",
            "",
        ],
    )
    def test_no_path_leads_out(self, site: Site, me: Caller, path: str) -> None:
        begun = begin(me, body := pdf())
        parts = urlsplit(begun["upload_url"])
        for verb, query in (("PUT", parts.query), ("GET", f"{parts.query}&type=a&filename=b")):
            with socket.create_connection((parts.hostname, parts.port)) as connection:
                head = f"{verb} /storage/{path}?{query} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                more = f"Content-Type: {PDF}\r\nContent-Length: {len(body)}\r\n\r\n"
                connection.sendall((head + more).encode() + body)
                status = int(connection.makefile("rb").readline().split()[1])
            assert status in {400, 403, 404}
        assert (stored(site.app), drafts(site.app)) == ([], [])


class TestDownloadLink:
    def test_saves_under_the_users_name_and_nothing_runs(self, site: Site, me: Caller) -> None:
        link = link_to(me, upload(site, me, pdf(), filename='книга "1"; x.pdf'))
        answer = site.anyone().get(link)
        assert answer.headers["content-type"] == PDF
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "sandbox" in answer.headers["content-security-policy"]
        assert "no-store" in answer.headers["cache-control"]
        shown = answer.headers["content-disposition"]
        assert shown.startswith("attachment; ")
        assert unquote(shown.partition("filename*=UTF-8''")[2]) == 'книга "1"; x.pdf'

    def test_gives_parts(self, site: Site, me: Caller) -> None:
        link = link_to(me, upload(site, me, body := pdf(SIZE)))
        answer = site.anyone().get(link, headers={"Range": "bytes=100-199"})
        assert (answer.status_code, answer.content) == (206, body[100:200])
        assert answer.headers["content-range"] == f"bytes 100-199/{SIZE}"
        assert site.anyone().get(link, headers={"Range": "bytes=-7"}).content == body[-7:]
        beyond = site.anyone().get(link, headers={"Range": "bytes=9000-"})
        assert beyond.status_code == 416

    def test_ends(self, site: Site, me: Caller, clock: SetClock) -> None:
        link = link_to(me, upload(site, me, pdf()))
        clock.forward(minutes=5)
        assert site.anyone().get(link).status_code == 200
        clock.forward(seconds=1)
        assert problem(site.anyone().get(link)) == (403, "E_FORBIDDEN")

    @pytest.mark.parametrize(
        "changes",
        [
            {"expires": "9999999999"},
            {"type": "text/html"},
            {"filename": "evil.html"},
            {"filename": ""},
            {"signature": "0" * 64},
        ],
        ids=str,
    )
    def test_can_not_be_altered(self, site: Site, me: Caller, changes: dict[str, str]) -> None:
        link = link_to(me, upload(site, me, pdf()))
        assert problem(site.anyone().get(changed(link, **changes)))[0] in {400, 403}

    def test_is_for_its_path_alone(self, site: Site, me: Caller) -> None:
        mine, other = upload(site, me, pdf()), upload(site, site.caller(), pdf())
        link = link_to(me, mine).replace(mine, other)
        assert problem(site.anyone().get(link)) == (403, "E_FORBIDDEN")

    def test_is_no_link_to_upload_and_the_other_way_round(self, site: Site, me: Caller) -> None:
        link = link_to(me, upload(site, me, body := pdf()))
        taken = changed(link, size=str(len(body)))
        answer = site.anyone().put(taken, content=body, headers={"Content-Type": PDF})
        assert problem(answer) == (403, "E_FORBIDDEN")
        begun = begin(me, body)
        asked = changed(begun["upload_url"], type=PDF, filename="a.pdf")
        assert problem(site.anyone().get(asked)) == (403, "E_FORBIDDEN")

    def test_without_one_there_is_no_way_in(self, site: Site, me: Caller) -> None:
        path = f"/storage/{run_prefix()}media/{upload(site, me, pdf())}/original.pdf"
        for client in (site.anyone(), me):
            assert problem(client.get(path)) == (400, "E_INVALID_REQUEST")
            assert client.head(path).status_code == 405
            assert client.delete(path).status_code == 405
            assert client.post(path).status_code == 405

    def test_who_reads_the_media_gets_one(self, site: Site, me: Caller) -> None:
        media_id = upload(site, me, body := pdf())
        guest, stranger = site.caller(), site.caller()
        library = me.library()
        data(guest.get("/libraries"))
        data(me.post(f"/libraries/{library}/media", json={"media_id": media_id}))
        data(me.let_in(library, guest.user))
        assert site.anyone().get(link_to(guest, media_id)).content == body
        assert problem(stranger.get(f"/media/{media_id}/file")) == (404, "E_NOT_FOUND")

    def test_a_media_without_a_file_has_none(self, site: Site, me: Caller) -> None:
        assert problem(me.get(f"/media/{me.add()}/file")) == (404, "E_NOT_FOUND")
        assert problem(me.get(f"/media/{begin(me, pdf())['media_id']}/file")) == (404, "E_NOT_FOUND")
