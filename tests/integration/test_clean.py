"""`clean` finds what crashes leave behind, removes it only when asked to, and never anything that is needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from uuid import uuid4

import pytest
from sqlalchemy import func, select

from nexus.app import App
from nexus.db.session import Statement
from nexus.db.tables import duplicates
from nexus.states.media import MediaStatus
from nexus.storage.local import LocalStorage
from nexus.upkeep.clean import find_leftovers, missing_objects, orphaned_objects
from tests.kit.clock import SetClock
from tests.kit.media import everything_of, history_of, new_media, walk_media_to
from tests.kit.run_storage import run_prefix
from tests.kit.uploads import Uploader, count_media, failed_upload, stored_paths, unique_pdf

pytestmark = pytest.mark.usefixtures("true_time")

ORPHAN = "a file that belongs to no item"
NEVER = "an upload that was never confirmed"
TEST_RUN = "a file of an old test run"
DRAFT = "an upload that broke off"

_DUPLICATES = Statement(select(func.count().label("many")).select_from(duplicates))


def found(app: App, *, remove: bool = False) -> list[tuple[str, str]]:
    return [(each.what, each.path) for each in find_leftovers(app.sessions, app.files, remove=remove)]


def removes(app: App, *wanted: tuple[str, str]) -> None:
    """Found first, then removed, then gone."""
    assert found(app) == list(wanted)
    assert found(app) == list(wanted)
    assert found(app, remove=True) == list(wanted)
    assert found(app) == []


def store(app: App, path: str) -> str:
    app.files.storage.put(path, [b"left behind"], "application/pdf")
    return path


def test_an_empty_store_is_clean(app: App) -> None:
    removes(app)


def test_clean_keeps_everything_that_is_needed(app: App, uploader: Uploader, clock: SetClock) -> None:
    kept = [uploader.upload(unique_pdf()) for _ in range(3)]
    walk_media_to(app, kept[0], MediaStatus.FAILED)
    walk_media_to(app, kept[1], MediaStatus.READY)
    new_media(app, uploader.id)
    before, objects = [everything_of(app.sessions, each) for each in kept], stored_paths(app)
    clock.forward(days=400)
    removes(app)
    assert [everything_of(app.sessions, each) for each in kept] == before
    assert stored_paths(app) == objects


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
def test_clean_removes_an_orphaned_object_after_an_hour(
    app: App, clock: SetClock, path: Callable[[], str]
) -> None:
    left = store(app, path())
    clock.forward(minutes=59)
    removes(app)
    clock.forward(minutes=2)
    removes(app, (ORPHAN, left))
    assert stored_paths(app) == []


def test_clean_removes_the_bytes_of_a_failed_upload(app: App, uploader: Uploader, clock: SetClock) -> None:
    media_id = failed_upload(uploader)
    left = store(app, f"{run_prefix()}media/{media_id}/original.pdf")
    clock.forward(hours=2)
    removes(app, (ORPHAN, left))
    assert count_media(app) == 1


def test_clean_removes_an_unconfirmed_upload_after_a_day(
    app: App, uploader: Uploader, clock: SetClock
) -> None:
    empty, full = uploader.begin(unique_pdf()), uploader.begin(unique_pdf())
    uploader.send(full, unique_pdf())
    clock.forward(hours=23)
    removes(app)
    clock.forward(hours=2)
    removes(app, *((NEVER, path) for path in sorted([empty.storage_path, full.storage_path])))
    assert (count_media(app), stored_paths(app)) == (0, [])
    assert history_of(app.sessions, empty.media_id) == []


def test_clean_keeps_a_failed_upload_for_a_retry(app: App, uploader: Uploader, clock: SetClock) -> None:
    media_id = failed_upload(uploader)
    clock.forward(days=30)
    removes(app)
    assert uploader.begin_again(media_id)
    removes(app)


def test_a_retried_upload_has_another_day_before_it_is_cleaned(
    app: App, uploader: Uploader, clock: SetClock
) -> None:
    media_id = failed_upload(uploader)
    clock.forward(days=2)
    begun = uploader.begin_again(media_id)
    clock.forward(hours=23)
    removes(app)
    clock.forward(hours=2)
    removes(app, (NEVER, begun.storage_path))


def test_clean_removes_old_test_runs_after_a_day(app: App, clock: SetClock) -> None:
    left = store(app, f"test_runs/{uuid4().hex}/media/{uuid4()}/original.pdf")
    clock.forward(hours=23)
    removes(app)
    clock.forward(hours=2)
    removes(app, (TEST_RUN, left))


def test_clean_removes_unfinished_drafts_of_objects_after_a_day(app: App, clock: SetClock) -> None:
    storage = app.files.storage
    assert isinstance(storage, LocalStorage)
    place = storage.folder / ".drafts" / "0123"
    place.parent.mkdir(parents=True)
    place.write_bytes(b"half")
    clock.forward(hours=23)
    removes(app)
    clock.forward(hours=2)
    removes(app, (DRAFT, ".drafts/0123"))
    assert not place.exists()


def test_clean_removes_only_objects_below_its_own_prefix(app: App, clock: SetClock) -> None:
    """Objects of another installation in the same store are left alone."""
    store(app, f"{run_prefix()}other/media/{uuid4()}/original.pdf")
    mine = store(app, f"{run_prefix()}mine/media/{uuid4()}/original.pdf")
    clock.forward(hours=2)
    prefixed = replace(app, files=replace(app.files, prefix=f"{run_prefix()}mine/"))
    assert found(prefixed) == [(ORPHAN, mine)]
    removes(app)


def test_duplicates_are_remembered_for_a_month(app: App, uploader: Uploader, clock: SetClock) -> None:
    body = unique_pdf()
    first, second = uploader.upload(body), uploader.sent(body)
    uploader.confirm(second)
    clock.forward(days=29)
    found(app, remove=True)
    assert uploader.confirm(second).media_id == first
    clock.forward(days=2)
    found(app)
    assert remembered(app) == 1
    found(app, remove=True)
    assert remembered(app) == 0


def remembered(app: App) -> int:
    with app.sessions.read() as session:
        return int(session.first(_DUPLICATES).many)


def test_clean_reports_rows_without_objects_and_objects_without_rows(
    app: App, uploader: Uploader, clock: SetClock
) -> None:
    missing = uploader.upload(unique_pdf())
    app.files.storage.delete(f"{run_prefix()}media/{missing}/original.pdf")
    uploader.upload(unique_pdf())
    left = store(app, f"{run_prefix()}media/{uuid4()}/original.pdf")
    clock.forward(hours=2)
    assert missing_objects(app.sessions, app.files) == [missing]
    assert [each.path for each in orphaned_objects(app.sessions, app.files)] == [left]
