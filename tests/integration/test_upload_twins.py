"""Each user has each file once; an upload that failed can be made good; a file at hand is taken in in one go."""

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
from nexus.media import files as store
from nexus.media import uploads
from nexus.states.media import Kind, Stage, Status
from nexus.storage import StorageError
from tests.files import Person, count, epub, expected, pdf, stored, waits_for
from tests.integration.test_uploads import away, failed, with_store
from tests.runs import run_prefix
from tests.support import new_media, row_of
from tests.walks import events_of, fail, let_in, put, start, status_of, whole


@pytest.fixture
def me(app: App) -> Person:
    return Person(app)


class TestDuplicates:
    def test_the_second_answers_with_the_first_and_is_gone(self, app: App, me: Person) -> None:
        body = pdf()
        first, second = me.upload(body), me.sent(body)
        before = whole(app.sessions, first)
        done = me.confirm(second)
        assert (done.media_id, done.duplicate) == (first, True)
        assert row_of(app.sessions, second) is None
        assert events_of(app.sessions, second) == []
        assert stored(app) == [f"{run_prefix()}media/{first}/original.pdf"]
        assert whole(app.sessions, first) == before

    def test_asking_for_the_second_again_answers_with_the_first(self, app: App, me: Person) -> None:
        body = pdf()
        first, second = me.upload(body), me.sent(body)
        answers = [me.confirm(second) for _ in range(3)]
        assert {(done.media_id, done.duplicate) for done in answers} == {(first, True)}
        with pytest.raises(NotFound):
            Person(app).confirm(second)

    def test_what_is_sent_again_after_the_second_is_gone_goes_when_that_is_confirmed_again(
        self, app: App, me: Person
    ) -> None:
        """The link to upload lives longer than the row."""
        body = pdf()
        first, second = me.upload(body), me.begin(body)
        for _ in range(2):
            me.send(second, body)
            done = me.confirm(second.media_id)
            assert (done.media_id, done.duplicate) == (first, True)
            assert stored(app) == [f"{run_prefix()}media/{first}/original.pdf"]

    def test_when_the_first_is_deleted_the_second_is_gone_too(self, app: App, me: Person) -> None:
        body = pdf()
        first, second = me.upload(body), me.sent(body)
        me.confirm(second)
        me.delete(first)
        with pytest.raises(NotFound):
            me.confirm(second)
        assert (count(app), stored(app)) == (0, [])
        assert me.upload(body)

    def test_different_users_have_different_media(self, app: App, me: Person) -> None:
        body, other = pdf(), Person(app)
        assert me.upload(body) != other.upload(body)
        assert len(stored(app)) == 2

    def test_it_is_put_back_into_the_default_library(self, app: App, me: Person) -> None:
        body = pdf()
        first = me.upload(body)
        shared = let_in(app, me.id, first)
        with app.sessions.begin() as session:
            default = access.default_library(session, me.id)
            assert catalog.remove_media(session, default, first, me.id) == []
        assert whole(app.sessions, first).holders == [shared]
        me.upload(body)
        assert set(whole(app.sessions, first).holders) == {shared, default}

    def test_a_first_one_that_failed_is_retried(self, app: App, me: Person) -> None:
        body = pdf()
        first = me.upload(body)
        put(app, first, Status.FAILED)
        assert me.upload(body) == first
        assert events_of(app.sessions, first) == ["create", "start", "fail", "retry"]
        assert len(whole(app.sessions, first).files) == 1
        assert start(app, first) == 2

    def test_a_first_one_that_is_ready_stays_as_it_is(self, app: App, me: Person) -> None:
        body = pdf()
        first = me.upload(body)
        put(app, first, Status.READY)
        before = whole(app.sessions, first)
        assert me.upload(body) == first
        assert whole(app.sessions, first) == before

    def test_one_that_has_not_been_confirmed_is_no_first_one(self, app: App, me: Person) -> None:
        body = pdf()
        earlier, later = me.sent(body), me.sent(body)
        assert not me.confirm(later).duplicate
        assert me.confirm(earlier).media_id == later

    def test_where_the_store_is_away_its_object_is_left_for_clean(self, app: App, me: Person) -> None:
        body = pdf()
        first, second = me.upload(body), me.sent(body)
        cut_off = replace(with_store(app, delete=away), id=me.id)
        assert cut_off.confirm(second).media_id == first
        assert len(stored(app)) == 2


class TestAgain:
    def test_a_failed_upload_gets_a_new_place_under_the_same_id(self, app: App, me: Person) -> None:
        media_id = failed(me)
        begun = me.begin_again(media_id)
        assert begun.media_id == media_id
        assert waits_for(app, media_id).size_bytes == len(b"this is no pdf")
        assert status_of(app.sessions, media_id) is Status.PENDING
        me.send(begun, pdf())
        assert me.confirm(media_id).media_id == media_id
        assert events_of(app.sessions, media_id) == ["create", "fail", "retry"]

    def test_another_file_may_come_instead(self, app: App, me: Person) -> None:
        media_id = failed(me)
        begun = me.begin_again(media_id, body := pdf(999))
        assert "size=999" in begun.target.url
        me.send(begun, body)
        me.confirm(media_id)
        assert whole(app.sessions, media_id).files[0].size_bytes == 999

    def test_but_none_of_another_kind_or_too_large(self, app: App, me: Person) -> None:
        media_id = failed(me)
        with pytest.raises(InvalidKind):
            me.begin_again(media_id, epub(), "epub")
        huge = replace(expected(b""), size_bytes=2**40)
        with pytest.raises(FileTooLarge):
            uploads.begin_again(app.sessions, app.files, me.id, media_id, huge)
        assert status_of(app.sessions, media_id) is Status.FAILED

    def test_what_the_failed_one_left_is_removed_first(self, app: App, me: Person) -> None:
        body = b"this is no pdf"
        cut_off = replace(with_store(app, delete=away), id=me.id)
        media_id = cut_off.sent(body)
        with pytest.raises(InvalidFileType):
            cut_off.confirm(media_id)
        assert len(stored(app)) == 1
        begun = me.begin_again(media_id, good := pdf())
        me.send(begun, good)
        assert me.confirm(media_id).media_id == media_id

    def test_where_the_store_can_not_sign_it_stays_failed(self, app: App, me: Person) -> None:
        media_id = failed(me)
        before = whole(app.sessions, media_id)
        with pytest.raises(SignUploadFailed):
            replace(with_store(app, sign_upload=away), id=me.id).begin_again(media_id)
        assert whole(app.sessions, media_id) == before

    def test_only_who_uploaded_it_uploads_again(self, app: App, me: Person) -> None:
        media_id = failed(me)
        admin, member, stranger = Person(app), Person(app), Person(app)
        let_in(app, me.id, media_id, (admin.id, Role.ADMIN), (member.id, Role.MEMBER))
        for person, error in ((admin, Forbidden), (member, Forbidden), (stranger, NotFound)):
            with pytest.raises(error):
                person.begin_again(media_id)
        assert status_of(app.sessions, media_id) is Status.FAILED

    @pytest.mark.parametrize("status", [Status.PENDING, Status.EXTRACTING, Status.FAILED, Status.READY])
    def test_only_an_upload_that_failed_is_begun_again(self, app: App, me: Person, status: Status) -> None:
        media_id = me.upload(pdf())
        put(app, media_id, status)
        before = whole(app.sessions, media_id)
        with pytest.raises(InvalidState):
            me.begin_again(media_id)
        assert whole(app.sessions, media_id) == before

    def test_what_failed_later_keeps_its_file(self, app: App, me: Person) -> None:
        media_id = me.upload(pdf())
        fail(app, media_id, start(app, media_id), Stage.EXTRACT)
        with app.sessions.read() as session:
            assert not uploads.failed_upload(session, me.id, media_id)
        assert len(stored(app)) == 1

    def test_a_url_that_failed_is_no_failed_upload(self, app: App, me: Person) -> None:
        media_id = new_media(app, me.id)
        with app.sessions.read() as session:
            assert not uploads.failed_upload(session, me.id, media_id)
            with pytest.raises(NotFound):
                uploads.failed_upload(session, uuid4(), media_id)


class TestTakeIn:
    def take_in(self, person: Person, body: bytes, kind: str = "pdf") -> uploads.Settled:
        app = person.app
        pieces = (body[at : at + 7] for at in range(0, len(body), 7))
        return uploads.take_in(app.sessions, app.files, person.id, expected(body, kind), pieces)

    def test_a_file_at_hand_is_taken_in_in_one_go(self, app: App, me: Person) -> None:
        done = self.take_in(me, body := pdf(1000))
        assert (done.kind, done.duplicate) == (Kind.PDF, False)
        assert whole(app.sessions, done.media_id).files[0].size_bytes == len(body)

    def test_a_duplicate_leaves_nothing(self, app: App, me: Person) -> None:
        body = epub()
        first, second = self.take_in(me, body, "epub"), self.take_in(me, body, "epub")
        assert (second.media_id, second.duplicate) == (first.media_id, True)
        assert (count(app), len(stored(app))) == (1, 1)

    def test_a_file_that_is_none_is_a_failed_upload(self, app: App, me: Person) -> None:
        with pytest.raises(InvalidFileType):
            self.take_in(me, b"no pdf")
        assert (count(app), stored(app)) == (1, [])

    def test_a_store_that_breaks_off_leaves_nothing(self, app: App) -> None:
        with pytest.raises(NotReady):
            self.take_in(with_store(app, put=away), pdf())
        assert (count(app), stored(app)) == (0, [])

    def test_a_file_that_can_not_be_read_to_its_end_leaves_nothing(self, app: App, me: Person) -> None:
        def broken() -> Iterator[bytes]:
            yield pdf()
            raise OSError

        with pytest.raises(NotReady):
            uploads.take_in(app.sessions, app.files, me.id, expected(pdf()), broken())
        assert (count(app), stored(app)) == (0, [])


def test_a_file_is_deleted_after_the_commit(app: App, me: Person) -> None:
    media_id: UUID = me.upload(pdf())
    with app.sessions.begin() as session:
        gone = catalog.delete_media(session, media_id, me.id)
        assert len(stored(app)) == 1
    store.discard_all(app.files, gone)
    assert stored(app) == []


def test_a_store_that_is_away_does_not_keep_a_media_from_being_deleted(app: App, me: Person) -> None:
    def down(_: str) -> None:
        raise StorageError("down")

    media_id = me.upload(pdf())
    replace(with_store(app, delete=down), id=me.id).delete(media_id)
    assert (count(app), len(stored(app))) == (0, 1)
