"""Objects: what a row names is in the store, and what no row names goes when it is old enough."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from chaos.invariants import Violation
from chaos.invariants.database import Database

#: Older than any grace.
TWO_DAYS = 2 * 24 * 3600
_FILES = "SELECT storage_path AS path FROM media_file"
_EXPECTED = (
    "SELECT u.media_id FROM uploads u JOIN media m ON m.id = u.media_id WHERE m.processing_status = 'pending'"
)


def named(database: Database) -> set[str]:
    return {row["path"] for row in database.rows(_FILES)}


def missing(database: Database, found: set[str]) -> Iterator[Violation]:
    for path in sorted(named(database) - found):
        yield Violation("what was acknowledged is kept", f"the object {path} is gone")


def stored(folder: Path) -> set[str]:
    """In the local store, with what is on its way in."""
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def left_behind(database: Database, found: set[str]) -> set[str]:
    """What no row names, and no upload that still may come."""
    waiting = tuple(f"media/{row['media_id']}/" for row in database.rows(_EXPECTED))
    return {path for path in found - named(database) if not path.startswith(waiting)}


def age(folder: Path) -> None:
    """As if everything had been there for two days."""
    then = time.time() - TWO_DAYS
    for path in folder.rglob("*"):
        if path.is_file():
            os.utime(path, (then, then))
