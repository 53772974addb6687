"""`clean` finds what crashes leave behind, removes it only when asked to, and never anything that is needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from uuid import uuid4

import pytest
from sqlalchemy import func, select

from nexus.app import App
from nexus.db.session import Statement
from nexus.db.tables import duplicates
from nexus.states.media import Status
from nexus.storage.local import Local
from nexus.upkeep.clean import clean, missing_objects, orphaned_objects
from tests.files import Person, count, pdf, stored
from tests.integration.test_upload_twins import failed
from tests.runs import run_prefix
from tests.support import SetClock, history_of, new_media
from tests.walks import put, whole

ORPHAN = "an object that no media has"
NEVER = "an upload that was never confirmed"
TEST_RUN = "a file of an old test run"
DRAFT = "an upload that broke off"

_DUPLICATES = Statement(select(func.count().label("many")).select_from(duplicates))


@pytest.fixture(autouse=True)
def now(clock: SetClock) -> None:
    """Objects have the time of the machine."""
    clock.time = datetime.now(UTC)


@pytest.fixture
def me(app: App) -> Person:
    return Person(app)


def found(app: App, *, remove: bool = False) -> list[tuple[str, str]]:
    return [(each.what, each.path) for each in clean(app.sessions, app.files, remove=remove)]


def removes(app: App, *wanted: tuple[str, str]) -> None:
    """Seen first, then removed, then not there any more."""
    assert found(app) == list(wanted)
    assert found(app) == list(wanted)
    assert found(app, remove=True) == list(wanted)
    assert found(app) == []


def store(app: App, path: str) -> str:
    app.files.storage.put(path, [b"left behind"], "application/pdf")
    return path


def test_an_empty_store_is_clean(app: App) -> None:
    removes(app)


def test_what_is_needed_stays(app: App, me: Person, clock: SetClock) -> None:
    kept = [me.upload(pdf()) for _ in range(3)]
    put(app, kept[0], Status.FAILED)
    put(app, kept[1], Status.READY)
    new_media(app, me.id)
    before, objects = [whole(app.sessions, each) for each in kept], stored(app)
    clock.forward(days=400)
    removes(app)
    assert [whole(app.sessions, each) for each in kept] == before
    assert stored(app) == objects


@pytest.mark.parametrize(
    "path",
    [
        lambda: f"{run_prefix()}media/{uuid4()}/original.pdf",
        lambda: f"{run_prefix()}media/rubbish/original.pdf",
        lambda: f"{run_prefix()}media/rubbish",
        lambda: f"{run_prefix()}media/{uuid4()}/a/b/c",
    ],
    ids=["no such media", "no id", "no folder", "too deep"],
)
def test_an_object_that_no_media_has_goes_after_an_hour(
    app: App, clock: SetClock, path: Callable[[], str]
) -> None:
    left = store(app, path())
    clock.forward(minutes=59)
    removes(app)
    clock.forward(minutes=2)
    removes(app, (ORPHAN, left))
    assert stored(app) == []


def test_what_a_failed_upload_left_goes(app: App, me: Person, clock: SetClock) -> None:
    media_id = failed(me)
    left = store(app, f"{run_prefix()}media/{media_id}/original.pdf")
    clock.forward(hours=2)
    removes(app, (ORPHAN, left))
    assert count(app) == 1


def test_an_upload_that_was_never_confirmed_goes_after_a_day(app: App, me: Person, clock: SetClock) -> None:
    empty, full = me.begin(pdf()), me.begin(pdf())
    me.send(full, pdf())
    clock.forward(hours=23)
    removes(app)
    clock.forward(hours=2)
    removes(app, *((NEVER, path) for path in sorted([empty.storage_path, full.storage_path])))
    assert (count(app), stored(app)) == (0, [])
    assert history_of(app.sessions, empty.media_id) == []


def test_an_upload_that_failed_stays_to_be_retried(app: App, me: Person, clock: SetClock) -> None:
    media_id = failed(me)
    clock.forward(days=30)
    removes(app)
    assert me.begin_again(media_id)
    removes(app)


def test_the_day_begins_anew_with_a_retry(app: App, me: Person, clock: SetClock) -> None:
    media_id = failed(me)
    clock.forward(days=2)
    begun = me.begin_again(media_id)
    clock.forward(hours=23)
    removes(app)
    clock.forward(hours=2)
    removes(app, (NEVER, begun.storage_path))


def test_old_test_runs_go_after_a_day(app: App, clock: SetClock) -> None:
    left = store(app, f"test_runs/{uuid4().hex}/media/{uuid4()}/original.pdf")
    clock.forward(hours=23)
    removes(app)
    clock.forward(hours=2)
    removes(app, (TEST_RUN, left))


def test_drafts_that_broke_off_go_after_a_day(app: App, clock: SetClock) -> None:
    storage = app.files.storage
    assert isinstance(storage, Local)
    place = storage.folder / ".drafts" / "0123"
    place.parent.mkdir(parents=True)
    place.write_bytes(b"half")
    clock.forward(hours=23)
    removes(app)
    clock.forward(hours=2)
    removes(app, (DRAFT, ".drafts/0123"))
    assert not place.exists()


def test_each_prefix_is_cleaned_by_its_own(app: App, clock: SetClock) -> None:
    """What stands before the paths of another installation in the same store is not ours to judge."""
    store(app, f"{run_prefix()}other/media/{uuid4()}/original.pdf")
    mine = store(app, f"{run_prefix()}mine/media/{uuid4()}/original.pdf")
    clock.forward(hours=2)
    prefixed = replace(app, files=replace(app.files, prefix=f"{run_prefix()}mine/"))
    assert found(prefixed) == [(ORPHAN, mine)]
    removes(app)


def test_duplicates_are_remembered_for_a_month(app: App, me: Person, clock: SetClock) -> None:
    body = pdf()
    first, second = me.upload(body), me.sent(body)
    me.confirm(second)
    clock.forward(days=29)
    found(app, remove=True)
    assert me.confirm(second).media_id == first
    clock.forward(days=2)
    found(app)
    assert remembered(app) == 1
    found(app, remove=True)
    assert remembered(app) == 0


def remembered(app: App) -> int:
    with app.sessions.read() as session:
        return int(session.first(_DUPLICATES).many)


def test_rows_without_objects_and_objects_without_rows(app: App, me: Person, clock: SetClock) -> None:
    missing = me.upload(pdf())
    app.files.storage.delete(f"{run_prefix()}media/{missing}/original.pdf")
    me.upload(pdf())
    left = store(app, f"{run_prefix()}media/{uuid4()}/original.pdf")
    clock.forward(hours=2)
    assert missing_objects(app.sessions, app.files) == [missing]
    assert [each.path for each in orphaned_objects(app.sessions, app.files)] == [left]
