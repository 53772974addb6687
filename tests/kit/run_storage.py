"""Where one test run stores its objects: below a prefix of its own, removed at its end."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

_RUN = "NEXUS_TEST_RUN"


def run_prefix() -> str:
    """`test_runs/{run_id}/`, the same in every process of a run. The only place that makes it."""
    run_id = os.environ.setdefault(_RUN, uuid.uuid4().hex)
    return f"test_runs/{run_id}/"


def stores(folder: Path) -> Iterator[Path]:
    """The root of every local store somewhere below a folder."""
    for place, folders, _ in os.walk(folder):
        if "storage" in folders:
            folders.remove("storage")
            yield Path(place) / "storage"


def is_run_scoped(store: Path) -> bool:
    """Whether nothing is stored outside of test_runs/, as an installation would."""
    return not (store / "media").exists()
