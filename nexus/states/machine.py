"""The kernel of states: an edge answers APPLY, SKIP or REFUSE, and a machine is a checked table of edges.

It never logs, and raises only while a machine is built: callers decide what a miss costs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

S = TypeVar("S", bound=Enum)


class Verdict(Enum):
    """What an edge says about a state."""

    APPLY = "apply"  #: the edge leads from this state
    SKIP = "skip"  #: the work is done or under way, so there is nothing to do
    REFUSE = "refuse"  #: the edge makes no sense in this state


@dataclass(frozen=True)
class Edge(Generic[S]):
    """One verb: the states it leads from, the one it leads to, and those in which asking again is harmless.

    `where` is a column and the value it must have as well; the database's triggers check it too.
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
    """A table of edges that checks itself when it is created. Raises ValueError if it makes no sense."""

    name: str
    states: type[S]
    initial: S
    edges: tuple[Edge[S], ...]
    retired: frozenset[S] = frozenset()  #: states that only old rows are in: no edge leads to them

    def __post_init__(self) -> None:
        verbs = [edge.verb for edge in self.edges]
        if len(verbs) != len(set(verbs)):
            raise ValueError(f"{self.name}: a verb is listed twice")
        if contradictory := [edge.verb for edge in self.edges if edge.sources & edge.skips]:
            raise ValueError(f"{self.name}: {contradictory} both apply and skip")
        if unreachable := set(self.states) - self.reachable() - self.retired:
            raise ValueError(f"{self.name}: no edge leads to {sorted(s.value for s in unreachable)}")

    def __iter__(self) -> Iterator[Edge[S]]:
        return iter(self.edges)

    def reachable(self) -> set[S]:
        """Return every state that edges lead to from the initial one."""
        seen = {self.initial}
        while more := {edge.target for edge in self.edges if edge.sources & seen} - seen:
            seen |= more
        return seen

    def steps(self) -> list[tuple[S, S]]:
        """Return every legal (from, to), in the order of the states."""
        order = list(self.states)
        pairs = {(source, edge.target) for edge in self.edges for source in edge.sources}
        return sorted(pairs, key=lambda pair: (order.index(pair[0]), order.index(pair[1])))

    def matrix(self) -> list[list[str]]:
        """Return verb × state as text: the target if the edge applies, `skip`, or nothing."""
        header = ["verb", *(state.value for state in self.states)]
        return [header, *([edge.verb, *(_cell(edge, state) for state in self.states)] for edge in self.edges)]

    def mermaid(self) -> str:
        """Return the diagram as Mermaid text."""
        lines = ["stateDiagram-v2", f"    [*] --> {self.initial.value}"]
        for edge in self.edges:
            for source in self.states:
                if source in edge.sources:
                    lines.append(f"    {source.value} --> {edge.target.value}: {edge.verb}")
        return "\n".join(lines)


def _cell(edge: Edge[S], state: S) -> str:
    match edge.decide(state):
        case Verdict.APPLY:
            return f"→ {edge.target.value}" + (f", if {' is '.join(edge.where)}" if edge.where else "")
        case Verdict.SKIP:
            return "skip"
        case Verdict.REFUSE:
            return ""
