"""Readers of imports that wait where a test wants it: NEXUS_PLUGINS=tests.held_imports.

    held NAME   is read as soon as there is a file of that name in the test's folder, whatever is asked of it
    slow NAME   the same, and ends as a reader does that is told to

Every other file is read at once. Each reading is a line in the file `read` of that folder.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from nexus.extract import Extraction, Hints
from nexus.extract.sandbox import ReadingEnded, Sandbox, SandboxClosed
from tests.plugins import FOLDER, GLANCE, _note

_read = Sandbox.read


def read(self: Sandbox, reader: str, data: Any, hints: Hints, **more: Any) -> Extraction:
    gates, name = Path(os.environ.get("NEXUS_TEST_GATES") or os.environ[FOLDER]), hints.filename or ""
    _note(gates / "read", f"{name}\n")
    while name.startswith(("held", "slow")) and not (gates / name).exists():
        if self._closed:
            raise SandboxClosed
        if name.startswith("slow") and more["reading"].ended:
            raise ReadingEnded
        time.sleep(GLANCE)
    return _read(self, reader, data, hints, **more)


Sandbox.read = read  # type: ignore[assignment]
