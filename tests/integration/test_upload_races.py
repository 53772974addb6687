"""Uploads that meet each other, on PostgreSQL with real threads: one winner, one object, no accident."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from uuid import UUID

import pytest

from nexus.app import App, build
from nexus.errors import InvalidFileType, InvalidState, NotFound
from nexus.media.uploads import Confirmed
from tests.files import Person, count, pdf, stored
from tests.integration.test_races import Crowd, assert_consistent
from tests.runs import run_prefix
from tests.support import make_settings, row_of
from tests.walks import events_of, whole

THREADS = 16
ROUNDS = 15


@pytest.fixture
def app(clean_postgres: str, tmp_path: Path) -> Iterator[App]:
    built = build(make_settings(clean_postgres, tmp_path, database_pool=40))
    yield built
    built.close()


@pytest.fixture
def crowd() -> Iterator[Crowd]:
    made = Crowd(THREADS)
    yield made
    made.close()


@pytest.fixture
def pair() -> Iterator[Crowd]:
    made = Crowd(2)
    yield made
    made.close()


def test_of_many_uploads_of_one_file_one_stays(app: App, crowd: Crowd) -> None:
    for _ in range(3):
        me, body = Person(app), pdf()
        ids = [me.sent(body) for _ in range(THREADS)]
        done = crowd.rush(lambda place, me=me, ids=ids: me.confirm(ids[place]))
        (winner,) = {answer.media_id for answer in done}
        assert winner in ids
        assert [answer.duplicate for answer in done].count(False) == 1
        assert [media_id for media_id in ids if row_of(app.sessions, media_id)] == [winner]
        assert len(whole(app.sessions, winner).files) == 1
        assert stored(app) == [f"{run_prefix()}media/{winner}/original.pdf"]
        assert_consistent(app, winner)
        me.delete(winner)


def test_the_same_file_of_many_users_is_a_media_for_each(app: App, crowd: Crowd) -> None:
    body, people = pdf(), [Person(app) for _ in range(THREADS)]
    done = crowd.rush(lambda place: people[place].upload(body))
    assert len(set(done)) == THREADS
    assert len(stored(app)) == THREADS


def test_confirming_one_upload_at_once_is_the_same_as_once(app: App, crowd: Crowd) -> None:
    for _ in range(ROUNDS):
        me = Person(app)
        media_id = me.sent(pdf())
        done = crowd.rush(lambda _, me=me, media_id=media_id: me.confirm(media_id))
        assert {(answer.media_id, answer.duplicate) for answer in done} == {(media_id, False)}
        assert events_of(app.sessions, media_id) == ["create"]
        assert len(whole(app.sessions, media_id).files) == 1


def test_confirming_one_duplicate_at_once_answers_with_the_first(app: App, crowd: Crowd) -> None:
    for _ in range(ROUNDS):
        me, body = Person(app), pdf()
        first, second = me.upload(body), me.sent(body)
        done = crowd.rush(lambda _, me=me, second=second: me.confirm(second))
        assert {(answer.media_id, answer.duplicate) for answer in done} == {(first, True)}
        assert row_of(app.sessions, second) is None


def test_a_bad_file_that_is_confirmed_at_once_fails_once(app: App, crowd: Crowd) -> None:
    for _ in range(ROUNDS):
        me = Person(app)
        media_id = me.sent(b"no pdf")

        def confirm(_: int, me: Person = me, media_id: UUID = media_id) -> None:
            with suppress(InvalidFileType, InvalidState):
                me.confirm(media_id)

        crowd.rush(confirm)
        assert events_of(app.sessions, media_id) == ["create", "fail"]
    assert stored(app) == []


def test_what_is_deleted_while_it_is_confirmed_is_gone(app: App, pair: Crowd) -> None:
    for _ in range(4 * ROUNDS):
        me = Person(app)
        media_id = me.sent(pdf())

        def either(place: int, me: Person = me, media_id: UUID = media_id) -> Confirmed | None:
            if place:
                me.delete(media_id)
                return None
            with suppress(NotFound):
                return me.confirm(media_id)
            return None

        pair.rush(either)
        assert (count(app), stored(app)) == (0, [])


def test_a_first_one_that_is_deleted_while_the_second_comes(app: App, pair: Crowd) -> None:
    """Either the second found it and went with it, or the second stays; never neither row nor object."""
    for _ in range(4 * ROUNDS):
        me, body = Person(app), pdf()
        first, second = me.upload(body), me.sent(body)

        def either(
            place: int, me: Person = me, first: UUID = first, second: UUID = second
        ) -> Confirmed | None:
            if place:
                me.delete(first)
                return None
            return me.confirm(second)

        done = pair.rush(either)[0]
        assert done is not None
        kept = row_of(app.sessions, done.media_id)
        assert row_of(app.sessions, first) is None
        assert (kept is not None) == (done.media_id == second)
        assert len(stored(app)) == (kept is not None)
        if kept is not None:
            me.delete(second)
