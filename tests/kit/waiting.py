"""How tests wait for something to become true."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

#: How many seconds a test waits for anything. Generous: loaded CI machines are slow.
PATIENCE = 60.0
GLANCE = 0.02


def eventually(condition: Callable[[], Any], what: str, seconds: float = PATIENCE) -> Any:
    """Wait until the condition is true, and return its value; fails if that takes too long."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"it did not happen in {seconds} seconds: {what}"
        time.sleep(GLANCE)
    return found
