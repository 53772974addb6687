"""The versions of an item as pages show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from nexus.media.queries import View
from nexus.media.versions import Version
from nexus.states.media import Origin


@dataclass(frozen=True)
class ShownVersion:
    number: int
    title: str
    written_at: datetime
    words: int
    #: Where it comes from, in a few words.
    source: str
    is_read: bool
    is_newer: bool
    was_held: bool


@dataclass(frozen=True)
class Choice:
    """What a reader can choose from, besides the version that the page shows."""

    media_id: UUID
    versions: list[ShownVersion]
    #: The version that the viewer's libraries hold; 0 without a text.
    held: int
    #: The newest version, unless the viewer has or had it.
    newer: ShownVersion | None
    #: The version that the page shows instead of the one that the viewer holds.
    shown: ShownVersion | None
    #: Whether the viewer can choose.
    may_use: bool


def show_choice(held: View, versions: Sequence[Version], asked: int | None = None) -> Choice:
    """Show the versions of an item to a viewer who holds one of them and may have asked for another."""
    shown = [_show(one, held.row.revision) for one in versions]
    newer = next((one for one in shown if one.is_newer and not one.was_held), None)
    other = next((one for one in shown if one.number == asked and not one.is_read), None)
    return Choice(held.row.id, shown, held.row.revision, newer, other, held.row.administers)


def _show(one: Version, read: int) -> ShownVersion:
    entered = one.origin is Origin.ENTERED
    return ShownVersion(
        number=one.number,
        title=one.title or "Untitled",
        written_at=one.written_at,
        words=one.words,
        source="entered by you" if entered else f"extracted by {one.extractor}",
        is_read=one.number == read,
        is_newer=not entered and one.number > read,
        was_held=one.was_held or one.is_held,
    )
