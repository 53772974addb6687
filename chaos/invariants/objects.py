"""Files in storage: those that rows name exist, and others are removed when they are old enough."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from chaos.invariants import Violation
from chaos.invariants.database import Database

_FILES = (
    "SELECT storage_path AS path FROM media_file"
    " UNION SELECT storage_path FROM pictures WHERE storage_path IS NOT NULL"
)
_EXPECTED = (
    "SELECT u.media_id FROM uploads u JOIN media m ON m.id = u.media_id WHERE m.processing_status = 'pending'"
)


def named(database: Database) -> set[str]:
    return {row["path"] for row in database.rows(_FILES)}


def missing(database: Database, found: set[str]) -> Iterator[Violation]:
    for path in sorted(named(database) - found):
        yield Violation("what was acknowledged is kept", f"the object {path} is gone")


def stored(folder: Path) -> set[str]:
    """Files of the local store, including those that are arriving. Folders may be removed meanwhile, and os.walk skips
    those."""
    found = (Path(place, name) for place, _, names in os.walk(folder) for name in names)
    return {path.relative_to(folder).as_posix() for path in found}


def left_behind(database: Database, found: set[str]) -> set[str]:
    """Files that no row names and no upload may still need."""
    waiting = {row["media_id"] for row in database.rows(_EXPECTED)}
    return {path for path in found - named(database) if waiting.isdisjoint(path.split("/"))}
