"""Uploads, at the verbs: what may begin, what the stored bytes must be, and that each user has each file once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
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
from nexus.media import file_links, queries, runner, uploads
from nexus.media.files import Files
from nexus.media.lifecycle import claim_due
from nexus.media.uploads import Expected
from nexus.states.media import Kind, MediaStatus
from nexus.storage import ObjectMissing
from nexus.storage.local import LocalStorage
from tests.kit.clock import SetClock
from tests.kit.media import (
    events_of,
    everything_of,
    good_extractor,
    new_media,
    row_of,
    share_media,
    status_of,
)
from tests.kit.run_storage import run_prefix
from tests.kit.uploads import (
    PDF,
    Uploader,
    awaited_upload,
    count_media,
    expected_upload,
    failed_upload,
    stored_paths,
    unique_epub,
    unique_pdf,
    unreachable,
    uploader_with_store,
)
from tests.kit.work import extract_item


def unknown(_: str) -> None:
    """As in a store that did not receive the bytes itself."""


def test_beginning_an_upload_answers_with_a_target_and_writes_a_row_without_a_file(
    app: App, uploader: Uploader
) -> None:
    begun = uploader.begin(unique_pdf(100), filename="My paper.v2.pdf")
    assert begun.storage_path == f"{run_prefix()}media/{begun.media_id}/original.pdf"
    assert (begun.target.expires_at - app.sessions.clock()).total_seconds() == 300
    assert begun.target.headers == {"Content-Type": PDF}
    found = everything_of(app.sessions, begun.media_id)
    assert (found.row.processing_status, found.row.title) == ("pending", "My paper.v2")
    assert (found.row.file_sha256, found.files, found.texts) == (None, [], [])
    assert [(entry.event, entry.actor) for entry in found.history] == [("create", str(uploader.id))]
    assert len(found.holders) == 1
    with app.sessions.read() as session:
        assert not queries.get_media(session, begun.media_id, uploader.id).capabilities.can_download_file


def test_the_path_of_an_upload_names_no_user(uploader: Uploader) -> None:
    assert str(uploader.id) not in uploader.begin(unique_pdf()).storage_path


@pytest.mark.parametrize("kind", ["web_article", "video", "podcast_episode", "PDF", "", "a/../b"])
def test_only_kinds_that_are_files_can_be_uploaded(app: App, uploader: Uploader, kind: str) -> None:
    with pytest.raises(InvalidKind):
        uploader.begin(unique_pdf(), kind)
    assert count_media(app) == 0


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
        (Expected("text", "a.txt", "text/plain", 50 * 2**20 + 1), FileTooLarge),
        (Expected("text", "a.md", "text/markdown", 9), InvalidFileType),
        (Expected("pdf", "", PDF, 9), InvalidRequest),
        (Expected("pdf", "\x00\n", PDF, 9), InvalidRequest),
        (Expected("pdf", "folder/", PDF, 9), InvalidRequest),
        (Expected("pdf", "a" * 256, PDF, 9), InvalidRequest),
    ],
)
def test_an_upload_with_invalid_expectations_is_refused_before_it_is_sent(
    app: App, uploader: Uploader, given: Expected, error: type[ApiError]
) -> None:
    with pytest.raises(error) as raised:
        uploads.begin_upload(app.sessions, app.files, uploader.id, given)
    assert type(raised.value) is error
    assert count_media(app) == 0


@pytest.mark.parametrize("kind", ["pdf", "epub"])
def test_a_file_of_the_largest_size_is_accepted(app: App, uploader: Uploader, kind: str) -> None:
    most = app.files.most_bytes[Kind(kind)]
    given = replace(expected_upload(b"", kind), size_bytes=most)
    assert uploads.begin_upload(app.sessions, app.files, uploader.id, given)


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
def test_only_the_last_part_of_a_file_name_is_kept(
    app: App, uploader: Uploader, filename: str, kept: str
) -> None:
    begun = uploader.begin(unique_pdf(), filename=filename)
    assert begun.storage_path == f"{run_prefix()}media/{begun.media_id}/original.pdf"
    assert awaited_upload(app, begun.media_id).filename == kept


def test_an_upload_that_the_store_can_not_sign_leaves_nothing(app: App) -> None:
    person = uploader_with_store(app, sign_upload=unreachable)
    with pytest.raises(SignUploadFailed) as raised:
        person.begin(unique_pdf())
    assert (raised.value.status, raised.value.code) == (502, "E_SIGN_UPLOAD_FAILED")
    assert count_media(app) == 0


class TestConfirm:
    @pytest.mark.parametrize(
        ("kind", "body"), [("pdf", unique_pdf(5000)), ("epub", unique_epub())], ids=["pdf", "epub"]
    )
    def test_confirming_makes_the_bytes_the_file_of_the_media(
        self, app: App, uploader: Uploader, kind: str, body: bytes
    ) -> None:
        media_id = uploader.upload(body, kind, "my book")
        found = everything_of(app.sessions, media_id)
        assert found.row.file_sha256 == hashlib.sha256(body).hexdigest()
        assert found.row.processing_status == "pending"
        (file,) = found.files
        assert (file.size_bytes, file.filename) == (len(body), "my book")
        assert file.storage_path == f"{run_prefix()}media/{media_id}/original.{kind}"
        assert awaited_upload(app, media_id) is None
        assert events_of(app.sessions, media_id) == ["create"]

    def test_confirming_twice_is_the_same_as_once(self, app: App, uploader: Uploader) -> None:
        media_id = uploader.upload(unique_pdf())
        before = everything_of(app.sessions, media_id)
        again = uploader.confirm(media_id)
        assert (again.media_id, again.duplicate) == (media_id, False)
        assert everything_of(app.sessions, media_id) == before

    def test_work_on_an_upload_is_due_only_after_its_confirmation(self, app: App, uploader: Uploader) -> None:
        AVAILABLE_EXTRACTORS[Kind.PDF] = good_extractor
        media_id = uploader.sent(unique_pdf())
        assert extract_item(app.tools, media_id) is None
        with app.sessions.begin() as session:
            assert claim_due(session, Kind.PDF, uploader.id, 9) == []
        assert uploader.confirm(media_id).enqueued
        assert extract_item(app.tools, media_id) is runner.Outcome.READABLE
        assert events_of(app.sessions, media_id) == ["create", "start", "readable"]

    def test_a_confirmed_upload_without_an_extractor_is_not_announced(self, uploader: Uploader) -> None:
        assert not uploader.confirm(uploader.sent(unique_pdf())).enqueued

    def test_confirming_before_the_bytes_arrive_changes_nothing(
        self, app: App, uploader: Uploader, clock: SetClock
    ) -> None:
        body = unique_pdf()
        begun = uploader.begin(body)
        before = everything_of(app.sessions, begun.media_id)
        clock.forward(minutes=5)
        with pytest.raises(StorageMissing):
            uploader.confirm(begun.media_id)
        assert everything_of(app.sessions, begun.media_id) == before
        uploader.send(begun, body)
        assert uploader.confirm(begun.media_id).media_id == begun.media_id

    def test_confirming_missing_bytes_after_the_link_expired_fails_the_upload(
        self, app: App, uploader: Uploader, clock: SetClock
    ) -> None:
        begun = uploader.begin(unique_pdf())
        clock.forward(minutes=5, seconds=1)
        with pytest.raises(UploadExpired):
            uploader.confirm(begun.media_id)
        self.has_failed(app, begun.media_id, "E_UPLOAD_EXPIRED")

    def test_bytes_that_arrived_in_time_can_be_confirmed_later(
        self, uploader: Uploader, clock: SetClock
    ) -> None:
        media_id = uploader.sent(unique_pdf())
        clock.forward(hours=23)
        assert uploader.confirm(media_id).media_id == media_id

    def test_an_upload_is_not_confirmed_after_a_day(
        self, app: App, uploader: Uploader, clock: SetClock
    ) -> None:
        media_id = uploader.sent(unique_pdf())
        clock.forward(hours=24, seconds=1)
        with pytest.raises(UploadExpired):
            uploader.confirm(media_id)
        self.has_failed(app, media_id, "E_UPLOAD_EXPIRED")

    @pytest.mark.parametrize(
        ("kind", "body"),
        [
            ("pdf", b"<html>" * 99),
            ("pdf", unique_epub()),
            ("epub", unique_pdf()),
            ("epub", b"PK\x03\x04"),
            ("pdf", b""),
        ],
        ids=["a page", "an EPUB", "a PDF", "a bare ZIP", "nothing"],
    )
    def test_bytes_of_another_type_are_a_failed_upload(
        self, app: App, uploader: Uploader, kind: str, body: bytes
    ) -> None:
        begun = uploader.begin(unique_pdf(), kind)
        uploader.send(begun, body)
        with pytest.raises(InvalidFileType):
            uploader.confirm(begun.media_id)
        self.has_failed(app, begun.media_id, "E_INVALID_FILE_TYPE")

    def test_more_bytes_than_a_file_may_have_are_a_failed_upload(self, app: App) -> None:
        small = Uploader(replace(app, files=replace(app.files, most_bytes={Kind.PDF: 2**20})))
        begun = small.begin(unique_pdf())
        small.send(begun, unique_pdf(2**20 + 1))
        with pytest.raises(FileTooLarge):
            small.confirm(begun.media_id)
        self.has_failed(app, begun.media_id, "E_FILE_TOO_LARGE")

    @pytest.mark.parametrize("size", [40, 4000])
    def test_the_size_stated_for_an_upload_does_not_count(
        self, app: App, uploader: Uploader, size: int
    ) -> None:
        """A store whose links are not bound to a length lets both through."""
        begun = uploader.begin(unique_pdf(400))
        uploader.send(begun, body := unique_pdf(size))
        uploader.confirm(begun.media_id)
        assert everything_of(app.sessions, begun.media_id).files[0].size_bytes == len(body)

    def test_bytes_that_changed_after_they_arrived_are_read_again(self, app: App, uploader: Uploader) -> None:
        begun = uploader.begin(unique_pdf(400))
        uploader.send(begun, unique_pdf(400))
        storage = app.files.storage
        assert isinstance(storage, LocalStorage)
        storage.locate(begun.storage_path).write_bytes(body := unique_pdf(500))
        uploader.confirm(begun.media_id)
        found = everything_of(app.sessions, begun.media_id)
        assert (found.files[0].size_bytes, found.row.file_sha256) == (500, hashlib.sha256(body).hexdigest())

    def test_bytes_that_this_process_did_not_take_in_are_read(self, app: App, uploader: Uploader) -> None:
        media_id = uploader.sent(body := unique_pdf())
        other = replace(uploader_with_store(app, digest=unknown), id=uploader.id)
        assert other.confirm(media_id).media_id == media_id
        assert row_of(app.sessions, media_id).file_sha256 == hashlib.sha256(body).hexdigest()

    def test_confirming_with_a_store_that_is_too_slow_changes_nothing(
        self, app: App, uploader: Uploader
    ) -> None:
        media_id = uploader.sent(unique_pdf())
        before = everything_of(app.sessions, media_id)
        slow = uploader_with_store(app, digest=unknown).app
        hasty = Uploader(replace(slow, files=replace(slow.files, check_seconds=-1)), uploader.id)
        with pytest.raises(IngestTimeout):
            hasty.confirm(media_id)
        assert everything_of(app.sessions, media_id) == before
        assert uploader.confirm(media_id).media_id == media_id

    def test_confirming_with_an_unreachable_store_changes_nothing(self, app: App, uploader: Uploader) -> None:
        media_id = uploader.sent(unique_pdf())
        before = everything_of(app.sessions, media_id)
        cut_off = replace(uploader_with_store(app, stream=unreachable, digest=unknown), id=uploader.id)
        with pytest.raises(NotReady):
            cut_off.confirm(media_id)
        assert everything_of(app.sessions, media_id) == before

    def test_a_failed_upload_can_not_be_confirmed_again(self, app: App, uploader: Uploader) -> None:
        media_id = failed_upload(uploader)
        with pytest.raises(InvalidState):
            uploader.confirm(media_id)

    def test_a_url_can_not_be_confirmed(self, app: App, uploader: Uploader) -> None:
        with pytest.raises(InvalidKind):
            uploader.confirm(new_media(app, uploader.id))
        with pytest.raises(NotFound):
            uploader.confirm(uuid4())

    def test_only_the_uploader_can_confirm_an_upload(self, app: App, uploader: Uploader) -> None:
        media_id, admin, stranger = uploader.sent(unique_pdf()), Uploader(app), Uploader(app)
        share_media(app, uploader.id, media_id, (admin.id, Role.ADMIN))
        with pytest.raises(Forbidden):
            admin.confirm(media_id)
        with pytest.raises(NotFound):
            stranger.confirm(media_id)
        assert row_of(app.sessions, media_id).file_sha256 is None

    def has_failed(self, app: App, media_id: UUID, code: str) -> None:
        found = everything_of(app.sessions, media_id)
        assert (found.row.processing_status, found.row.failure_stage) == ("failed", "upload")
        assert found.row.last_error_code == code
        assert (found.row.file_sha256, found.files) == (None, [])
        assert [(e.event, e.error_code) for e in found.history] == [("create", None), ("fail", code)]
        assert stored_paths(app) == []


class TestTwoConfirmations:
    """One overtakes the other between reading the bytes and writing the result."""

    def overtaken(self, app: App, me: Uploader, media_id: UUID) -> Uploader:
        """Finds no bytes, because another confirmation was quicker."""

        def stream(path: str) -> Iterator[bytes]:
            me.confirm(media_id)
            raise ObjectMissing

        return replace(uploader_with_store(app, stream=stream, digest=unknown), id=me.id)

    def test_a_late_refusal_does_not_undo_a_confirmation(
        self, app: App, uploader: Uploader, clock: SetClock
    ) -> None:
        media_id = uploader.sent(unique_pdf())
        clock.forward(minutes=6)
        done = self.overtaken(app, uploader, media_id).confirm(media_id)
        assert (done.media_id, done.duplicate) == (media_id, False)
        assert status_of(app.sessions, media_id) is MediaStatus.PENDING
        assert len(stored_paths(app)) == 1

    def test_two_confirmations_of_a_duplicate_both_answer_with_the_first(
        self, app: App, uploader: Uploader
    ) -> None:
        body = unique_pdf()
        first, second = uploader.upload(body), uploader.sent(body)
        done = self.overtaken(app, uploader, second).confirm(second)
        assert (done.media_id, done.duplicate) == (first, True)
        assert len(stored_paths(app)) == 1


def test_a_download_link_leads_to_the_file_for_five_minutes(app: App, uploader: Uploader) -> None:
    media_id = uploader.upload(unique_pdf(), filename="ein Buch.pdf")
    link, _ = file_links.link_for(app.sessions, app.files, uploader.id, media_id)
    assert "filename=ein+Buch.pdf" in link.url
    assert (link.expires_at - app.sessions.clock()).total_seconds() == 300


def test_an_unconfirmed_upload_has_no_download_link(app: App, uploader: Uploader) -> None:
    media_id = uploader.sent(unique_pdf())
    with pytest.raises(NotFound):
        file_links.link_for(app.sessions, app.files, uploader.id, media_id)


def test_a_store_that_can_not_sign_a_download_is_reported_as_unavailable(
    app: App, uploader: Uploader
) -> None:
    media_id = uploader.upload(unique_pdf())
    cut_off: Files = uploader_with_store(app, sign_download=unreachable).app.files
    with pytest.raises(NotReady):
        file_links.link_for(app.sessions, cut_off, uploader.id, media_id)
