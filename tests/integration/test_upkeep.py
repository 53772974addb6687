"""Upkeep: workers remove old leftovers of crashes, and nothing that anybody needs."""

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
from nexus.storage.local import PARTS, LocalStorage
from nexus.upkeep import clean
from nexus.worker import threads
from nexus.worker.threads import Forgetting, Sweeper, Upkeep, VectorSets, rounds
from tests.kit import servers
from tests.kit.clock import SetClock
from tests.kit.databases import copied_postgres
from tests.kit.faults.broken_disks import stuck
from tests.kit.installation import Nexus, installed
from tests.kit.media import row_of
from tests.kit.settings import make_settings
from tests.kit.uploads import Uploader, count_media, stored_paths, unique_pdf
from tests.kit.waiting import eventually

pytestmark = pytest.mark.usefixtures("true_time")

HOUR, DAY = timedelta(hours=1), timedelta(days=1)

_FIRST_CAME = Statement(update(users).values(created_at=bindparam("then")))
_BEGAN = Statement(
    update(uploads).where(uploads.c.media_id == bindparam("row_id")).values(begun_at=bindparam("began"))
)


def local(app: App) -> LocalStorage:
    assert isinstance(app.files.storage, LocalStorage)
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
    return {*stored_paths(app), *(draft.path for draft in local(app).partial_files())}


def in_use_for_long(app: App) -> Uploader:
    """Somebody who has used this database for months."""
    me = Uploader(app)
    with app.sessions.begin() as session:
        access.ensure_user(session, me.id)
        session.run(_FIRST_CAME, then=session.now - 90 * DAY)
    return me


def crashed(app: App) -> tuple[UUID, set[str]]:
    """Leftovers of crashes that are old enough to go: an upload, and objects in the store."""
    begun = in_use_for_long(app).begin(unique_pdf())
    long_ago = app.sessions.clock() - app.files.upload_life - HOUR
    with app.sessions.begin() as session:
        session.run(_BEGAN, row_id=begun.media_id, began=long_ago)
    old = DAY + HOUR
    return begun.media_id, {
        aged(app, begun.storage_path, old),
        aged(app, f"{app.files.prefix}media/{uuid4()}/original.pdf", old),
        aged(app, f"{app.files.prefix}media/{uuid4()}/fetched-1.pdf", old),
        aged(app, f"test_runs/{uuid4().hex}/media/{uuid4()}/original.pdf", old),
        aged(app, f"{PARTS}/{uuid4().hex}", old),
    }


def needed(app: App) -> set[str]:
    """What must stay: needed however old, or too young."""
    me = Uploader(app)
    confirmed, sent = me.upload(unique_pdf()), me.sent(unique_pdf())
    kept = {app.files.path(media_id, Kind.PDF) for media_id in (confirmed, sent)}
    for path in kept:
        aged(app, path, 2 * DAY)
    return kept | {
        aged(app, f"{app.files.prefix}media/{uuid4()}/original.pdf", DAY / 2),
        aged(app, f"test_runs/{uuid4().hex}/media/{uuid4()}/original.pdf", DAY / 2),
        aged(app, f"{PARTS}/{uuid4().hex}", DAY / 2),
    }


@pytest.fixture(params=["serve", "worker", "celery"])
def nexus_and_command(
    request: pytest.FixtureRequest, postgres_template: str, redis_url: str, tmp_path: Path
) -> Iterator[tuple[Nexus, str]]:
    """An installation with upkeep almost at once, and the command that runs it."""
    command = "serve" if request.param == "serve" else "worker"
    more = {"queue": "celery", "redis_url": redis_url} if request.param == "celery" else {}
    with (
        copied_postgres(postgres_template) as url,
        installed(url, tmp_path, upkeep_hours=0.0001, port=servers.free_port(), **more) as made,
    ):
        yield made, command


def test_a_working_process_removes_leftovers_of_crashes_and_nothing_else(
    nexus_and_command: tuple[Nexus, str],
) -> None:
    made, command = nexus_and_command
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
    """Run upkeep in this process; calling the result waits for another round."""
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


def test_upkeep_follows_the_clock_of_the_app(
    app: App, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_use_for_long(app)
    orphan = aged(app, f"{app.files.prefix}media/{uuid4()}/original.pdf", timedelta(0))
    with keeping_up(app, monkeypatch) as rounds_over:
        clock.forward(hours=23, minutes=59)
        rounds_over()
        assert stored_paths(app) == [orphan]
        clock.forward(minutes=2)
        rounds_over()
        assert stored_paths(app) == []


def test_upkeep_goes_on_after_an_object_that_can_not_be_removed(
    app: App, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_use_for_long(app)
    stuck(local(app), f"{app.files.prefix}media/{UUID(int=0)}/original.pdf")
    aged(app, f"{app.files.prefix}media/{UUID(int=1)}/original.pdf", timedelta(0))
    clock.forward(hours=25)
    with keeping_up(app, monkeypatch) as rounds_over:
        rounds_over()
        assert [path for path in stored_paths(app) if "in the way" not in path] == []


def test_upkeep_keeps_files_of_another_database(app: App, clock: SetClock) -> None:
    """A new database on an old folder: by mistake, or until a copy of the old one is restored."""
    theirs = aged(app, f"{app.files.prefix}media/{uuid4()}/original.pdf", 3 * DAY)
    for first_user_came in (False, True):
        if first_user_came:
            Uploader(app).upload(unique_pdf())
        clock.forward(days=2)
        assert list(clean.remove_safe_leftovers(app.sessions, app.files, lambda: False)) == []
        assert theirs in stored_paths(app)


def test_upkeep_keeps_objects_whose_names_it_does_not_know(app: App, clock: SetClock) -> None:
    in_use_for_long(app)
    unknown = aged(app, f"{app.files.prefix}media/{uuid4()}/v2/original.pdf", timedelta(0))
    clock.forward(days=2)
    assert list(clean.remove_safe_leftovers(app.sessions, app.files, lambda: False)) == []
    assert stored_paths(app) == [unknown]


def test_a_stop_ends_upkeep_in_the_middle_of_a_healthy_store(app: App, clock: SetClock) -> None:
    in_use_for_long(app).upload(unique_pdf())
    clock.forward(days=2)
    looks = []

    def stopped() -> bool:
        looks.append(True)
        return True

    assert list(clean.remove_safe_leftovers(app.sessions, app.files, stopped)) == []
    assert len(looks) == 1


def test_several_simultaneous_upkeeps_do_no_harm(
    clean_postgres: str, tmp_path: Path, clock: SetClock
) -> None:
    """On PostgreSQL, only one of them lists the store at a time."""
    with ExitStack() as stack:
        apps = [build(make_settings(clean_postgres, tmp_path), clock) for _ in range(2)]
        for app in apps:
            stack.callback(app.close)
        with clean.only_cleaner(apps[0].sessions) as first, clean.only_cleaner(apps[1].sessions) as second:
            assert (first, second) == (True, False)
        with clean.only_cleaner(apps[1].sessions) as after:
            assert after


def test_upkeep_keeps_an_object_that_becomes_needed_after_it_was_listed(app: App, clock: SetClock) -> None:
    """A user retries a failed upload between the listing and the removal."""
    me = Uploader(app)
    media_id = me.sent(b"no pdf")
    with pytest.raises(InvalidFileType):
        me.confirm(media_id)
    path = aged(app, app.files.path(media_id, Kind.PDF), timedelta(0))
    clock.forward(hours=2)
    (orphan,) = clean.orphaned_objects(app.sessions, app.files)
    assert orphan.path == path
    me.send(me.begin_again(media_id), body := unique_pdf())
    assert not clean._remove_orphan(app.sessions, app.files, path)
    assert b"".join(app.files.storage.stream(path)) == body
    assert (me.confirm(media_id).media_id, count_media(app)) == (media_id, 1)


def test_upkeep_of_a_test_run_keeps_its_own_files(database_url: str, tmp_path: Path, clock: SetClock) -> None:
    app = build(make_settings(database_url, tmp_path, storage_prefix=f"test_runs/{uuid4().hex}/"), clock)
    media_id = Uploader(app).upload(unique_pdf())
    clock.forward(days=3)
    assert list(clean.find_leftovers(app.sessions, app.files, remove=True)) == []
    assert stored_paths(app) == [app.files.path(media_id, Kind.PDF)]
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
def test_upkeep_is_off_for_a_bucket_that_may_be_shared_unless_set(
    sqlite_url: str, tmp_path: Path, given: dict[str, str], wanted: bool
) -> None:
    app = build(make_settings(sqlite_url, tmp_path, **given))
    assert [type(each) for each in rounds(app)] == [
        Sweeper,
        Forgetting,
        VectorSets,
        *([Upkeep] if wanted else []),
    ]
    app.close()


def test_upkeep_does_not_run_at_the_start(sqlite_url: str, tmp_path: Path) -> None:
    app = build(make_settings(sqlite_url, tmp_path))
    assert Upkeep(app)._first_seconds == threads.FIRST_UPKEEP_SECONDS
    app.close()
