"""How an item can be found, in a sentence for its page."""

from __future__ import annotations

from nexus.embed import MissingModel
from nexus.media.queries import View
from nexus.media.searching.vectors import EmbeddingProgress
from nexus.states.media import MediaStatus

WORDS = "Found by its words"


def show_searchable(
    found: View, progress: EmbeddingProgress | None, missing: MissingModel | None
) -> str | None:
    """Say how an item with a text can be found, and what search by meaning waits for; None without a text."""
    if not found.capabilities.can_search:
        return None
    status = found.row.processing_status
    if status is MediaStatus.READY:
        return f"{WORDS} and by what it means"
    if status is MediaStatus.FAILED:
        return f"{WORDS}; it could not be prepared for search by meaning"
    if missing is not None:
        what = f" Run {missing.command}" if missing.command else ""
        return f"{WORDS}. {missing.why}{what}"
    if progress is not None:
        return f"{WORDS}; {progress.done:,} of {progress.total:,} parts are prepared for search by meaning"
    return f"{WORDS}; search by meaning comes as soon as it is prepared"
