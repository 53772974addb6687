"""One contract over every store: local files served by Nexus, S3 on SeaweedFS, Supabase's REST calls."""

from __future__ import annotations

import hashlib
import os
import secrets
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urljoin, urlsplit
from uuid import uuid4

import httpx2
import pytest

from nexus.app import build
from nexus.db.session import wall_clock
from nexus.libraries import catalog
from nexus.media import deletions, file_links, uploads
from nexus.media.uploads import Expected
from nexus.media.workbench import Bench
from nexus.storage import CHUNK, NoRoom, ObjectExists, ObjectMissing, Storage, StorageError, Stored
from nexus.storage import s3 as s3_module
from nexus.storage.digest import HEAD, Digest
from nexus.storage.local import PARTS, LocalStorage
from nexus.storage.names import disposition
from nexus.storage.s3 import S3
from nexus.storage.supabase import Supabase
from tests.kit.faults.broken_disks import full_disk, stuck, without_drafts
from tests.kit.http import NO_CERTIFICATES, serve
from tests.kit.media import row_of
from tests.kit.run_storage import run_prefix
from tests.kit.servers import object_store, supabase_api
from tests.kit.settings import make_settings

LIFE = timedelta(minutes=5)
PDF = "application/pdf"
BODY = b"%PDF-1.7 a small file"


@dataclass(frozen=True)
class Place:
    """A store, and where its links lead."""

    name: str
    storage: Storage
    base: str

    def path(self) -> str:
        return f"{run_prefix()}media/{secrets.token_hex(8)}/original.pdf"

    def put(self, url: str, body: bytes, headers: dict[str, str]) -> httpx2.Response:
        return httpx2.put(urljoin(self.base, url), content=body, headers=headers, verify=NO_CERTIFICATES)

    def get(self, url: str, **more: object) -> httpx2.Response:
        return httpx2.get(urljoin(self.base, url), verify=NO_CERTIFICATES, **more)  # type: ignore[arg-type]


@contextmanager
def emptied(storage: Storage) -> Iterator[None]:
    """Everything of this run is gone at its end."""
    yield
    for found in list(storage.objects(run_prefix())):
        storage.delete(found.path)
    assert list(storage.objects(run_prefix())) == []


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory, migrated_sqlite: Path) -> Iterator[Place]:
    settings = make_settings(f"sqlite:///{migrated_sqlite}", tmp_path_factory.mktemp("local"))
    app = build(settings)
    with serve(app) as site, emptied(app.files.storage):
        yield Place("local", app.files.storage, site.url)
    app.close()


@pytest.fixture(scope="module")
def temporary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the S3 store may leave temporary files."""
    return tmp_path_factory.mktemp("temporary")


@pytest.fixture(scope="module")
def s3(temporary: Path) -> Iterator[Place]:
    with ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TMPDIR", str(temporary))
            found = stack.enter_context(object_store.object_store())
        keys = (object_store.ACCESS_KEY, object_store.SECRET_KEY)
        storage = S3(object_store.BUCKET, found.url, "us-east-1", *keys, wall_clock)
        with closing(storage._client), emptied(storage):
            yield Place("s3", storage, found.url)


@pytest.fixture(scope="module")
def supabase() -> Iterator[Place]:
    with supabase_api.supabase() as found:
        storage = Supabase(found.url, supabase_api.SERVICE_KEY, supabase_api.BUCKET, wall_clock)
        with closing(storage._client), emptied(storage):
            yield Place("supabase", storage, found.url)


@pytest.fixture(params=["local", "s3", "supabase"])
def place(request: pytest.FixtureRequest) -> Place:
    found: Place = request.getfixturevalue(request.param)
    return found


def test_the_s3_store_of_the_tests_leaves_no_logs_behind(s3: Place, temporary: Path) -> None:
    s3.storage.put(f"{run_prefix()}media/{secrets.token_hex(8)}/original.pdf", [BODY], PDF)
    assert list(temporary.iterdir()) == []


def test_a_stored_object_is_read_back_whole(place: Place) -> None:
    path, body = place.path(), secrets.token_bytes(3 * CHUNK + 17)
    place.storage.put(path, (body[at : at + 100_000] for at in range(0, len(body), 100_000)), PDF)
    assert b"".join(place.storage.stream(path)) == body
    found = place.storage.head(path)
    assert found is not None
    assert (found.path, found.size) == (path, len(body))
    assert abs(datetime.now(UTC) - found.modified_at) < timedelta(minutes=5)


def test_the_digest_of_an_object_is_exact_or_unknown(place: Place) -> None:
    path, body = place.path(), secrets.token_bytes(3 * CHUNK + 17)
    assert place.storage.digest(path) is None
    place.storage.put(path, [body], PDF)
    known = {Digest(len(body), hashlib.sha256(body).hexdigest(), body[:HEAD])}
    assert place.storage.digest(path) in (known if place.name == "local" else {None})
    place.storage.delete(path)
    assert place.storage.digest(path) is None


def test_an_object_is_streamed_in_bounded_chunks(place: Place) -> None:
    path = place.path()
    place.storage.put(path, [bytes(3 * CHUNK)], PDF)
    assert max(map(len, place.storage.stream(path))) <= CHUNK


def test_an_existing_object_is_never_replaced(place: Place) -> None:
    path = place.path()
    place.storage.put(path, [BODY], PDF)
    with pytest.raises(ObjectExists):
        place.storage.put(path, [b"other"], PDF)
    assert b"".join(place.storage.stream(path)) == BODY


def test_a_put_that_breaks_off_leaves_nothing(place: Place) -> None:
    def broken() -> Iterator[bytes]:
        yield BODY
        raise ConnectionError

    path = place.path()
    with pytest.raises((ConnectionError, StorageError)):
        place.storage.put(path, broken(), PDF)
    assert place.storage.head(path) is None


@pytest.mark.parametrize("head", ["Transfer-Encoding: chunked", "Content-Length: 1000"])
def test_the_supabase_server_logs_nothing_about_an_upload_that_breaks_off(
    supabase: Place, head: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path, key = supabase.path(), supabase_api.SERVICE_KEY
    asked = [f"POST /storage/v1/object/{supabase_api.BUCKET}/{path} HTTP/1.1", "Host: x", head]
    address = urlsplit(supabase.base)
    with socket.create_connection((address.hostname, address.port), timeout=60) as client:
        client.sendall("\r\n".join([*asked, f"Authorization: Bearer {key}", "", "4\r\n1234\r\n"]).encode())
        client.shutdown(socket.SHUT_WR)
        assert client.recv(1000) == b""
    assert capsys.readouterr().err == ""
    assert supabase.storage.head(path) is None


def test_a_missing_object_is_reported_as_missing(place: Place) -> None:
    path = place.path()
    assert place.storage.head(path) is None
    with pytest.raises(ObjectMissing):
        list(place.storage.stream(path))
    place.storage.delete(path)


def test_a_deleted_object_is_gone(place: Place) -> None:
    path = place.path()
    place.storage.put(path, [BODY], PDF)
    place.storage.delete(path)
    assert place.storage.head(path) is None
    place.storage.put(path, [BODY], PDF)


def test_a_listing_holds_everything_below_a_prefix_and_nothing_else(place: Place) -> None:
    inside = f"{run_prefix()}listed-{secrets.token_hex(4)}/"
    paths = [f"{inside}media/{number:03}/original.pdf" for number in range(105)]
    for path in paths:
        place.storage.put(path, [BODY], PDF)
    assert sorted(found.path for found in place.storage.objects(inside)) == paths
    assert list(place.storage.objects(f"{inside}media/10")) != []
    assert {found.size for found in place.storage.objects(f"{inside}media/104/")} == {len(BODY)}


def test_an_upload_link_takes_the_file_once(place: Place) -> None:
    """Supabase itself takes it again and again, but not to where it was read."""
    path = place.path()
    target = place.storage.sign_upload(path, PDF, len(BODY), LIFE)
    assert place.put(target.url, BODY, dict(target.headers)).is_success
    assert b"".join(place.storage.stream(path)) == BODY
    replayed = place.put(target.url, bytes(len(BODY)), dict(target.headers))
    assert replayed.status_code in ({200} if place.name == "supabase" else {400, 409, 412})
    assert b"".join(place.storage.stream(path)) == BODY
    again = place.storage.head(path)
    assert again is not None
    assert again.size == len(BODY)
    assert target.expires_at > datetime.now(UTC)


def test_a_link_that_is_used_late_leaves_nothing_behind_after_a_deletion(place: Place) -> None:
    path = place.path()
    target = place.storage.sign_upload(path, PDF, len(BODY), LIFE)
    assert place.put(target.url, BODY, dict(target.headers)).is_success
    assert place.storage.head(path) is not None
    place.put(target.url, BODY, dict(target.headers))
    place.storage.delete(path)
    assert list(place.storage.objects(path.rpartition("/")[0])) == []


def test_racing_readers_find_one_and_the_same_upload(place: Place) -> None:
    """While other bytes keep arriving over the same link."""
    path = place.path()
    target = place.storage.sign_upload(path, PDF, 100_000, LIFE)
    bodies = [bytes([number]) * 100_000 for number in range(8)]
    place.put(target.url, bodies[0], dict(target.headers))
    with ThreadPoolExecutor(16) as pool:
        uploads_ = [pool.submit(place.put, target.url, body, dict(target.headers)) for body in bodies]
        reads = [pool.submit(lambda: b"".join(place.storage.stream(path))) for _ in bodies]
        found = {read.result() for read in reads}
        for upload in uploads_:
            upload.result()
    assert len(found) == 1
    assert b"".join(place.storage.stream(path)) in found


def test_an_upload_link_is_for_its_path_alone(place: Place) -> None:
    path, other = place.path(), place.path()
    target = place.storage.sign_upload(path, PDF, len(BODY), LIFE)
    moved = target.url.replace(path.rpartition("/")[0], other.rpartition("/")[0])
    assert moved != target.url
    assert place.put(moved, BODY, dict(target.headers)).is_client_error
    assert place.storage.head(other) is None


@pytest.mark.parametrize("lie", ["type", "longer", "shorter"])
def test_an_upload_link_is_bound_to_type_and_length(place: Place, lie: str) -> None:
    """Supabase's links are bound to neither: there the check on confirmation decides."""
    path = place.path()
    target = place.storage.sign_upload(path, PDF, len(BODY), LIFE)
    headers = {**target.headers, "Content-Type": "text/html" if lie == "type" else PDF}
    body = {"type": BODY, "longer": BODY + b"!", "shorter": BODY[:-1]}[lie]
    answer = place.put(target.url, body, headers)
    assert answer.is_client_error == (place.name != "supabase")
    assert (place.storage.head(path) is None) == (place.name != "supabase")


def test_a_download_link_can_not_be_used_to_upload(place: Place) -> None:
    there, path = place.path(), place.path()
    place.storage.put(there, [BODY], PDF)
    upload = place.storage.sign_upload(path, PDF, len(BODY), LIFE)
    download = place.storage.sign_download(there, "a.pdf", PDF, LIFE)
    assert place.get(upload.url).is_client_error
    assert place.put(download.url, BODY, dict(upload.headers)).is_client_error
    assert b"".join(place.storage.stream(there)) == BODY


def test_a_download_link_is_for_its_path_alone(place: Place) -> None:
    path, other = place.path(), place.path()
    for each in (path, other):
        place.storage.put(each, [BODY], PDF)
    link = place.storage.sign_download(path, "a.pdf", PDF, LIFE)
    assert place.get(link.url).is_success
    assert place.get(link.url.replace(path, other)).is_client_error


def test_an_object_can_not_be_reached_without_a_link(place: Place) -> None:
    """The stores are private: the address alone opens nothing."""
    path = place.path()
    place.storage.put(path, [BODY], PDF)
    link = place.storage.sign_download(path, "a.pdf", PDF, LIFE)
    assert place.get(link.url.partition("?")[0]).is_client_error
    assert place.put(link.url.partition("?")[0], BODY, {"Content-Type": PDF}).is_client_error


def test_an_upload_link_expires(place: Place) -> None:
    if place.name == "supabase":
        path = f"{supabase_api.BUCKET}/{place.path()}"
        token = supabase_api.upload_token(path, seconds=-1)
        url, headers = f"/storage/v1/object/upload/sign/{path}?token={token}", {"Content-Type": PDF}
    else:
        target = place.storage.sign_upload(place.path(), PDF, len(BODY), timedelta(seconds=-1))
        url, headers = target.url, dict(target.headers)
    assert place.put(url, BODY, headers).is_client_error


def test_a_download_link_expires(place: Place) -> None:
    path = place.path()
    place.storage.put(path, [BODY], PDF)
    link = place.storage.sign_download(path, "a.pdf", PDF, timedelta(seconds=-1))
    assert link.expires_at < datetime.now(UTC)
    assert place.get(link.url).is_client_error


def test_a_tampered_link_is_refused(place: Place) -> None:
    path = place.path()
    target = place.storage.sign_upload(path, PDF, len(BODY), LIFE)
    assert place.put(target.url[:-3] + "abc", BODY, dict(target.headers)).is_client_error
    place.storage.put(path, [BODY], PDF)
    link = place.storage.sign_download(path, "a.pdf", PDF, LIFE)
    broken = link.url.replace("ignature=", "ignature=0").replace("token=", "token=0")
    assert place.get(broken).is_client_error


def test_a_download_link_gives_the_file_under_its_name(place: Place) -> None:
    path = place.path()
    place.storage.put(path, [BODY], PDF)
    link = place.storage.sign_download(path, "my file.pdf", PDF, LIFE)
    answer = place.get(link.url)
    assert answer.content == BODY
    assert answer.headers["content-type"] == PDF
    assert "my file.pdf" in unquote(answer.headers["content-disposition"])


@pytest.mark.parametrize("filename", ['a"; x="b.pdf', "новый файл.pdf", "a\r\nX-Injected: 1.pdf"])
def test_a_download_under_any_name_is_an_attachment_and_nothing_else(place: Place, filename: str) -> None:
    path = place.path()
    place.storage.put(path, [BODY], PDF)
    answer = place.get(place.storage.sign_download(path, filename, PDF, LIFE).url)
    assert answer.content == BODY
    wanted = quote(filename, safe="") if place.name == "supabase" else disposition(filename)
    assert wanted in answer.headers["content-disposition"]
    assert answer.headers["content-disposition"].startswith("attachment; ")
    assert "x-injected" not in answer.headers


def test_a_download_link_does_not_outlive_its_object(place: Place) -> None:
    path = place.path()
    place.storage.put(path, [BODY], PDF)
    link = place.storage.sign_download(path, "a.pdf", PDF, LIFE)
    place.storage.delete(path)
    assert place.get(link.url).is_client_error


def test_one_of_two_simultaneous_puts_wins(place: Place) -> None:
    """One object, whole, and it is the winner's; Supabase itself takes each, and the last one wins."""
    path, bodies = place.path(), [bytes([number]) * 100_000 for number in range(8)]
    target = place.storage.sign_upload(path, PDF, 100_000, LIFE)

    def upload(body: bytes) -> bool:
        return place.put(target.url, body, dict(target.headers)).is_success

    with ThreadPoolExecutor(len(bodies)) as pool:
        done = list(pool.map(upload, bodies))
    assert done.count(True) == (len(bodies) if place.name == "supabase" else 1)
    stored = b"".join(place.storage.stream(path))
    assert stored in [body for body, taken in zip(bodies, done, strict=True) if taken]


def test_a_file_is_uploaded_confirmed_downloaded_and_deleted(
    place: Place, sqlite_url: str, tmp_path: Path
) -> None:
    """Begun, uploaded, confirmed, downloaded and deleted, below the prefix of the run."""
    app = build(make_settings(sqlite_url, tmp_path, storage_prefix=run_prefix()))
    files = replace(app.files, storage=place.storage)
    user, body = uuid4(), BODY + secrets.token_bytes(100)
    begun = uploads.begin_upload(app.sessions, files, user, Expected("pdf", "a.pdf", PDF, len(body)))
    assert begun.storage_path == f"{run_prefix()}media/{begun.media_id}/original.pdf"
    assert place.put(begun.target.url, body, dict(begun.target.headers)).is_success
    done = uploads.confirm_upload(app.sessions, files, app.queue, user, begun.media_id)
    assert (done.media_id, done.duplicate) == (begun.media_id, False)
    link, _ = file_links.link_for(app.sessions, files, user, begun.media_id)
    assert place.get(link.url).content == body
    with app.sessions.begin() as session:
        gone = catalog.delete_media(session, begun.media_id, user)
    deletions.discard_all(files, gone)
    assert place.storage.head(begun.storage_path) is None
    app.close()


def test_a_checked_file_can_not_be_replaced_over_its_upload_link(
    place: Place, sqlite_url: str, tmp_path: Path
) -> None:
    """Attack: the link lives on after the check, and the uploader sends another file over it."""
    app = build(make_settings(sqlite_url, tmp_path, storage_prefix=run_prefix()))
    files = replace(app.files, storage=place.storage)
    user, body = uuid4(), BODY + secrets.token_bytes(100)
    begun = uploads.begin_upload(app.sessions, files, user, Expected("pdf", "a.pdf", PDF, len(body)))
    assert place.put(begun.target.url, body, dict(begun.target.headers)).is_success
    uploads.confirm_upload(app.sessions, files, app.queue, user, begun.media_id)
    place.put(begun.target.url, bytes(len(body)), dict(begun.target.headers))
    link, _ = file_links.link_for(app.sessions, files, user, begun.media_id)
    assert place.get(link.url).content == body
    bench = Bench(replace(app.tools, files=files), row_of(app.sessions, begun.media_id))
    with bench.file() as found:
        found.stream.seek(0)
        assert found.stream.read() == body
    app.close()


def test_a_store_never_shows_its_secret(place: Place) -> None:
    """Not even if a traceback or a log line shows the store itself."""
    shown = repr(place.storage)
    for secret in (object_store.SECRET_KEY, supabase_api.SERVICE_KEY, "session-secret-of-the-tests"):
        assert secret not in shown


def test_an_unusable_local_folder_raises_a_storage_error(tmp_path: Path) -> None:
    """Whatever the system's error, and without its path."""
    storage = LocalStorage(tmp_path / "storage", "secret", wall_clock)
    without_drafts(storage)
    stuck(storage, f"{run_prefix()}media/x/original.pdf")
    (storage.folder / "file").touch()
    for act in (
        lambda: storage.put(f"{run_prefix()}media/y/original.pdf", [BODY], PDF),
        lambda: list(storage.stream(f"{run_prefix()}media/x/original.pdf")),
        lambda: storage.delete(f"{run_prefix()}media/x/original.pdf"),
        lambda: storage.head("file/original.pdf"),
        lambda: storage.delete_partial(Stored(f"{PARTS}/x", 1, datetime.now(UTC))),
    ):
        with pytest.raises(StorageError) as raised:
            act()
        assert str(tmp_path) not in str(raised.value)


def test_a_full_store_says_so_and_keeps_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    local = LocalStorage(tmp_path / "storage", "secret", wall_clock)
    full_disk(monkeypatch, PARTS)
    with pytest.raises(NoRoom):
        local.put(f"{run_prefix()}media/x/original.pdf", [BODY], PDF)
    assert (list(local.objects("")), list(local.partial_files())) == ([], [])
    full = Path("/dev/full")
    monkeypatch.setattr(s3_module, "SpooledTemporaryFile", lambda **_: full.open("r+b", buffering=0))
    with pytest.raises(NoRoom):
        S3("b", "http://127.0.0.1:9", "us-east-1", "k", "s", wall_clock).put("x", [BODY], PDF)


def test_a_stored_object_is_flushed_to_disk_with_every_folder_above_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before it answers: a power cut would lose a name that is not on the disk, and its file with it."""
    storage = LocalStorage(tmp_path / "storage", "secret", wall_clock)
    synced, real = [], os.fsync

    def fsync(line: int) -> None:
        synced.append(Path(f"/proc/self/fd/{line}").readlink())
        real(line)

    monkeypatch.setattr(os, "fsync", fsync)
    storage.put(f"{run_prefix()}media/x/original.pdf", [BODY], PDF)
    place = storage.folder / run_prefix() / "media" / "x"
    above = [folder for folder in place.parents if folder.is_relative_to(tmp_path)]
    assert synced[0].parent == storage.folder / PARTS
    assert synced[1:] == [place, *above]


def test_a_listing_passes_over_a_folder_that_disappears(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = LocalStorage(tmp_path / "storage", "secret", wall_clock)
    gone, left = (f"{run_prefix()}media/{name}/original.pdf" for name in ("gone", "left"))
    for path in (gone, left):
        storage.put(path, [BODY], PDF)
    real = os.scandir

    def scandir(folder: Any) -> Any:
        """Somebody deletes the file just before its folder is looked into."""
        if Path(folder).name == "gone":
            storage.delete(gone)
        return real(folder)

    monkeypatch.setattr(os, "scandir", scandir)
    assert [found.path for found in storage.objects(run_prefix())] == [left]


def test_folders_that_come_and_go_do_not_break_a_put(tmp_path: Path) -> None:
    """Deleting the last file of a folder removes it, while another put may need it."""
    storage = LocalStorage(tmp_path / "storage", "secret", wall_clock)

    def churn(number: int) -> None:
        for _ in range(200):
            storage.put(f"{run_prefix()}media/{number}/original.pdf", [BODY], PDF)
            storage.delete(f"{run_prefix()}media/{number}/original.pdf")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(churn, range(4)))
    assert list(storage.objects("")) == []


def test_a_folder_that_goes_while_it_is_made_does_not_look_like_a_file_that_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = LocalStorage(tmp_path / "storage", "secret", wall_clock)
    storage.put(f"{run_prefix()}media/1/original.pdf", [BODY], PDF)
    make, gone = os.mkdir, [tmp_path / "storage" / run_prefix() / "media" / "2"]

    def mkdir(folder: Path, *args: int) -> None:
        if folder in gone:
            gone.remove(folder)
            raise FileExistsError(folder)
        make(folder, *args)

    monkeypatch.setattr(os, "mkdir", mkdir)
    storage.put(f"{run_prefix()}media/2/original.pdf", [BODY], PDF)
    assert not gone
    assert len(list(storage.objects(run_prefix()))) == 2


def test_an_unreachable_store_raises_a_storage_error() -> None:
    away = "http://127.0.0.1:9"
    for storage in (S3("b", away, "us-east-1", "k", "s", wall_clock), Supabase(away, "k", "b", wall_clock)):
        with closing(storage._client), pytest.raises(StorageError) as raised:
            storage.head("media/x/original.pdf")
        assert away not in str(raised.value)
    storage = Supabase(away, "k", "b", wall_clock)
    with closing(storage._client), pytest.raises(StorageError):
        storage.sign_upload("media/x/original.pdf", PDF, 1, LIFE)


ANOTHER_KEY = "another-key-that-is-no-key-of-this-store"
NOWHERE = "http://127.0.0.1:9"
#: What is wrong with the settings, and what an operator must read about it.
S3_TROUBLES: list[tuple[str, dict[str, str | None], str, str]] = [
    (
        "no keys",
        {"access_key": None, "secret_key": None},
        "no keys",
        "NEXUS_S3_ACCESS_KEY and NEXUS_S3_SECRET_KEY",
    ),
    ("half of the keys", {"secret_key": None}, "no keys", "NEXUS_S3_ACCESS_KEY and NEXUS_S3_SECRET_KEY"),
    ("an unknown key", {"access_key": ANOTHER_KEY}, "access key", "NEXUS_S3_ACCESS_KEY"),
    ("a wrong secret", {"secret_key": ANOTHER_KEY}, "secret key", "NEXUS_S3_SECRET_KEY"),
    ("no bucket", {"bucket": "nothing-here"}, "no such bucket", "NEXUS_S3_BUCKET"),
    ("nobody there", {"endpoint_url": NOWHERE}, "can't be reached", "NEXUS_S3_ENDPOINT_URL"),
    ("no address", {"endpoint_url": "s3.internal"}, "can't be asked", "NEXUS_S3_"),
]
SUPABASE_TROUBLES = [
    ("a wrong key", {"service_key": ANOTHER_KEY}, "refuses", "NEXUS_SUPABASE_SERVICE_KEY"),
    ("no bucket", {"bucket": "nothing-here"}, "no such bucket", "NEXUS_SUPABASE_BUCKET"),
    ("nobody there", {"url": NOWHERE}, "can't be reached", "NEXUS_SUPABASE_URL"),
]


@pytest.mark.parametrize(
    ("changed", "says", "advice"), [case[1:] for case in S3_TROUBLES], ids=[case[0] for case in S3_TROUBLES]
)
def test_an_unusable_s3_store_says_what_to_set(
    s3: Place,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    changed: dict[str, str | None],
    says: str,
    advice: str,
) -> None:
    object_store.forget_aws(monkeypatch, tmp_path)
    trouble = replace(s3.storage, **changed).trouble()  # type: ignore[type-var]
    assert says in trouble.says
    assert advice in trouble.advice


@pytest.mark.parametrize(
    ("changed", "says", "advice"),
    [case[1:] for case in SUPABASE_TROUBLES],
    ids=[case[0] for case in SUPABASE_TROUBLES],
)
def test_an_unusable_supabase_store_says_what_to_set(
    supabase: Place, changed: dict[str, str], says: str, advice: str
) -> None:
    storage = replace(supabase.storage, **changed)  # type: ignore[type-var]
    with closing(storage._client):
        trouble = storage.trouble()
    assert says in trouble.says
    assert advice in trouble.advice


def test_a_working_store_reports_no_trouble(place: Place) -> None:
    assert place.storage.trouble() is None


def test_an_unusable_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "storage").write_text("a file where a folder should be")
    trouble = LocalStorage(tmp_path / "storage", "secret", wall_clock).trouble()
    assert trouble is not None
    assert str(tmp_path / "storage") in trouble.says
    assert "--data-dir" in trouble.advice
