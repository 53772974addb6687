"""What crashes left behind long ago, for upkeep to remove: planted during a run, or left by the run and made old."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import httpx2

from chaos.invariants import objects
from chaos.invariants.database import Database
from chaos.stage import Stage
from tests.kit.run_storage import run_prefix

#: Older than anything that upkeep leaves alone.
TWO_DAYS = 2 * 24 * 3600


def begin_long_ago(stage: Stage, database: Database) -> None:
    """Let somebody have signed in long ago: upkeep keeps files that are older than the first user."""
    headers = stage.headers(uuid4())
    httpx2.get(f"{stage.urls[0]}/libraries", headers=headers, timeout=60).raise_for_status()
    database.put_back("users", "created_at")


def plant(store: Path) -> list[Path]:
    """Store an object that no item has and an upload that broke off, both old; return where they are."""
    orphan = store / run_prefix() / "media" / str(uuid4()) / "original.pdf"
    places = [orphan, store / ".drafts" / uuid4().hex]
    for place in places:
        # A file is complete and old before anybody can see it.
        made = store.with_name("planted") / place.name
        made.parent.mkdir(exist_ok=True)
        made.write_bytes(b"%PDF-1.7 left behind")
        _make_old(made)
        place.parent.mkdir(parents=True, exist_ok=True)
        made.rename(place)
    return places


def make_everything_old(stage: Stage, database: Database) -> None:
    """Make every stored file and every unconfirmed upload older than what upkeep leaves alone."""
    database.put_back("uploads", "begun_at")
    for path in objects.stored(stage.store):
        with suppress(FileNotFoundError):  # upkeep has removed it meanwhile
            _make_old(stage.store / path)


def _make_old(path: Path) -> None:
    then = time.time() - TWO_DAYS
    os.utime(path, (then, then))
