"""What a link of the local store allows, and nothing else: one file, one way, for five minutes."""

from __future__ import annotations

import hashlib
import random
import socket
from contextlib import closing
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from nexus.app import App, build
from nexus.storage.digest import HEAD, Digest
from nexus.storage.local import PARTS, WINDOW, LocalStorage
from tests.kit.clock import SetClock
from tests.kit.http import Caller, Site, data, problem, serve
from tests.kit.http_uploads import SIZE, begin_upload, changed_link, link_to, send_bytes, upload_file
from tests.kit.run_storage import run_prefix
from tests.kit.settings import make_settings
from tests.kit.uploads import PDF, stored_paths, unique_pdf


@pytest.fixture
def database_url(sqlite_url: str) -> str:
    """SQLite alone: what a link allows does not depend on rows."""
    return sqlite_url


def drafts(app: App) -> list[str]:
    storage = app.files.storage
    assert isinstance(storage, LocalStorage)
    return [found.path for found in storage.partial_files()]


@pytest.mark.parametrize(
    "lie",
    [{"Content-Type": "text/html"}, {"Content-Type": ""}, {"Content-Type": f"{PDF}; charset=utf-8"}],
    ids=str,
)
def test_an_upload_link_accepts_only_its_type(site: Site, me: Caller, lie: dict[str, str]) -> None:
    begun = begin_upload(me, body := unique_pdf())
    answer = site.anyone().put(begun["upload_url"], content=body, headers=lie)
    assert problem(answer) == (403, "E_FORBIDDEN")
    assert stored_paths(site.app) == []


@pytest.mark.parametrize("size", [0, SIZE - 1, SIZE + 1, 3 * 2**20])
@pytest.mark.parametrize("chunked", [False, True])
def test_an_upload_link_accepts_only_its_length(site: Site, me: Caller, size: int, chunked: bool) -> None:
    """Stated in advance or found out on the way."""
    begun, body = begin_upload(me, unique_pdf(SIZE)), bytes(size)
    content = iter([body[:100], body[100:]]) if chunked else body
    answer = site.anyone().put(begun["upload_url"], content=content, headers=begun["upload_headers"])
    assert problem(answer) == (400, "E_INVALID_REQUEST")
    assert (stored_paths(site.app), drafts(site.app)) == ([], [])
    assert send_bytes(site, begun, unique_pdf(SIZE)).status_code == 200


def test_an_upload_link_accepts_a_chunked_file_without_a_length(site: Site, me: Caller) -> None:
    body = unique_pdf(3 * 2**20 + 17)
    begun = begin_upload(me, body)
    pieces = (body[at : at + 99_999] for at in range(0, len(body), 99_999))
    answer = site.anyone().put(begun["upload_url"], content=pieces, headers=begun["upload_headers"])
    assert data(answer) == {"done": True}
    storage = site.app.files.storage
    assert b"".join(storage.stream(begun["storage_path"])) == body
    assert drafts(site.app) == []


def test_a_large_upload_is_written_to_disk_while_it_arrives(site: Site, me: Caller) -> None:
    body = random.Random(7).randbytes(3 * WINDOW + 17)
    begun = begin_upload(me, body)
    assert send_bytes(site, begun, body).status_code == 200
    storage = site.app.files.storage
    assert b"".join(storage.stream(begun["storage_path"])) == body
    known = storage.digest(begun["storage_path"])
    assert known == Digest(len(body), hashlib.sha256(body).hexdigest(), body[:HEAD])


def test_an_upload_that_breaks_off_leaves_nothing(
    site: Site, me: Caller, capsys: pytest.CaptureFixture[str]
) -> None:
    begun = begin_upload(me, unique_pdf(3 * 2**20))
    target = urlsplit(begun["upload_url"])
    head = f"PUT {target.path}?{target.query} HTTP/1.1\r\nHost: x\r\nContent-Type: {PDF}\r\n"
    with socket.create_connection((target.hostname, target.port)) as connection:
        connection.sendall(head.encode() + f"Content-Length: {3 * 2**20}\r\n\r\n".encode())
        connection.sendall(bytes(2 * 2**20))
    site.stop()
    assert (stored_paths(site.app), drafts(site.app)) == ([], [])
    assert "request_broke" not in capsys.readouterr().out


def test_an_upload_link_works_once(site: Site, me: Caller) -> None:
    begun = begin_upload(me, body := unique_pdf(SIZE))
    assert send_bytes(site, begun, body).status_code == 200
    assert problem(send_bytes(site, begun, unique_pdf(SIZE))) == (409, "E_CONFLICT")
    media_id = data(me.post(f"/media/{begun['media_id']}/ingest"))["media_id"]
    assert problem(send_bytes(site, begun, unique_pdf(SIZE))) == (409, "E_CONFLICT")
    assert site.anyone().get(link_to(me, media_id)).content == body


def test_an_upload_link_expires(site: Site, me: Caller, clock: SetClock) -> None:
    begun = begin_upload(me, body := unique_pdf())
    clock.forward(minutes=5, seconds=1)
    assert problem(send_bytes(site, begun, body)) == (403, "E_FORBIDDEN")
    assert stored_paths(site.app) == []


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
def test_an_altered_upload_link_is_refused(site: Site, me: Caller, changes: dict[str, str]) -> None:
    begun = begin_upload(me, unique_pdf(SIZE))
    body = unique_pdf(int(changes.get("size", SIZE)))
    begun["upload_url"] = changed_link(begun["upload_url"], **changes)
    assert problem(send_bytes(site, begun, body)) == (403, "E_FORBIDDEN")
    assert stored_paths(site.app) == []


@pytest.mark.parametrize("name", ["expires", "size", "signature"])
def test_an_upload_link_needs_every_parameter(site: Site, me: Caller, name: str) -> None:
    begun = begin_upload(me, body := unique_pdf())
    begun["upload_url"] = changed_link(begun["upload_url"], **{name: None})
    assert problem(send_bytes(site, begun, body)) == (400, "E_INVALID_REQUEST")


def test_an_upload_link_works_only_for_its_path(site: Site, me: Caller) -> None:
    """A link opens for anybody who has it, and opens nothing else."""
    begun, other = begin_upload(me, body := unique_pdf()), begin_upload(site.caller(), body)
    begun["upload_url"] = begun["upload_url"].replace(begun["media_id"], other["media_id"])
    assert problem(send_bytes(site, begun, body)) == (403, "E_FORBIDDEN")
    assert stored_paths(site.app) == []


@pytest.mark.parametrize(
    "path",
    [
        "../secrets.json",
        "..%2f..%2fsecrets.json",
        "%2e%2e/%2e%2e/secrets.json",
        "media/..%5c..%5csecrets.json",
        f"{PARTS}/x",
        "%2fetc%2fpasswd",
        "media//x",
        "media/%00",
        "",
    ],
)
def test_no_path_of_a_link_leads_out_of_the_store(site: Site, me: Caller, path: str) -> None:
    begun = begin_upload(me, body := unique_pdf())
    parts = urlsplit(begun["upload_url"])
    for verb, query in (("PUT", parts.query), ("GET", f"{parts.query}&type=a&filename=b")):
        with socket.create_connection((parts.hostname, parts.port)) as connection:
            head = f"{verb} /storage/{path}?{query} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
            more = f"Content-Type: {PDF}\r\nContent-Length: {len(body)}\r\n\r\n"
            connection.sendall((head + more).encode() + body)
            status = int(connection.makefile("rb").readline().split()[1])
        assert status in {400, 403, 404}
    assert (stored_paths(site.app), drafts(site.app)) == ([], [])


def test_a_download_is_saved_under_the_users_file_name_and_runs_nothing(site: Site, me: Caller) -> None:
    link = link_to(me, upload_file(site, me, unique_pdf(), filename='книга "1"; x.pdf'))
    answer = site.anyone().get(link)
    assert answer.headers["content-type"] == PDF
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in answer.headers["content-security-policy"]
    assert "no-store" in answer.headers["cache-control"]
    shown = answer.headers["content-disposition"]
    assert shown.startswith("attachment; ")
    assert unquote(shown.partition("filename*=UTF-8''")[2]) == 'книга "1"; x.pdf'


def test_a_download_link_answers_range_requests(site: Site, me: Caller) -> None:
    link = link_to(me, upload_file(site, me, body := unique_pdf(SIZE)))
    answer = site.anyone().get(link, headers={"Range": "bytes=100-199"})
    assert (answer.status_code, answer.content) == (206, body[100:200])
    assert answer.headers["content-range"] == f"bytes 100-199/{SIZE}"
    assert site.anyone().get(link, headers={"Range": "bytes=-7"}).content == body[-7:]
    beyond = site.anyone().get(link, headers={"Range": "bytes=9000-"})
    assert beyond.status_code == 416


def test_a_download_link_expires(site: Site, me: Caller, clock: SetClock) -> None:
    link = link_to(me, upload_file(site, me, unique_pdf()))
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
def test_an_altered_download_link_is_refused(site: Site, me: Caller, changes: dict[str, str]) -> None:
    link = link_to(me, upload_file(site, me, unique_pdf()))
    assert problem(site.anyone().get(changed_link(link, **changes)))[0] in {400, 403}


def test_a_download_link_works_only_for_its_path(site: Site, me: Caller) -> None:
    mine, other = upload_file(site, me, unique_pdf()), upload_file(site, site.caller(), unique_pdf())
    link = link_to(me, mine).replace(mine, other)
    assert problem(site.anyone().get(link)) == (403, "E_FORBIDDEN")


def test_download_and_upload_links_are_not_interchangeable(site: Site, me: Caller) -> None:
    link = link_to(me, upload_file(site, me, body := unique_pdf()))
    taken = changed_link(link, size=str(len(body)))
    answer = site.anyone().put(taken, content=body, headers={"Content-Type": PDF})
    assert problem(answer) == (403, "E_FORBIDDEN")
    begun = begin_upload(me, body)
    asked = changed_link(begun["upload_url"], type=PDF, filename="a.pdf")
    assert problem(site.anyone().get(asked)) == (403, "E_FORBIDDEN")


def test_an_object_can_not_be_downloaded_without_a_link(site: Site, me: Caller) -> None:
    path = f"/storage/{run_prefix()}media/{upload_file(site, me, unique_pdf())}/original.pdf"
    for client in (site.anyone(), me):
        assert problem(client.get(path)) == (400, "E_INVALID_REQUEST")
        assert client.head(path).status_code == 405
        assert client.delete(path).status_code == 405
        assert client.post(path).status_code == 405


def test_everyone_who_may_read_a_media_gets_a_download_link(site: Site, me: Caller) -> None:
    media_id = upload_file(site, me, body := unique_pdf())
    guest, stranger = site.caller(), site.caller()
    library = me.library()
    data(guest.get("/libraries"))
    data(me.post(f"/libraries/{library}/media", json={"media_id": media_id}))
    data(me.let_in(library, guest.user))
    assert site.anyone().get(link_to(guest, media_id)).content == body
    assert problem(stranger.get(f"/media/{media_id}/file")) == (404, "E_NOT_FOUND")


def test_a_media_without_a_file_has_no_download_link(site: Site, me: Caller) -> None:
    assert problem(me.get(f"/media/{me.add()}/file")) == (404, "E_NOT_FOUND")
    assert problem(me.get(f"/media/{begin_upload(me, unique_pdf())['media_id']}/file")) == (
        404,
        "E_NOT_FOUND",
    )


def test_nexus_serves_no_links_for_a_store_that_serves_its_own(sqlite_url: str, tmp_path: Path) -> None:
    elsewhere = build(make_settings(sqlite_url, tmp_path, storage="s3", s3_bucket="files", s3_access_key="k"))
    with closing(elsewhere), serve(elsewhere) as site:
        link = "/storage/media/x/original.pdf?expires=99999999999&size=1&signature=x&type=a/b&filename=x"
        for answer in (site.anyone().get(link), site.anyone().put(link, content=b"x")):
            assert problem(answer) == (404, "E_NOT_FOUND")
