"""While a slow store deletes an object, nobody waits for the database unless the object's path can be used again."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import cast
from uuid import uuid4

import pytest
from sqlalchemy import make_url

from nexus.app import App
from nexus.media.files import Files, discard_object
from nexus.states.media import MediaStatus
from nexus.storage import Storage
from nexus.storage.names import fetched_path, object_path
from nexus.upkeep import clean
from tests.kit.media import new_file, new_media, walk_media_to


class Watched:
    """A store that finds out at each deletion whether others can write to the database."""

    def __init__(self, database: str) -> None:
        self._path = Path(make_url(database).database or "")
        self.could_write: list[bool] = []

    def delete(self, path: str) -> None:
        other = sqlite3.connect(self._path, timeout=0, isolation_level=None)
        try:
            other.execute("BEGIN IMMEDIATE")
            other.execute("ROLLBACK")
        except sqlite3.OperationalError:
            self.could_write.append(False)
        else:
            self.could_write.append(True)
        finally:
            other.close()


@pytest.fixture
def database_url(sqlite_url: str) -> str:
    return sqlite_url


@pytest.fixture
def store(app: App) -> Watched:
    return Watched(app.settings.database)


@pytest.fixture
def files(app: App, store: Watched) -> Files:
    return replace(app.files, storage=cast(Storage, store))


def test_an_object_of_a_deleted_item_is_removed_without_a_lock(
    app: App, store: Watched, files: Files
) -> None:
    gone = uuid4()
    path = object_path(gone, "pdf", files.prefix)
    assert clean._remove_orphan(app.sessions, files, path)
    discard_object(app.sessions, files, gone, path)
    assert store.could_write == [True, True]


def test_a_fetched_file_that_no_row_names_is_removed_without_a_lock(
    app: App, store: Watched, files: Files
) -> None:
    media_id = new_media(app)
    walk_media_to(app, media_id, MediaStatus.FAILED)
    path = fetched_path(media_id, 7, "pdf", files.prefix)
    assert clean._remove_orphan(app.sessions, files, path)
    discard_object(app.sessions, files, media_id, path)
    assert store.could_write == [True, True]


def test_a_path_to_which_an_upload_can_come_again_stays_locked(
    app: App, store: Watched, files: Files
) -> None:
    media_id = new_file(app, uuid4(), "a" * 64)
    discard_object(app.sessions, files, media_id, object_path(media_id, "epub", files.prefix))
    assert store.could_write == [False]
