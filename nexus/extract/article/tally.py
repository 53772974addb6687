"""Counts what each element of a page holds: text, links, long paragraphs, and what the referees kept."""

from __future__ import annotations

from dataclasses import dataclass, field

from nexus.extract.article.blocks import Block, BlockScope

#: A longer block with few links is a paragraph, whatever its tag.
LONG = 80


@dataclass(eq=False, slots=True)
class Tally:
    chars: int = 0
    linked: int = 0
    blocks: int = 0
    long: int = 0
    commas: int = 0
    items: int = 0
    votes: list[float] = field(default_factory=list)

    @property
    def density(self) -> float:
        """The share of its text that is in links."""
        return self.linked / self.chars if self.chars else 0.0


def count_commas(text: str) -> int:
    return text.count(",") + (0 if text.isascii() else text.count("，") + text.count("、") + text.count("،"))


def tally_scopes(
    blocks: list[Block], scopes: list[BlockScope], votes: list[list[float]], marks: list[int]
) -> list[Tally]:
    """Return a tally for each scope, with everything inside it. `marks` are the commas in each block."""
    tallies = [Tally(votes=[0.0] * len(votes[0])) for _ in scopes]
    for block, given, pauses in zip(blocks, votes, marks, strict=True):
        tally, size = tallies[block.scope.order], len(block.text)
        tally.chars += size
        tally.linked += block.linked
        tally.blocks += 1
        tally.commas += pauses
        tally.items += block.scope.tag == "li"
        tally.long += size > LONG and block.linked * 3 < size
        if any(given):
            tally.votes = [held + vote * size for held, vote in zip(tally.votes, given, strict=True)]
    for scope in reversed(scopes):
        if scope.parent is not None:
            _add(tallies[scope.parent.order], tallies[scope.order])
    return tallies


def _add(outer: Tally, inner: Tally) -> None:
    if inner.blocks:
        outer.chars += inner.chars
        outer.linked += inner.linked
        outer.blocks += inner.blocks
        outer.long += inner.long
        outer.commas += inner.commas
        outer.items += inner.items
        if any(inner.votes):
            outer.votes = [held + more for held, more in zip(outer.votes, inner.votes, strict=True)]
