"""Imports that can't be told to stop, though their process can be ended.

NEXUS_PLUGINS=tests.kit.plugins.unstoppable_imports
"""

from __future__ import annotations

from uuid import UUID

from nexus.imports.attempts import StopFlags


def raise_(_flags: StopFlags, _attempt_id: UUID) -> None:
    raise MemoryError


StopFlags.raise_ = raise_  # type: ignore[method-assign]
