"""The kernel: an edge answers APPLY, SKIP or REFUSE; a machine is a checked table of edges.

It neither raises at run time nor logs: whoever asks decides what a miss costs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

S = TypeVar("S", bound=Enum)


class Verdict(Enum):
    """What an edge answers to a state."""

    APPLY = "apply"  #: the state is a source: the move may happen
    SKIP = "skip"  #: the work is already done or under way: nothing to do
    REFUSE = "refuse"  #: the move makes no sense from here


@dataclass(frozen=True)
class Edge(Generic[S]):
    """One verb: where it starts, where it ends, and where asking again is harmless.

    `where` is a fact (column, value) that must hold besides; the database's triggers ask for it too.
    """

    verb: str
    sources: frozenset[S]
    target: S
    skips: frozenset[S]
    where: tuple[str, str] | None

    def __init__(
        self,
        verb: str,
        sources: Iterable[S],
        target: S,
        skips: Iterable[S] = (),
        where: tuple[str, str] | None = None,
    ) -> None:
        object.__setattr__(self, "verb", verb)
        object.__setattr__(self, "sources", frozenset(sources))
        object.__setattr__(self, "target", target)
        object.__setattr__(self, "skips", frozenset(skips))
        object.__setattr__(self, "where", where)

    def decide(self, state: S) -> Verdict:
        if state in self.sources:
            return Verdict.APPLY
        return Verdict.SKIP if state in self.skips else Verdict.REFUSE


@dataclass(frozen=True)
class Machine(Generic[S]):
    """A table of edges that checks itself when it is made."""

    name: str
    states: type[S]
    initial: S
    edges: tuple[Edge[S], ...]
    retired: frozenset[S] = frozenset()  #: states that only old rows are in: ways lead out of them, none in

    def __post_init__(self) -> None:
        verbs = [edge.verb for edge in self.edges]
        if len(verbs) != len(set(verbs)):
            raise ValueError(f"{self.name}: a verb stands twice")
        if contradictory := [edge.verb for edge in self.edges if edge.sources & edge.skips]:
            raise ValueError(f"{self.name}: {contradictory} both apply and skip")
        if unreachable := set(self.states) - self.reachable() - self.retired:
            raise ValueError(f"{self.name}: no way leads to {sorted(s.value for s in unreachable)}")

    def __iter__(self) -> Iterator[Edge[S]]:
        return iter(self.edges)

    def reachable(self) -> set[S]:
        seen = {self.initial}
        while more := {edge.target for edge in self.edges if edge.sources & seen} - seen:
            seen |= more
        return seen

    def steps(self) -> list[tuple[S, S]]:
        """Every legal (from, to), in the order of the states."""
        order = list(self.states)
        pairs = {(source, edge.target) for edge in self.edges for source in edge.sources}
        return sorted(pairs, key=lambda pair: (order.index(pair[0]), order.index(pair[1])))

    def matrix(self) -> list[list[str]]:
        """Verb × state as text cells: the target where it applies, `skip`, or nothing."""
        header = ["verb", *(state.value for state in self.states)]
        return [header, *([edge.verb, *(_cell(edge, state) for state in self.states)] for edge in self.edges)]

    def mermaid(self) -> str:
        lines = ["stateDiagram-v2", f"    [*] --> {self.initial.value}"]
        for edge in self.edges:
            for source in self.states:
                if source in edge.sources:
                    lines.append(f"    {source.value} --> {edge.target.value}: {edge.verb}")
        return "\n".join(lines)


def _cell(edge: Edge[S], state: S) -> str:
    match edge.decide(state):
        case Verdict.APPLY:
            return f"→ {edge.target.value}" + (f", where {' is '.join(edge.where)}" if edge.where else "")
        case Verdict.SKIP:
            return "skip"
        case Verdict.REFUSE:
            return ""
