"""Upkeep: workers remove what crashes left behind by themselves, by its age, and nothing that anybody needs."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from sqlalchemy import bindparam, update

from nexus.app import App, build
from nexus.db.session import Statement
from nexus.db.tables import uploads, users
from nexus.errors import InvalidFileType
from nexus.libraries import access
from nexus.settings import Settings
from nexus.states.media import Kind
from nexus.storage.local import DRAFTS, Local
from nexus.upkeep import clean
from nexus.worker import threads
from nexus.worker.threads import Sweeper, Upkeep, rounds
from tests import servers
from tests.disks import stuck
from tests.files import Person, count, pdf, stored
from tests.processes import Nexus, eventually, fresh_postgres, installed
from tests.support import SetClock, make_settings, row_of

HOUR, DAY = timedelta(hours=1), timedelta(days=1)

_FIRST_CAME = Statement(update(users).values(created_at=bindparam("then")))
_BEGAN = Statement(
    update(uploads).where(uploads.c.media_id == bindparam("row_id")).values(begun_at=bindparam("began"))
)


@pytest.fixture(autouse=True)
def now(clock: SetClock) -> None:
    """Objects have the time of the machine."""
    clock.time = datetime.now(UTC)


def local(app: App) -> Local:
    assert isinstance(app.files.storage, Local)
    return app.files.storage


def aged(app: App, path: str, age: timedelta) -> str:
    """Something in the store that was last written so long ago."""
    place = local(app).folder / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(b"left behind")
    then = (datetime.now(UTC) - age).timestamp()
    os.utime(place, (then, then))
    return path


def there(app: App) -> set[str]:
    """Objects and drafts."""
    return {*stored(app), *(draft.path for draft in local(app).drafts())}


def in_use_for_long(app: App) -> Person:
    """Somebody who has used this database for months."""
    me = Person(app)
    with app.sessions.begin() as session:
        access.ensure_user(session, me.id)
        session.run(_FIRST_CAME, then=session.now - 90 * DAY)
    return me


def crashed(app: App) -> tuple[UUID, set[str]]:
    """What crashes have left that is old enough to go: an upload, and what else is in the store."""
    begun = in_use_for_long(app).begin(pdf())
    long_ago = app.sessions.clock() - app.files.upload_life - HOUR
    with app.sessions.begin() as session:
        session.run(_BEGAN, row_id=begun.media_id, began=long_ago)
    old = DAY + HOUR
    return begun.media_id, {
        aged(app, begun.storage_path, old),
        aged(app, f"{app.files.prefix}media/{uuid4()}/original.pdf", old),
        aged(app, f"{app.files.prefix}media/{uuid4()}/fetched-1.pdf", old),
        aged(app, f"test_runs/{uuid4().hex}/media/{uuid4()}/original.pdf", old),
        aged(app, f"{DRAFTS}/{uuid4().hex}", old),
    }


def needed(app: App) -> set[str]:
    """What stays, however old its bytes are, or because it is young."""
    me = Person(app)
    confirmed, sent = me.upload(pdf()), me.sent(pdf())
    kept = {app.files.path(media_id, Kind.PDF) for media_id in (confirmed, sent)}
    for path in kept:
        aged(app, path, 2 * DAY)
    return kept | {
        aged(app, f"{app.files.prefix}media/{uuid4()}/original.pdf", DAY / 2),
        aged(app, f"test_runs/{uuid4().hex}/media/{uuid4()}/original.pdf", DAY / 2),
        aged(app, f"{DRAFTS}/{uuid4().hex}", DAY / 2),
    }


@pytest.fixture(params=["serve", "worker", "celery"])
def nexus(
    request: pytest.FixtureRequest, postgres_server_url: str, redis_url: str, tmp_path: Path
) -> Iterator[tuple[Nexus, str]]:
    """An installation whose upkeep comes after a moment, and the command that works in it."""
    command = "serve" if request.param == "serve" else "worker"
    more = {"queue": "celery", "redis_url": redis_url} if request.param == "celery" else {}
    with (
        fresh_postgres(postgres_server_url) as url,
        installed(url, tmp_path, upkeep_hours=0.0001, port=servers.free_port(), **more) as made,
    ):
        yield made, command


def test_a_process_that_works_removes_what_crashes_left_and_nothing_that_is_needed(
    nexus: tuple[Nexus, str],
) -> None:
    made, command = nexus
    upload, left = crashed(made.app)
    kept = needed(made.app)
    process = made.start(command)
    eventually(lambda: not left & there(made.app), "what crashes left is gone")
    eventually(lambda: row_of(made.app.sessions, upload) is None, "so is the upload that never came")
    assert there(made.app) == kept
    assert process.stop() == 0
    assert process.events("upkeep_stumbled") == []
    assert sum(event.get("drafts", 0) for event in process.events("upkeep_removed")) == 1


@contextmanager
def keeping_up(app: App, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Upkeep in this process; what is given waits until another round is over."""
    over = threading.Semaphore(0)
    real = Upkeep._keep_up

    def round_and_tell(upkeep: Upkeep) -> None:
        try:
            real(upkeep)
        finally:
            over.release()

    def wait() -> None:
        for _ in range(2):  # the one under way may have begun before
            assert over.acquire(timeout=60)

    monkeypatch.setattr(Upkeep, "_keep_up", round_and_tell)
    upkeep = Upkeep(app)
    upkeep.start()
    try:
        yield wait
    finally:
        upkeep.stop()


@pytest.fixture
def settings(database_url: str, tmp_path: Path) -> Settings:
    return make_settings(database_url, tmp_path, upkeep_hours=0.00001)


def test_it_goes_by_the_clock_of_the_app(app: App, clock: SetClock, monkeypatch: pytest.MonkeyPatch) -> None:
    in_use_for_long(app)
    orphan = aged(app, f"{app.files.prefix}media/{uuid4()}/original.pdf", timedelta(0))
    with keeping_up(app, monkeypatch) as rounds_over:
        clock.forward(hours=23, minutes=59)
        rounds_over()
        assert stored(app) == [orphan]
        clock.forward(minutes=2)
        rounds_over()
        assert stored(app) == []


def test_one_object_that_can_not_be_removed_does_not_keep_the_others(
    app: App, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_use_for_long(app)
    stuck(local(app), f"{app.files.prefix}media/{UUID(int=0)}/original.pdf")
    aged(app, f"{app.files.prefix}media/{UUID(int=1)}/original.pdf", timedelta(0))
    clock.forward(hours=25)
    with keeping_up(app, monkeypatch) as rounds_over:
        rounds_over()
        assert [path for path in stored(app) if "in the way" not in path] == []


def test_files_of_another_database_stay(app: App, clock: SetClock) -> None:
    """A new database on an old folder: by mistake, or until a copy of the old one is restored."""
    theirs = aged(app, f"{app.files.prefix}media/{uuid4()}/original.pdf", 3 * DAY)
    for first_user_came in (False, True):
        if first_user_came:
            Person(app).upload(pdf())
        clock.forward(days=2)
        assert list(clean.clean_safely(app.sessions, app.files, lambda: False)) == []
        assert theirs in stored(app)


def test_names_that_this_version_does_not_give_stay(app: App, clock: SetClock) -> None:
    in_use_for_long(app)
    unknown = aged(app, f"{app.files.prefix}media/{uuid4()}/r2/original.pdf", timedelta(0))
    clock.forward(days=2)
    assert list(clean.clean_safely(app.sessions, app.files, lambda: False)) == []
    assert stored(app) == [unknown]


def test_a_stop_ends_the_look_through_a_store_in_which_all_is_well(app: App, clock: SetClock) -> None:
    in_use_for_long(app).upload(pdf())
    clock.forward(days=2)
    looks = []

    def stopped() -> bool:
        looks.append(True)
        return True

    assert list(clean.clean_safely(app.sessions, app.files, stopped)) == []
    assert len(looks) == 1


def test_several_at_once_are_harmless(clean_postgres: str, tmp_path: Path, clock: SetClock) -> None:
    """And on PostgreSQL one at a time lists the store."""
    with ExitStack() as stack:
        apps = [build(make_settings(clean_postgres, tmp_path), clock) for _ in range(2)]
        for app in apps:
            stack.callback(app.close)
        with clean.alone(apps[0].sessions) as first, clean.alone(apps[1].sessions) as second:
            assert (first, second) == (True, False)
        with clean.alone(apps[1].sessions) as after:
            assert after


def test_what_is_begun_to_be_needed_after_it_was_listed_stays(app: App, clock: SetClock) -> None:
    """A user tries an upload again that had failed, between the look and the removal."""
    me = Person(app)
    media_id = me.sent(b"no pdf")
    with pytest.raises(InvalidFileType):
        me.confirm(media_id)
    path = aged(app, app.files.path(media_id, Kind.PDF), timedelta(0))
    clock.forward(hours=2)
    (orphan,) = clean.orphaned_objects(app.sessions, app.files)
    assert orphan.path == path
    me.send(me.begin_again(media_id), body := pdf())
    assert not clean._remove_orphan(app.sessions, app.files, path)
    assert b"".join(app.files.storage.stream(path)) == body
    assert (me.confirm(media_id).media_id, count(app)) == (media_id, 1)


def test_an_installation_in_a_test_run_keeps_its_own_files(
    database_url: str, tmp_path: Path, clock: SetClock
) -> None:
    app = build(make_settings(database_url, tmp_path, storage_prefix=f"test_runs/{uuid4().hex}/"), clock)
    media_id = Person(app).upload(pdf())
    clock.forward(days=3)
    assert list(clean.clean(app.sessions, app.files, remove=True)) == []
    assert stored(app) == [app.files.path(media_id, Kind.PDF)]
    app.close()


S3 = {"storage": "s3", "s3_bucket": "shared"}
SUPABASE = {
    "storage": "supabase",
    "supabase_url": "http://x",
    "supabase_service_key": "k",
    "supabase_bucket": "b",
}


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({}, True),
        ({"upkeep": "off"}, False),
        (S3, False),
        (SUPABASE, False),
        ({**S3, "upkeep": "on"}, True),
        ({**SUPABASE, "upkeep": "on"}, True),
    ],
    ids=str,
)
def test_it_is_off_for_a_bucket_that_may_be_shared_unless_set(
    sqlite_url: str, tmp_path: Path, given: dict[str, str], wanted: bool
) -> None:
    app = build(make_settings(sqlite_url, tmp_path, **given))
    assert [type(each) for each in rounds(app)] == ([Sweeper, Upkeep] if wanted else [Sweeper])
    app.close()


def test_a_start_has_more_urgent_things_to_do(sqlite_url: str, tmp_path: Path) -> None:
    app = build(make_settings(sqlite_url, tmp_path))
    assert Upkeep(app)._first_seconds == threads.FIRST_UPKEEP_SECONDS
    app.close()
