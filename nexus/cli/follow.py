"""The items of one command, followed until their end, and what the command says of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import UUID

import typer

from nexus.app import App
from nexus.cli import say
from nexus.cli.context import again
from nexus.cli.outcome import Ended, Item, Progress, Result, progress
from nexus.cli.waiting import Wait, rests
from nexus.errors import JobTimeout, WorkError, public_code, tree
from nexus.media import queries
from nexus.media.queries import View
from nexus.states.media import Stage, Status

INTERRUPTED = 130
#: Failures that the same again may mend.
PASSING = {error.code for error in tree(WorkError) if error.transient} | {JobTimeout.code}


class Stopped(Exception):
    """The person stopped waiting."""

    def __init__(self, left: int) -> None:
        super().__init__()
        self.left = left


@dataclass
class Follow:
    """The items of one command, on their way to an end."""

    app: App
    viewer: UUID
    progress: Progress
    items: dict[UUID, list[Item]] = field(default_factory=lambda: defaultdict(list))
    ends: list[Ended] = field(default_factory=list)
    #: What was seen on its way, so that it was not there before.
    moved: set[UUID] = field(default_factory=set)

    def follow(self, item: Item, media_id: UUID) -> None:
        self.items[media_id].append(item)

    def end(self, ended: Ended) -> None:
        self.ends.append(ended)
        self.progress.ended(ended)

    def tell(self, media_id: UUID, view: View | None) -> None:
        for item in self.items[media_id]:
            if view is None:
                self.end(Ended(item, Result.GONE, "It was deleted meanwhile. Add it again if you want it."))
            elif rests(self.app, view):
                self.end(_ended(self.app, item, view, moved=item.due or media_id in self.moved))
            else:
                self.moved.add(media_id)
                self.progress.changed(item, view)

    def wait(self) -> None:
        """Until each has come to rest. Ctrl-C ends it earlier: what was begun is given back."""
        waiting = Wait(self.app, self.viewer, self.items, self.tell, self._silent)
        try:
            waiting.run()
        except KeyboardInterrupt as interrupt:
            waiting.give_back()
            for media_id in waiting.left:
                for item in self.items[media_id]:
                    self.end(Ended(item, Result.WAITING))
            raise Stopped(len(waiting.left)) from interrupt

    def _silent(self) -> None:
        start = again(self.app.settings, "worker")
        self.progress.note(f"No worker has taken it up yet. Is one running? Start one with: {start}")

    def leave(self) -> None:
        """Without waiting: each as it is now."""
        for media_id, items in self.items.items():
            with self.app.sessions.read() as session:
                view = queries.get(session, media_id, self.viewer)
            if rests(self.app, view):
                self.tell(media_id, view)
            else:
                for item in items:
                    self.end(Ended(item, Result.WAITING, "It is pending again.", view))

    def exit(self) -> None:
        """What is left and what went wrong go to standard error; what went wrong also into the exit code."""
        if any(ended.result is Result.WAITING for ended in self.ends):
            say.hint(f"A running Nexus takes up what is pending: {again(self.app.settings, 'serve')}")
        bad = [ended for ended in self.ends if ended.is_bad]
        for ended in bad:
            say.problem(f"{ended.item.label}: {ended.sentence}{_next_step(self.app, ended)}")
        if bad:
            raise typer.Exit(1)


@contextmanager
def following(app: App, viewer: UUID, total: int, *, as_json: bool) -> Iterator[Follow]:
    """Shows what happens while inside, then says what went wrong. Raises Exit where something did."""
    try:
        with progress(total, viewer, as_json=as_json) as shown:
            follow = Follow(app, viewer, shown)
            yield follow
    except Stopped as stopped:
        _tell_left(app, stopped.left)
        raise typer.Exit(INTERRUPTED) from stopped
    except KeyboardInterrupt as interrupt:
        say.hint(f"Stopped. What was taken in is kept; see: {again(app.settings, 'status')}")
        raise typer.Exit(INTERRUPTED) from interrupt
    follow.exit()


def _tell_left(app: App, left: int) -> None:
    waiting = f"Stopped waiting for {left}; nothing is lost."
    if app.queue.works_elsewhere:
        say.hint(f"{waiting} The workers go on; see: {again(app.settings, 'status')}")
    else:
        serve, same = again(app.settings, "serve"), "run the same command again"
        say.hint(f"{waiting} A running Nexus takes them up ({serve}), or {same}.")


def _ended(app: App, item: Item, view: View, *, moved: bool) -> Ended:
    row = view.row
    status = Status(row.processing_status)
    if status is Status.PENDING:
        return Ended(item, Result.QUEUED, _why_queued(app, row.kind), view)
    if status is Status.FAILED and row.failure_stage != Stage.EMBED.value:
        return Ended(item, Result.FAILED, row.last_error_message, view, public_code(row.last_error_code))
    return Ended(item, Result.READABLE if moved else Result.THERE, row.title or "", view)


def _why_queued(app: App, kind: str) -> str:
    if app.settings.extraction == "off":
        return "It is queued and stays pending: NEXUS_EXTRACTION is off."
    return f"It is queued. This command knows no processor for {kind}; a server or worker that has one takes it up."


def _next_step(app: App, ended: Ended) -> str:
    if ended.result is not Result.FAILED or ended.code not in PASSING:
        return ""
    return f" Next: {again(app.settings, f'retry {ended.item.media_id} --wait')}"
