"""Uploads that race, on PostgreSQL with real threads: one winner and one object."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from uuid import UUID

import pytest
from sqlalchemy import Boolean, column, text

from nexus.app import App, build
from nexus.db.drivers import postgres
from nexus.db.session import Statement
from nexus.errors import InvalidFileType, InvalidState, NotFound
from nexus.media.uploads import Confirmed
from nexus.settings import Settings
from nexus.storage.local import LocalStorage
from tests.kit.crowd import THREADS, Crowd
from tests.kit.media import assert_media_replays, events_of, everything_of, row_of
from tests.kit.run_storage import run_prefix
from tests.kit.settings import make_settings
from tests.kit.uploads import Uploader, count_media, failed_upload, stored_paths, unique_pdf
from tests.kit.waiting import eventually

pytestmark = pytest.mark.wall_clock

ROUNDS = 15
#: PostgreSQL ends transactions that are idle for longer than this many seconds, unless told otherwise.
IDLE_SECONDS = 0.2
#: Transactions that are idle now, and whether each has outlived that limit.
_IDLE = Statement(
    text(
        f"SELECT clock_timestamp() - state_change > interval '{4 * IDLE_SECONDS} seconds' AS is_old"
        " FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'"
    ).columns(column("is_old", Boolean))
)


@pytest.fixture
def settings(clean_postgres: str, tmp_path: Path) -> Settings:
    return make_settings(clean_postgres, tmp_path, database_pool=40)


@pytest.fixture
def pair() -> Iterator[Crowd]:
    made = Crowd(2)
    yield made
    made.close()


def test_many_simultaneous_uploads_of_one_file_leave_one(app: App, crowd: Crowd) -> None:
    for _ in range(3):
        me, body = Uploader(app), unique_pdf()
        ids = [me.sent(body) for _ in range(THREADS)]
        done = crowd.rush(lambda place, me=me, ids=ids: me.confirm(ids[place]))
        (winner,) = {answer.media_id for answer in done}
        assert winner in ids
        assert [answer.duplicate for answer in done].count(False) == 1
        assert [media_id for media_id in ids if row_of(app.sessions, media_id)] == [winner]
        assert len(everything_of(app.sessions, winner).files) == 1
        assert stored_paths(app) == [f"{run_prefix()}media/{winner}/original.pdf"]
        assert_media_replays(app, winner)
        me.delete(winner)


def test_a_file_uploaded_by_many_users_becomes_a_media_for_each(app: App, crowd: Crowd) -> None:
    body, people = unique_pdf(), [Uploader(app) for _ in range(THREADS)]
    done = crowd.rush(lambda place: people[place].upload(body))
    assert len(set(done)) == THREADS
    assert len(stored_paths(app)) == THREADS


def test_simultaneous_confirmations_of_an_upload_confirm_it_once(app: App, crowd: Crowd) -> None:
    for _ in range(ROUNDS):
        me = Uploader(app)
        media_id = me.sent(unique_pdf())
        done = crowd.rush(lambda _, me=me, media_id=media_id: me.confirm(media_id))
        assert {(answer.media_id, answer.duplicate) for answer in done} == {(media_id, False)}
        assert events_of(app.sessions, media_id) == ["create"]
        assert len(everything_of(app.sessions, media_id).files) == 1


def test_simultaneous_confirmations_of_a_duplicate_answer_with_the_first(app: App, crowd: Crowd) -> None:
    for _ in range(ROUNDS):
        me, body = Uploader(app), unique_pdf()
        first, second = me.upload(body), me.sent(body)
        done = crowd.rush(lambda _, me=me, second=second: me.confirm(second))
        assert {(answer.media_id, answer.duplicate) for answer in done} == {(first, True)}
        assert row_of(app.sessions, second) is None


def test_simultaneous_confirmations_of_a_bad_file_fail_it_once(app: App, crowd: Crowd) -> None:
    for _ in range(ROUNDS):
        me = Uploader(app)
        media_id = me.sent(b"no pdf")

        def confirm(_: int, me: Uploader = me, media_id: UUID = media_id) -> None:
            with suppress(InvalidFileType, InvalidState):
                me.confirm(media_id)

        crowd.rush(confirm)
        assert events_of(app.sessions, media_id) == ["create", "fail"]
    assert stored_paths(app) == []


def test_an_upload_deleted_while_it_is_confirmed_is_gone(app: App, pair: Crowd) -> None:
    for _ in range(4 * ROUNDS):
        me = Uploader(app)
        media_id = me.sent(unique_pdf())

        def either(place: int, me: Uploader = me, media_id: UUID = media_id) -> Confirmed | None:
            if place:
                me.delete(media_id)
                return None
            with suppress(NotFound):
                return me.confirm(media_id)
            return None

        pair.rush(either)
        assert (count_media(app), stored_paths(app)) == (0, [])


def test_a_file_deleted_while_its_duplicate_is_confirmed_leaves_one_media_or_none(
    app: App, pair: Crowd
) -> None:
    """Either the duplicate found it and went with it, or the duplicate stays, with its object."""
    for _ in range(4 * ROUNDS):
        me, body = Uploader(app), unique_pdf()
        first, second = me.upload(body), me.sent(body)

        def either(
            place: int, me: Uploader = me, first: UUID = first, second: UUID = second
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
        assert len(stored_paths(app)) == (kept is not None)
        if kept is not None:
            me.delete(second)


def test_an_upload_that_is_begun_again_stays_locked_however_slowly_its_old_bytes_go(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its lock, a frozen server would delete the file that came through another one meanwhile."""
    limit = f" -c idle_in_transaction_session_timeout={int(IDLE_SECONDS * 1000)}ms"
    monkeypatch.setitem(postgres.PATIENCE, "options", postgres.PATIENCE["options"] + limit)
    frozen = build(app.settings)
    me = Uploader(frozen)
    media_id = failed_upload(me)
    delete = LocalStorage.delete

    def is_over() -> bool:
        with app.sessions.read() as session:
            idle = session.all(_IDLE)
        return not idle or any(row.is_old for row in idle)

    def delete_late(store: LocalStorage, path: str) -> None:
        eventually(is_over, "PostgreSQL has ended the transaction, or lets it wait")
        delete(store, path)

    monkeypatch.setattr(LocalStorage, "delete", delete_late)
    assert me.begin_again(media_id).media_id == media_id
    frozen.close()
