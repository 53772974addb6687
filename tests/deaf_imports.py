"""Imports that can't be told to stop: NEXUS_PLUGINS=tests.deaf_imports. The process of one can still be ended."""

from __future__ import annotations

from uuid import UUID

from nexus.imports.flags import Flags


def raise_(_flags: Flags, _attempt_id: UUID) -> None:
    raise MemoryError


Flags.raise_ = raise_  # type: ignore[method-assign]
