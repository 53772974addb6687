"""Shows work in progress in a terminal, live and in colour."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from nexus.cli import say
from nexus.cli.outcome import EndedItem, Item, Result, waiting_of
from nexus.media.queries import View
from nexus.states.media import STATE_WORDS, MediaStatus

MARKS = {
    Result.READABLE: ("✓ Ready", "green"),
    Result.THERE: ("✓ Already there", "green"),
    Result.QUEUED: ("… Queued", "yellow"),
    Result.WAITING: ("… In progress", "yellow"),
    Result.FAILED: ("✗ Failed", "red"),
    Result.REFUSED: ("✗ Refused", "red"),
    Result.GONE: ("✗ Removed", "red"),
}


class Screen:
    """For a terminal: a line for each item that has ended, and below them a spinner for each that has not."""

    #: More than this many are counted, not listed.
    SHOWN = 8
    tells_failures = False

    def __init__(self, total: int) -> None:
        self._console = say.out()
        self._live = Live(console=self._console, transient=True, refresh_per_second=8)
        self._under_way: dict[Item, Spinner] = {}
        self._total = total
        self._done = 0

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)

    def changed(self, item: Item, view: View, minute: str) -> None:
        status = MediaStatus(view.row.processing_status)
        label = Text.assemble(
            (f"{STATE_WORDS[status]:<11}", say.STYLES[status]),
            say.printable(item.label),
            (f"  {minute or waiting_of(view)}", "dim"),
            overflow="ellipsis",
        )
        spinner = self._under_way.setdefault(item, Spinner("dots"))
        spinner.update(text=label)
        self._live.update(self._picture())

    def ended(self, ended: EndedItem) -> None:
        self._under_way.pop(ended.item, None)
        self._done += 1
        mark, style = MARKS[ended.result]
        first = Text.assemble((f"{mark:<16}", style), say.printable(ended.item.label))
        self._console.print(first, soft_wrap=True)
        if ended.detail and not ended.is_bad:
            self._console.print(Text(f"  {say.printable(ended.detail)}", "dim"), soft_wrap=True)
        self._live.update(self._picture())

    def note(self, sentence: str) -> None:
        self._console.print(Text.assemble(("note: ", "bold yellow"), say.printable(sentence)), soft_wrap=True)

    def _picture(self) -> RenderableType:
        spinners = list(self._under_way.values())
        parts: list[RenderableType] = [*spinners[: self.SHOWN]]
        if self._total > 1 and spinners:
            parts.append(Text(f"{self._done} of {self._total}", "dim"))
        return Group(*parts)
