"""Follows the items of one command to their end, and reports them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

import typer

from nexus.app import App, Front
from nexus.cli import say
from nexus.cli.outcome import EndedItem, Item, Progress, Result, blocked_of, progress, waiting_of
from nexus.command_line import again
from nexus.errors import JobTimeout, WorkError, public_code, tree
from nexus.media import queries
from nexus.media.queries import View
from nexus.states.media import PUBLISHED, Kind, MediaStatus, Stage

INTERRUPTED = 130
#: Nobody sits in front of a command for longer.
LONG_WAIT = timedelta(minutes=5)
#: Failures that may not happen again.
PASSING = {error.code for error in tree(WorkError) if error.transient} | {JobTimeout.code}


class Stopped(Exception):
    """The user stopped waiting."""

    def __init__(self, left: int) -> None:
        super().__init__()
        self.left = left


@dataclass
class Follow:
    """The items of one command, on their way to an end."""

    front: Front
    viewer: UUID
    progress: Progress
    items: dict[UUID, list[Item]] = field(default_factory=lambda: defaultdict(list))
    ends: list[EndedItem] = field(default_factory=list)
    #: Items that were seen in progress, so they were not readable before.
    moved: set[UUID] = field(default_factory=set)

    def follow(self, item: Item, media_id: UUID) -> None:
        self.items[media_id].append(item)

    def end(self, ended: EndedItem) -> None:
        self.ends.append(ended)
        self.progress.ended(ended)

    def tell(self, media_id: UUID, view: View | None, minute: str = "") -> None:
        for item in self.items[media_id]:
            if view is None:
                self.end(
                    EndedItem(
                        item, Result.GONE, "It was removed in the meantime. Add it again if you want it."
                    )
                )
            elif rests(self.front, view):
                self.end(
                    _ended(self.front, item, view, moved=item.created or item.due or media_id in self.moved)
                )
            else:
                self.moved.add(media_id)
                self.progress.changed(item, view, minute)

    def wait(self, app: App) -> None:
        """Wait until all items are at rest. Ctrl-C ends it earlier, and unfinished work is given back."""
        from nexus.cli.waiting_for_items import WaitForItems  # noqa: PLC0415 only those who wait need what does the work

        waiting = WaitForItems(app, self.viewer, self.items, self.tell, self._silent)
        try:
            waiting.run()
        except KeyboardInterrupt as interrupt:
            waiting.give_back()
            for media_id in waiting.left:
                for item in self.items[media_id]:
                    self.end(EndedItem(item, Result.WAITING))
            raise Stopped(len(waiting.left)) from interrupt

    def _silent(self) -> None:
        start = again(self.front.settings, "worker")
        self.progress.note(f"No worker has started it yet. Is one running? Start one with: {start}")

    def leave(self) -> None:
        """Report each item as it is now, without waiting."""
        for media_id, items in self.items.items():
            with self.front.sessions.read() as session:
                view = queries.get_media(session, media_id, self.viewer)
            if rests(self.front, view):
                self.tell(media_id, view)
            else:
                for item in items:
                    self.end(EndedItem(item, Result.WAITING, "It is queued again.", view))

    def exit(self) -> None:
        """Say on standard error what is left, and what went wrong if nobody was told. Raises Exit if anything did."""
        if any(ended.result is Result.WAITING for ended in self.ends):
            say.hint(f"Queued items need a running Nexus: {again(self.front.settings, 'serve')}")
        bad = [ended for ended in self.ends if ended.is_bad]
        if not self.progress.tells_failures:
            for ended in bad:
                say.problem(f"{ended.item.label}: {ended.sentence}")
        if bad:
            raise typer.Exit(1)


def rests(front: Front, view: View) -> bool:
    """Whether it stays as it is until somebody does something, or for longer than anybody looks on."""
    status = MediaStatus(view.row.processing_status)
    if status is MediaStatus.PENDING:
        return Kind(view.row.kind) not in front.extractors or _waits_long(front, view)
    return status is MediaStatus.FAILED or status in PUBLISHED


def _waits_long(front: Front, view: View) -> bool:
    until = view.waiting_until
    return until is not None and until - front.sessions.clock() > LONG_WAIT


@contextmanager
def following(front: Front, viewer: UUID, total: int, *, as_json: bool) -> Iterator[Follow]:
    """Show what happens inside the block, then say what went wrong. Raises Exit if anything did."""
    try:
        with progress(total, viewer, as_json=as_json) as shown:
            follow = Follow(front, viewer, shown)
            yield follow
    except Stopped as stopped:
        _tell_left(front, stopped.left)
        raise typer.Exit(INTERRUPTED) from stopped
    except KeyboardInterrupt as interrupt:
        say.hint(f"Stopped. What was added is kept; see: {again(front.settings, 'status')}")
        raise typer.Exit(INTERRUPTED) from interrupt
    follow.exit()


def _tell_left(front: Front, left: int) -> None:
    waiting = f"Stopped waiting for {left}; nothing is lost."
    if front.queue.works_elsewhere:
        say.hint(f"{waiting} The workers continue; see: {again(front.settings, 'status')}")
    else:
        serve, same = again(front.settings, "serve"), "run the same command again"
        say.hint(f"{waiting} To continue, start Nexus ({serve}) or {same}.")


def _ended(front: Front, item: Item, view: View, *, moved: bool) -> EndedItem:
    row = view.row
    status = MediaStatus(row.processing_status)
    if status is MediaStatus.PENDING and _waits_long(front, view):
        return EndedItem(item, Result.WAITING, _why_waiting(front, view), view)
    if status is MediaStatus.PENDING:
        return EndedItem(item, Result.QUEUED, _why_queued(front, row.kind), view)
    if status is MediaStatus.FAILED and row.failure_stage != Stage.EMBED.value:
        code = public_code(row.last_error_code)
        next_step = again(front.settings, f"retry {row.id} --wait") if code in PASSING else ""
        return EndedItem(item, Result.FAILED, row.last_error_message or "", view, code, next_step)
    return EndedItem(item, Result.READABLE if moved else Result.THERE, row.title or "", view)


def _why_waiting(front: Front, view: View) -> str:
    with front.sessions.read() as session:
        return blocked_of(session, view) or f"It is {waiting_of(view)}."


def _why_queued(front: Front, kind: str) -> str:
    if front.settings.extraction == "off":
        return "It stays queued: NEXUS_EXTRACTION is off."
    return f"It is queued. No processor for {kind} is installed here; a server or worker that has one will process it."
