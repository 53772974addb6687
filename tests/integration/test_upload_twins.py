"""Duplicates are found per user, failed uploads can be repeated, and local files are taken in at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from nexus.app import App
from nexus.errors import (
    FileTooLarge,
    Forbidden,
    InvalidFileType,
    InvalidKind,
    InvalidState,
    NotFound,
    NotReady,
    SignUploadFailed,
)
from nexus.libraries import access, catalog
from nexus.libraries.access import Role
from nexus.media import deletions, uploads
from nexus.states.media import Kind, MediaStatus, Stage
from nexus.storage import StorageError
from tests.kit.media import (
    events_of,
    everything_of,
    fail_media,
    new_media,
    row_of,
    share_media,
    start_extraction,
    status_of,
    walk_media_to,
)
from tests.kit.run_storage import run_prefix
from tests.kit.uploads import (
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


def test_a_duplicate_answers_with_the_first_upload_and_is_gone(app: App, uploader: Uploader) -> None:
    body = unique_pdf()
    first, second = uploader.upload(body), uploader.sent(body)
    before = everything_of(app.sessions, first)
    done = uploader.confirm(second)
    assert (done.media_id, done.duplicate) == (first, True)
    assert row_of(app.sessions, second) is None
    assert events_of(app.sessions, second) == []
    assert stored_paths(app) == [f"{run_prefix()}media/{first}/original.pdf"]
    assert everything_of(app.sessions, first) == before


def test_confirming_a_duplicate_again_answers_with_the_first_upload(app: App, uploader: Uploader) -> None:
    body = unique_pdf()
    first, second = uploader.upload(body), uploader.sent(body)
    answers = [uploader.confirm(second) for _ in range(3)]
    assert {(done.media_id, done.duplicate) for done in answers} == {(first, True)}
    with pytest.raises(NotFound):
        Uploader(app).confirm(second)


def test_bytes_sent_for_a_removed_duplicate_are_removed_by_its_next_confirmation(
    app: App, uploader: Uploader
) -> None:
    """The upload link outlives the row."""
    body = unique_pdf()
    first, second = uploader.upload(body), uploader.begin(body)
    for _ in range(2):
        uploader.send(second, body)
        done = uploader.confirm(second.media_id)
        assert (done.media_id, done.duplicate) == (first, True)
        assert stored_paths(app) == [f"{run_prefix()}media/{first}/original.pdf"]


def test_a_duplicate_is_gone_once_the_first_upload_is_deleted(app: App, uploader: Uploader) -> None:
    body = unique_pdf()
    first, second = uploader.upload(body), uploader.sent(body)
    uploader.confirm(second)
    uploader.delete(first)
    with pytest.raises(NotFound):
        uploader.confirm(second)
    assert (count_media(app), stored_paths(app)) == (0, [])
    assert uploader.upload(body)


def test_the_same_file_of_different_users_is_different_media(app: App, uploader: Uploader) -> None:
    body, other = unique_pdf(), Uploader(app)
    assert uploader.upload(body) != other.upload(body)
    assert len(stored_paths(app)) == 2


def test_a_duplicate_puts_the_first_upload_back_into_the_default_library(
    app: App, uploader: Uploader
) -> None:
    body = unique_pdf()
    first = uploader.upload(body)
    shared = share_media(app, uploader.id, first)
    with app.sessions.begin() as session:
        default = access.default_library(session, uploader.id)
        assert catalog.remove_media(session, default, first, uploader.id) == []
    assert everything_of(app.sessions, first).holders == [shared]
    uploader.upload(body)
    assert set(everything_of(app.sessions, first).holders) == {shared, default}


def test_a_duplicate_of_a_failed_upload_retries_it(app: App, uploader: Uploader) -> None:
    body = unique_pdf()
    first = uploader.upload(body)
    walk_media_to(app, first, MediaStatus.FAILED)
    assert uploader.upload(body) == first
    assert events_of(app.sessions, first) == ["create", "start", "fail", "retry"]
    assert len(everything_of(app.sessions, first).files) == 1
    assert start_extraction(app, first) == 2


def test_a_duplicate_of_a_readable_upload_leaves_it_unchanged(app: App, uploader: Uploader) -> None:
    body = unique_pdf()
    first = uploader.upload(body)
    walk_media_to(app, first, MediaStatus.READY)
    before = everything_of(app.sessions, first)
    assert uploader.upload(body) == first
    assert everything_of(app.sessions, first) == before


def test_an_unconfirmed_upload_makes_no_other_a_duplicate(app: App, uploader: Uploader) -> None:
    body = unique_pdf()
    earlier, later = uploader.sent(body), uploader.sent(body)
    assert not uploader.confirm(later).duplicate
    assert uploader.confirm(earlier).media_id == later


def test_a_duplicates_object_is_left_for_clean_if_the_store_is_away(app: App, uploader: Uploader) -> None:
    body = unique_pdf()
    first, second = uploader.upload(body), uploader.sent(body)
    cut_off = replace(uploader_with_store(app, delete=unreachable), id=uploader.id)
    assert cut_off.confirm(second).media_id == first
    assert len(stored_paths(app)) == 2


def test_a_failed_upload_can_be_begun_again_under_the_same_id(app: App, uploader: Uploader) -> None:
    media_id = failed_upload(uploader)
    begun = uploader.begin_again(media_id)
    assert begun.media_id == media_id
    assert awaited_upload(app, media_id).size_bytes == len(b"this is no pdf")
    assert status_of(app.sessions, media_id) is MediaStatus.PENDING
    uploader.send(begun, unique_pdf())
    assert uploader.confirm(media_id).media_id == media_id
    assert events_of(app.sessions, media_id) == ["create", "fail", "retry"]


def test_a_failed_upload_may_be_replaced_by_another_file(app: App, uploader: Uploader) -> None:
    media_id = failed_upload(uploader)
    begun = uploader.begin_again(media_id, body := unique_pdf(999))
    assert "size=999" in begun.target.url
    uploader.send(begun, body)
    uploader.confirm(media_id)
    assert everything_of(app.sessions, media_id).files[0].size_bytes == 999


def test_a_failed_upload_can_not_be_replaced_by_another_kind_or_a_file_too_large(
    app: App, uploader: Uploader
) -> None:
    media_id = failed_upload(uploader)
    with pytest.raises(InvalidKind):
        uploader.begin_again(media_id, unique_epub(), "epub")
    huge = replace(expected_upload(b""), size_bytes=2**40)
    with pytest.raises(FileTooLarge):
        uploads.begin_again(app.sessions, app.files, uploader.id, media_id, huge)
    assert status_of(app.sessions, media_id) is MediaStatus.FAILED


def test_beginning_a_failed_upload_again_first_removes_its_bytes(app: App, uploader: Uploader) -> None:
    body = b"this is no pdf"
    cut_off = replace(uploader_with_store(app, delete=unreachable), id=uploader.id)
    media_id = cut_off.sent(body)
    with pytest.raises(InvalidFileType):
        cut_off.confirm(media_id)
    assert len(stored_paths(app)) == 1
    begun = uploader.begin_again(media_id, good := unique_pdf())
    uploader.send(begun, good)
    assert uploader.confirm(media_id).media_id == media_id


def test_a_failed_upload_stays_failed_if_the_store_can_not_sign(app: App, uploader: Uploader) -> None:
    media_id = failed_upload(uploader)
    before = everything_of(app.sessions, media_id)
    with pytest.raises(SignUploadFailed):
        replace(uploader_with_store(app, sign_upload=unreachable), id=uploader.id).begin_again(media_id)
    assert everything_of(app.sessions, media_id) == before


def test_only_the_uploader_can_begin_an_upload_again(app: App, uploader: Uploader) -> None:
    media_id = failed_upload(uploader)
    admin, member, stranger = Uploader(app), Uploader(app), Uploader(app)
    share_media(app, uploader.id, media_id, (admin.id, Role.ADMIN), (member.id, Role.MEMBER))
    for person, error in ((admin, Forbidden), (member, Forbidden), (stranger, NotFound)):
        with pytest.raises(error):
            person.begin_again(media_id)
    assert status_of(app.sessions, media_id) is MediaStatus.FAILED


@pytest.mark.parametrize(
    "status", [MediaStatus.PENDING, MediaStatus.EXTRACTING, MediaStatus.FAILED, MediaStatus.READY]
)
def test_only_a_failed_upload_can_be_begun_again(app: App, uploader: Uploader, status: MediaStatus) -> None:
    media_id = uploader.upload(unique_pdf())
    walk_media_to(app, media_id, status)
    before = everything_of(app.sessions, media_id)
    with pytest.raises(InvalidState):
        uploader.begin_again(media_id)
    assert everything_of(app.sessions, media_id) == before


def test_a_file_that_failed_after_its_upload_keeps_its_bytes(app: App, uploader: Uploader) -> None:
    media_id = uploader.upload(unique_pdf())
    fail_media(app, media_id, start_extraction(app, media_id), Stage.EXTRACT)
    with app.sessions.read() as session:
        assert not uploads.upload_failed(session, uploader.id, media_id)
    assert len(stored_paths(app)) == 1


def test_a_failed_url_can_not_be_begun_again_as_an_upload(app: App, uploader: Uploader) -> None:
    media_id = new_media(app, uploader.id)
    with app.sessions.read() as session:
        assert not uploads.upload_failed(session, uploader.id, media_id)
        with pytest.raises(NotFound):
            uploads.upload_failed(session, uuid4(), media_id)


class TestTakeIn:
    def take_in(self, person: Uploader, body: bytes, kind: str = "pdf") -> uploads.Confirmed:
        app = person.app
        pieces = (body[at : at + 7] for at in range(0, len(body), 7))
        return uploads.take_in(app.sessions, app.files, person.id, expected_upload(body, kind), pieces)

    def test_a_local_file_is_taken_in_at_once(self, app: App, uploader: Uploader) -> None:
        done = self.take_in(uploader, body := unique_pdf(1000))
        assert (done.kind, done.duplicate) == (Kind.PDF, False)
        assert everything_of(app.sessions, done.media_id).files[0].size_bytes == len(body)

    def test_a_local_duplicate_leaves_nothing(self, app: App, uploader: Uploader) -> None:
        body = unique_epub()
        first, second = self.take_in(uploader, body, "epub"), self.take_in(uploader, body, "epub")
        assert (second.media_id, second.duplicate) == (first.media_id, True)
        assert (count_media(app), len(stored_paths(app))) == (1, 1)

    def test_a_local_file_of_a_wrong_type_is_a_failed_upload(self, app: App, uploader: Uploader) -> None:
        with pytest.raises(InvalidFileType):
            self.take_in(uploader, b"no pdf")
        assert (count_media(app), stored_paths(app)) == (1, [])

    def test_a_local_file_leaves_nothing_if_the_store_breaks_off(self, app: App) -> None:
        with pytest.raises(NotReady):
            self.take_in(uploader_with_store(app, put=unreachable), unique_pdf())
        assert (count_media(app), stored_paths(app)) == (0, [])

    def test_a_local_file_that_can_not_be_read_to_its_end_leaves_nothing(
        self, app: App, uploader: Uploader
    ) -> None:
        def broken() -> Iterator[bytes]:
            yield unique_pdf()
            raise OSError

        with pytest.raises(NotReady):
            uploads.take_in(app.sessions, app.files, uploader.id, expected_upload(unique_pdf()), broken())
        assert (count_media(app), stored_paths(app)) == (0, [])


def test_the_file_of_a_deleted_media_is_removed_after_the_commit(app: App, uploader: Uploader) -> None:
    media_id: UUID = uploader.upload(unique_pdf())
    with app.sessions.begin() as session:
        gone = catalog.delete_media(session, media_id, uploader.id)
        assert len(stored_paths(app)) == 1
    deletions.discard_all(app.files, gone)
    assert stored_paths(app) == []


def test_a_store_that_is_away_does_not_keep_a_media_from_being_deleted(app: App, uploader: Uploader) -> None:
    def down(_: str) -> None:
        raise StorageError("down")

    media_id = uploader.upload(unique_pdf())
    replace(uploader_with_store(app, delete=down), id=uploader.id).delete(media_id)
    assert (count_media(app), len(stored_paths(app))) == (0, 1)
