"""What has happened to an item, as its page tells it."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from nexus.errors import public_code
from nexus.media.changes import Change
from nexus.media.history import KnownEvent
from nexus.states.media import MediaStatus
from nexus.web.api.schemas import actor_of
from nexus.web.views.items import TONES

EVENTS = {
    "create": "Added",
    "start": "Extraction started",
    "readable": "Text extracted",
    "embed": "Preparing for search",
    "embedded": "Prepared for search",
    "release": "Back in the queue",
    "release_embedding": "Back in the queue",
    "fail": "Failed",
    "retry": "Retried",
    "retry_embedding": "Retried",
    "refresh": "Refreshed: the text has changed",
    "enter_text": "Text entered by hand",
    "item_shared": "Added to",
    "item_removed": "Removed from",
}
ACTORS = {"you": "you", "worker": "Nexus", "sweep": "Nexus", "someone": "another reader"}


@dataclass(frozen=True)
class ShownEvent:
    """One entry of a history."""

    what: str
    who: str
    tone: str
    from_status: str | None
    to_status: str | None
    at: datetime
    #: Nothing to show if None or 0.
    attempt: int | None
    error_code: str | None


def show_event(known: KnownEvent, viewer: UUID) -> ShownEvent:
    row, actor = known.entry, actor_of(known.entry, viewer)
    return ShownEvent(
        EVENTS.get(row.event, row.event),
        _named(actor, known.actor_name),
        TONES[MediaStatus(row.to_status)],
        row.from_status,
        row.to_status,
        row.at,
        row.attempt,
        public_code(row.error_code),
    )


def show_history(rows: Sequence[KnownEvent], changes: Sequence[Change], viewer: UUID) -> list[ShownEvent]:
    """Put each change before the first transition that came later."""
    left, shown = deque(changes), list[ShownEvent]()
    for row in rows:
        while left and left[0].at < row.entry.at:
            shown.append(_show_change(left.popleft(), viewer))
        shown.append(show_event(row, viewer))
    return shown + [_show_change(change, viewer) for change in left]


def _show_change(change: Change, viewer: UUID) -> ShownEvent:
    who = _named("you" if change.user_id == viewer else "someone", change.name)
    what = " ".join(filter(None, (EVENTS[change.event], change.library)))
    return ShownEvent(what, who, "done", None, None, change.at, None, None)


def _named(actor: str, name: str | None) -> str:
    """Who did something: by name, if the viewer may know it."""
    if actor == "you" and name:
        return f"{name} (you)"
    return (actor == "someone" and name) or ACTORS[actor]
