"""Rounds and tables: figures are compared only with figures of the same round."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median

Rounds = dict[str, list[float]]


def interleaved(
    rounds: int, contestants: Mapping[str, Callable[[], float]], *, warm_up: bool = True
) -> Rounds:
    """Each contestant's figure of every round: A B, then B A, and so on, so that a drift affects all of them.

    A first call of each, which pays for imports, statements and caches, is thrown away unless each starts afresh.
    """
    if warm_up:
        for measure in contestants.values():
            measure()
    figures: Rounds = {name: [] for name in contestants}
    order = list(contestants)
    for _ in range(rounds):
        for name in order:
            figures[name].append(contestants[name]())
        order.reverse()
    return figures


def ratio(figures: Rounds, ours: str, theirs: str) -> float:
    """Return the median of the rounds' ratios: a noisy second spoils one round, not the answer."""
    return median(a / b for a, b in zip(figures[ours], figures[theirs], strict=True))


@dataclass(frozen=True)
class Line:
    """One answer. Without a limit it is for information only."""

    what: str
    ours: str
    theirs: str
    ratio: float
    at_least: float | None = None
    at_most: float | None = None

    @property
    def wanted(self) -> str:
        if self.at_least is not None:
            return f"≥ {self.at_least:g}"
        return "" if self.at_most is None else f"≤ {self.at_most:g}"

    @property
    def verdict(self) -> str:
        if not self.wanted:
            return ""
        enough = self.at_least is None or self.ratio >= self.at_least
        within = self.at_most is None or self.ratio <= self.at_most
        return "ok" if enough and within else "short"


HEADINGS = ("", "ours", "theirs", "ratio", "wanted", "")


def print_table(title: str, lines: list[Line]) -> None:
    rows = [
        HEADINGS,
        *(
            (line.what, line.ours, line.theirs, f"{line.ratio:.2f}", line.wanted, line.verdict)
            for line in lines
        ),
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    print(f"\n{title}")
    for row in rows:
        first, *others = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join([first, *others]).rstrip())
