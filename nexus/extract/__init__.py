"""How bytes become text: what an extractor is, and which kinds have one.

An extractor registers itself: `AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = extract_article`. The lifecycle does not
change for it; while a kind has none, its media wait as pending and nothing is announced.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from nexus.states.media import Kind


@dataclass(frozen=True)
class Source:
    """What an extractor is given."""

    media_id: UUID
    kind: Kind
    url: str | None
    provider: str | None
    provider_id: str | None
    attempt: int


@dataclass(frozen=True)
class Extraction:
    """What an extractor gives back: a title, if it found one, and the text in reading order."""

    title: str | None
    fragments: tuple[str, ...]


class Extractor(Protocol):
    def __call__(self, source: Source) -> Extraction:
        """Raises WorkError where there is no text to be had; every other exception counts as a failed extraction."""
        ...


AVAILABLE_EXTRACTORS: dict[Kind, Extractor] = {}


def can_extract(kind: Kind) -> bool:
    return kind in AVAILABLE_EXTRACTORS
