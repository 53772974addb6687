"""Uploads, at the verbs: what may begin, what the stored bytes must be, and that each user has each file once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from nexus.app import App
from nexus.errors import (
    ApiError,
    FileTooLarge,
    Forbidden,
    IngestTimeout,
    InvalidFileType,
    InvalidKind,
    InvalidRequest,
    InvalidState,
    NotFound,
    NotReady,
    SignUploadFailed,
    StorageMissing,
    UploadExpired,
)
from nexus.extract import AVAILABLE_EXTRACTORS
from nexus.libraries.access import Role
from nexus.media import files as store
from nexus.media import queries, runner, uploads
from nexus.media.files import Files
from nexus.media.lifecycle import claim_due
from nexus.media.uploads import Expected
from nexus.states.media import Kind, Status
from nexus.storage import ObjectMissing, StorageError
from nexus.storage.local import Local
from tests.files import PDF, Person, count, epub, expected, pdf, stored, waits_for
from tests.runs import run_prefix
from tests.support import SetClock, new_media, row_of
from tests.walks import events_of, good, let_in, status_of, whole


@pytest.fixture
def me(app: App) -> Person:
    return Person(app)


class Store:
    """The app's store, but for what a test puts in its place."""

    def __init__(self, app: App, **instead: Callable[..., object]) -> None:
        self._storage = app.files.storage
        self.__dict__.update(instead)

    def __getattr__(self, name: str) -> object:
        return getattr(self._storage, name)


def with_store(app: App, **instead: Callable[..., object]) -> Person:
    files = replace(app.files, storage=Store(app, **instead))  # type: ignore[arg-type]
    return Person(replace(app, files=files))


def away(*_: object) -> None:
    raise StorageError("away")


def unknown(_: str) -> None:
    """As of a store that did not see the bytes come in."""


class TestBegin:
    def test_answers_a_place_and_writes_a_row_without_a_file(self, app: App, me: Person) -> None:
        begun = me.begin(pdf(100), filename="My paper.v2.pdf")
        assert begun.storage_path == f"{run_prefix()}media/{begun.media_id}/original.pdf"
        assert (begun.target.expires_at - app.sessions.clock()).total_seconds() == 300
        assert begun.target.headers == {"Content-Type": PDF}
        found = whole(app.sessions, begun.media_id)
        assert (found.row.processing_status, found.row.title) == ("pending", "My paper.v2")
        assert (found.row.file_sha256, found.files, found.texts) == (None, [], [])
        assert [(entry.event, entry.actor) for entry in found.history] == [("create", str(me.id))]
        assert len(found.holders) == 1
        with app.sessions.read() as session:
            assert not queries.get(session, begun.media_id, me.id).capabilities.can_download_file

    def test_the_path_names_no_user(self, me: Person) -> None:
        assert str(me.id) not in me.begin(pdf()).storage_path

    @pytest.mark.parametrize("kind", ["web_article", "video", "podcast_episode", "text", "PDF", "", "a/../b"])
    def test_only_files_are_uploaded(self, app: App, me: Person, kind: str) -> None:
        with pytest.raises(InvalidKind):
            me.begin(pdf(), kind)
        assert count(app) == 0

    @pytest.mark.parametrize(
        ("given", "error"),
        [
            (Expected("pdf", "a.pdf", "text/html", 9), InvalidFileType),
            (Expected("pdf", "a.pdf", "application/epub+zip", 9), InvalidFileType),
            (Expected("epub", "a.epub", PDF, 9), InvalidFileType),
            (Expected("pdf", "a.pdf", "application/PDF", 9), InvalidFileType),
            (Expected("pdf", "a.pdf", PDF, 0), InvalidRequest),
            (Expected("pdf", "a.pdf", PDF, -1), InvalidRequest),
            (Expected("pdf", "a.pdf", PDF, 100 * 2**20 + 1), FileTooLarge),
            (Expected("epub", "a.epub", "application/epub+zip", 50 * 2**20 + 1), FileTooLarge),
            (Expected("pdf", "", PDF, 9), InvalidRequest),
            (Expected("pdf", "\x00\n", PDF, 9), InvalidRequest),
            (Expected("pdf", "folder/", PDF, 9), InvalidRequest),
            (Expected("pdf", "a" * 256, PDF, 9), InvalidRequest),
        ],
    )
    def test_what_can_not_come_is_refused_before_it_comes(
        self, app: App, me: Person, given: Expected, error: type[ApiError]
    ) -> None:
        with pytest.raises(error) as raised:
            uploads.begin(app.sessions, app.files, me.id, given)
        assert type(raised.value) is error
        assert count(app) == 0

    @pytest.mark.parametrize("kind", ["pdf", "epub"])
    def test_the_largest_file_is_taken(self, app: App, me: Person, kind: str) -> None:
        most = app.files.most_bytes[Kind(kind)]
        given = replace(expected(b"", kind), size_bytes=most)
        assert uploads.begin(app.sessions, app.files, me.id, given)

    @pytest.mark.parametrize(
        ("filename", "kept"),
        [
            ("../../etc/passwd.pdf", "passwd.pdf"),
            ("C:\\Users\\me\\a.pdf", "a.pdf"),
            ("a\r\nX-Injected: 1.pdf", "aX-Injected: 1.pdf"),
            ("a\x00b\x7f.pdf", "ab.pdf"),
            ("\u202efdp.exe", "\u202efdp.exe"),
            ("книга \U0001f600.pdf", "книга \U0001f600.pdf"),
            ("a\ud800b.pdf", "ab.pdf"),
            ("  a.pdf ", "a.pdf"),
            ("'; DROP TABLE media; --.pdf", "'; DROP TABLE media; --.pdf"),
            ("a" * 255, "a" * 255),
        ],
    )
    def test_of_a_name_only_the_last_part_is_kept(
        self, app: App, me: Person, filename: str, kept: str
    ) -> None:
        begun = me.begin(pdf(), filename=filename)
        assert begun.storage_path == f"{run_prefix()}media/{begun.media_id}/original.pdf"
        assert waits_for(app, begun.media_id).filename == kept

    def test_where_the_store_can_not_sign_nothing_is_left(self, app: App) -> None:
        person = with_store(app, sign_upload=away)
        with pytest.raises(SignUploadFailed) as raised:
            person.begin(pdf())
        assert (raised.value.status, raised.value.code) == (502, "E_SIGN_UPLOAD_FAILED")
        assert count(app) == 0


class TestConfirm:
    @pytest.mark.parametrize(("kind", "body"), [("pdf", pdf(5000)), ("epub", epub())], ids=["pdf", "epub"])
    def test_makes_the_bytes_the_file_of_the_media(
        self, app: App, me: Person, kind: str, body: bytes
    ) -> None:
        media_id = me.upload(body, kind, "my book")
        found = whole(app.sessions, media_id)
        assert found.row.file_sha256 == hashlib.sha256(body).hexdigest()
        assert found.row.processing_status == "pending"
        (file,) = found.files
        assert (file.size_bytes, file.filename) == (len(body), "my book")
        assert file.storage_path == f"{run_prefix()}media/{media_id}/original.{kind}"
        assert waits_for(app, media_id) is None
        assert events_of(app.sessions, media_id) == ["create"]

    def test_asking_twice_is_the_same_as_once(self, app: App, me: Person) -> None:
        media_id = me.upload(pdf())
        before = whole(app.sessions, media_id)
        again = me.confirm(media_id)
        assert (again.media_id, again.duplicate) == (media_id, False)
        assert whole(app.sessions, media_id) == before

    def test_work_is_due_after_it_and_not_before(self, app: App, me: Person) -> None:
        AVAILABLE_EXTRACTORS[Kind.PDF] = good
        media_id = me.sent(pdf())
        assert runner.run(app.tools, media_id) is runner.Outcome.NOTHING
        with app.sessions.begin() as session:
            assert claim_due(session, Kind.PDF, me.id, 9) == []
        assert me.confirm(media_id).enqueued
        assert runner.run(app.tools, media_id) is runner.Outcome.READABLE
        assert events_of(app.sessions, media_id) == ["create", "start", "readable"]

    def test_nothing_is_announced_where_nobody_can_work_on_it(self, me: Person) -> None:
        assert not me.confirm(me.sent(pdf())).enqueued

    def test_bytes_that_may_still_arrive_change_nothing(self, app: App, me: Person, clock: SetClock) -> None:
        body = pdf()
        begun = me.begin(body)
        before = whole(app.sessions, begun.media_id)
        clock.forward(minutes=5)
        with pytest.raises(StorageMissing):
            me.confirm(begun.media_id)
        assert whole(app.sessions, begun.media_id) == before
        me.send(begun, body)
        assert me.confirm(begun.media_id).media_id == begun.media_id

    def test_bytes_that_can_not_arrive_any_more_are_a_failed_upload(
        self, app: App, me: Person, clock: SetClock
    ) -> None:
        begun = me.begin(pdf())
        clock.forward(minutes=5, seconds=1)
        with pytest.raises(UploadExpired):
            me.confirm(begun.media_id)
        self.has_failed(app, begun.media_id, "E_UPLOAD_EXPIRED")

    def test_bytes_that_arrived_in_time_can_be_confirmed_later(self, me: Person, clock: SetClock) -> None:
        media_id = me.sent(pdf())
        clock.forward(hours=23)
        assert me.confirm(media_id).media_id == media_id

    def test_an_upload_is_not_confirmed_after_a_day(self, app: App, me: Person, clock: SetClock) -> None:
        media_id = me.sent(pdf())
        clock.forward(hours=24, seconds=1)
        with pytest.raises(UploadExpired):
            me.confirm(media_id)
        self.has_failed(app, media_id, "E_UPLOAD_EXPIRED")

    @pytest.mark.parametrize(
        ("kind", "body"),
        [("pdf", b"<html>" * 99), ("pdf", epub()), ("epub", pdf()), ("epub", b"PK\x03\x04"), ("pdf", b"")],
        ids=["a page", "an EPUB", "a PDF", "a bare ZIP", "nothing"],
    )
    def test_bytes_of_another_type_are_a_failed_upload(
        self, app: App, me: Person, kind: str, body: bytes
    ) -> None:
        begun = me.begin(pdf(), kind)
        me.send(begun, body)
        with pytest.raises(InvalidFileType):
            me.confirm(begun.media_id)
        self.has_failed(app, begun.media_id, "E_INVALID_FILE_TYPE")

    def test_more_bytes_than_a_file_may_have_are_a_failed_upload(self, app: App) -> None:
        small = Person(replace(app, files=replace(app.files, most_bytes={Kind.PDF: 2**20})))
        begun = small.begin(pdf())
        small.send(begun, pdf(2**20 + 1))
        with pytest.raises(FileTooLarge):
            small.confirm(begun.media_id)
        self.has_failed(app, begun.media_id, "E_FILE_TOO_LARGE")

    @pytest.mark.parametrize("size", [40, 4000])
    def test_what_was_said_of_the_size_does_not_count(self, app: App, me: Person, size: int) -> None:
        """A store that does not hold a link to its length lets either through."""
        begun = me.begin(pdf(400))
        me.send(begun, body := pdf(size))
        me.confirm(begun.media_id)
        assert whole(app.sessions, begun.media_id).files[0].size_bytes == len(body)

    def test_bytes_that_were_changed_since_they_came_in_are_read(self, app: App, me: Person) -> None:
        begun = me.begin(pdf(400))
        me.send(begun, pdf(400))
        storage = app.files.storage
        assert isinstance(storage, Local)
        storage.locate(begun.storage_path).write_bytes(body := pdf(500))
        me.confirm(begun.media_id)
        found = whole(app.sessions, begun.media_id)
        assert (found.files[0].size_bytes, found.row.file_sha256) == (500, hashlib.sha256(body).hexdigest())

    def test_bytes_that_this_process_did_not_take_in_are_read(self, app: App, me: Person) -> None:
        media_id = me.sent(body := pdf())
        other = replace(with_store(app, digest=unknown), id=me.id)
        assert other.confirm(media_id).media_id == media_id
        assert row_of(app.sessions, media_id).file_sha256 == hashlib.sha256(body).hexdigest()

    def test_a_store_that_is_too_slow_changes_nothing(self, app: App, me: Person) -> None:
        media_id = me.sent(pdf())
        before = whole(app.sessions, media_id)
        slow = with_store(app, digest=unknown).app
        hasty = Person(replace(slow, files=replace(slow.files, check_seconds=-1)), me.id)
        with pytest.raises(IngestTimeout):
            hasty.confirm(media_id)
        assert whole(app.sessions, media_id) == before
        assert me.confirm(media_id).media_id == media_id

    def test_a_store_that_is_away_changes_nothing(self, app: App, me: Person) -> None:
        media_id = me.sent(pdf())
        before = whole(app.sessions, media_id)
        cut_off = replace(with_store(app, stream=away, digest=unknown), id=me.id)
        with pytest.raises(NotReady):
            cut_off.confirm(media_id)
        assert whole(app.sessions, media_id) == before

    def test_a_failed_upload_is_not_confirmed_again(self, app: App, me: Person) -> None:
        media_id = failed(me)
        with pytest.raises(InvalidState):
            me.confirm(media_id)

    def test_a_url_is_not_confirmed(self, app: App, me: Person) -> None:
        with pytest.raises(InvalidKind):
            me.confirm(new_media(app, me.id))
        with pytest.raises(NotFound):
            me.confirm(uuid4())

    def test_only_who_uploaded_it_confirms_it(self, app: App, me: Person) -> None:
        media_id, admin, stranger = me.sent(pdf()), Person(app), Person(app)
        let_in(app, me.id, media_id, (admin.id, Role.ADMIN))
        with pytest.raises(Forbidden):
            admin.confirm(media_id)
        with pytest.raises(NotFound):
            stranger.confirm(media_id)
        assert row_of(app.sessions, media_id).file_sha256 is None

    def has_failed(self, app: App, media_id: UUID, code: str) -> None:
        found = whole(app.sessions, media_id)
        assert (found.row.processing_status, found.row.failure_stage) == ("failed", "upload")
        assert found.row.last_error_code == code
        assert (found.row.file_sha256, found.files) == (None, [])
        assert [(e.event, e.error_code) for e in found.history] == [("create", None), ("fail", code)]
        assert stored(app) == []


def failed(me: Person) -> UUID:
    """An upload that failed because its bytes were no PDF."""
    media_id = me.sent(b"this is no pdf")
    with pytest.raises(InvalidFileType):
        me.confirm(media_id)
    return media_id


class TestTwoConfirmations:
    """One overtakes the other between its look at the bytes and its word on them."""

    def overtaken(self, app: App, me: Person, media_id: UUID) -> Person:
        """Finds no bytes, because another confirmation was quicker."""

        def stream(path: str) -> Iterator[bytes]:
            me.confirm(media_id)
            raise ObjectMissing

        return replace(with_store(app, stream=stream, digest=unknown), id=me.id)

    def test_a_late_refusal_does_not_undo_a_confirmation(self, app: App, me: Person, clock: SetClock) -> None:
        media_id = me.sent(pdf())
        clock.forward(minutes=6)
        done = self.overtaken(app, me, media_id).confirm(media_id)
        assert (done.media_id, done.duplicate) == (media_id, False)
        assert status_of(app.sessions, media_id) is Status.PENDING
        assert len(stored(app)) == 1

    def test_both_of_a_duplicate_answer_with_the_first(self, app: App, me: Person) -> None:
        body = pdf()
        first, second = me.upload(body), me.sent(body)
        done = self.overtaken(app, me, second).confirm(second)
        assert (done.media_id, done.duplicate) == (first, True)
        assert len(stored(app)) == 1


class TestLink:
    def test_leads_to_the_file_for_five_minutes(self, app: App, me: Person) -> None:
        media_id = me.upload(pdf(), filename="ein Buch.pdf")
        with app.sessions.read() as session:
            link = store.link(session, app.files, media_id)
        assert "filename=ein+Buch.pdf" in link.url
        assert (link.expires_at - app.sessions.clock()).total_seconds() == 300

    def test_there_is_none_before_the_file_was_checked(self, app: App, me: Person) -> None:
        media_id = me.sent(pdf())
        with app.sessions.read() as session, pytest.raises(NotFound):
            store.link(session, app.files, media_id)

    def test_a_store_that_can_not_sign_is_away(self, app: App, me: Person) -> None:
        media_id = me.upload(pdf())
        cut_off: Files = with_store(app, sign_download=away).app.files
        with app.sessions.read() as session, pytest.raises(NotReady):
            store.link(session, cut_off, media_id)
