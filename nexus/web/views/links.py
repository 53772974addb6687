"""Addresses of pages that other pages and the API lead to."""

from __future__ import annotations

from uuid import UUID

from nexus.media.excerpts import Excerpt


def passage_address(media_id: UUID, found: Excerpt) -> str:
    """Return the address that opens the reader at a passage, with the passage marked."""
    return f"/items/{media_id}?from={found.position}&mark={found.start}-{found.end}#mark"
