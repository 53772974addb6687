"""Readers of imports that wait for a gate: NEXUS_PLUGINS=tests.kit.plugins.gated_imports.

    held NAME   is read once the test's folder has a file of that name, even if it is told to stop
    slow NAME   the same, but stops when it is told to

Every other file is read at once. Each reading is a line in the file `read` of that folder.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from nexus.extract import AVAILABLE_EXTRACTORS, Extraction, Hints
from nexus.extract.builtin import epub, pdf, text
from nexus.extract.sandbox import ReadCancelled, Sandbox, SandboxClosed
from nexus.states.media import Kind
from tests.kit.plugins.extract_by_url import FOLDER, GLANCE, _note

_read = Sandbox.read


def read(self: Sandbox, reader: str, data: Any, hints: Hints, **more: Any) -> Extraction:
    gates, name = Path(os.environ.get("NEXUS_TEST_GATES") or os.environ[FOLDER]), hints.filename or ""
    _note(gates / "read", f"{name}\n")
    while name.startswith(("held", "slow")) and not (gates / name).exists():
        if self._closed:
            raise SandboxClosed
        if name.startswith("slow") and more["cancel"].cancelled:
            raise ReadCancelled
        time.sleep(GLANCE)
    return _read(self, reader, data, hints, **more)


Sandbox.read = read  # type: ignore[assignment]
# extract_by_url leaves nothing registered but its own extractor.
AVAILABLE_EXTRACTORS.update({Kind.PDF: pdf, Kind.EPUB: epub, Kind.TEXT: text})
