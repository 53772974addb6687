"""Addresses of pages that other pages and the API lead to."""

from __future__ import annotations

from uuid import UUID

from nexus.media.searching.excerpts import Excerpt


def passage_address(media_id: UUID, found: Excerpt) -> str:
    """Return the address that opens the reader at a passage, with the passage marked, and a player at its time."""
    at = "" if found.starts_ms is None else f"&at={seconds(found.starts_ms)}"
    return f"/items/{media_id}?from={found.position}&mark={found.start}-{found.end}{at}#mark"


def moment_address(media_id: UUID, starts_ms: int) -> str:
    """Return the address that opens a recording at a moment."""
    return f"/items/{media_id}?at={seconds(starts_ms)}"


def seconds(milliseconds: int) -> str:
    """Return them as an address writes them: `754.2`, `12`."""
    return f"{milliseconds / 1000:.3f}".rstrip("0").rstrip(".")
