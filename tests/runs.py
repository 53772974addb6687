"""Where the objects of one test run stand in a store: a prefix of its own, removed at its end."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

_RUN = "NEXUS_TEST_RUN"


def run_prefix() -> str:
    """`test_runs/{run_id}/`: the one place where it is made. Every process of a run has the same."""
    run_id = os.environ.setdefault(_RUN, uuid.uuid4().hex)
    return f"test_runs/{run_id}/"


def stores(folder: Path) -> Iterator[Path]:
    """The root of every local store somewhere below a folder."""
    for place, folders, _ in os.walk(folder):
        if "storage" in folders:
            folders.remove("storage")
            yield Path(place) / "storage"


def is_run_scoped(store: Path) -> bool:
    """Whether nothing stands where an installation of Nexus would keep its files."""
    return not (store / "media").exists()
