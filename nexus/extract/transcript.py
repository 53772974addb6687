"""What is said in a recording, wherever its transcript comes from."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from nexus.extract.results import MANY, ParserResult

#: Stands for both moments of a cue if nobody knows when it is said.
UNTIMED = -1


class Cue(NamedTuple):
    """What is said from one moment to another, in milliseconds from the beginning."""

    starts_ms: int
    ends_ms: int
    text: str
    speaker: str | None = None


class Transcript(ParserResult, frozen=True):
    """All that is said in a recording, in the order of time."""

    cues: Annotated[tuple[Cue, ...], MANY]
    #: Where it comes from, for a person: "Captions from YouTube, automatic".
    source: str = ""
    language: str | None = None
