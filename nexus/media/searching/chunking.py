"""Texts as the chunks by which they are found."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import NamedTuple
from uuid import UUID, uuid5

from nexus.db.chunks import ABOUT
from nexus.extract import Facts
from nexus.extract.chunks import find_headlines, split_chunks, titles_of
from nexus.search.analysis import Indexed, indexed

#: The ids of chunks are made in it.
_SPACE = UUID("2b7b45e5-3d0c-5c7c-9f6c-6b0c1f0d7a11")


class TextPiece(NamedTuple):
    """A fragment, with its position."""

    position: int
    text: str
    html: str | None


class Chunk(NamedTuple):
    """A row of `chunks`, without its item and revision."""

    position: int
    fragment: int
    start: int
    end: int
    id: UUID
    head: str
    words: str
    length: int


def cut_chunks(title: str | None, facts: Facts, pieces: Iterable[TextPiece]) -> list[Chunk]:
    """Return the chunks of a text: first what stands beside it, then its parts in order.

    A part's meaning depends on its own text alone, and so does its id, which is the same in every revision.
    """
    about = about_text(title, facts)
    places = count(ABOUT)
    chunks = [_chunk(next(places), (ABOUT, 0, 0), about, indexed("", [about], facts.language))]
    for piece in pieces:
        headlines = find_headlines(piece.text, piece.html)
        for start, end in split_chunks(piece.text, headlines):
            text, heads = piece.text[start:end], titles_of((start, end), headlines)
            words = indexed(text, heads, facts.language)
            chunks.append(_chunk(next(places), (piece.position, start, end), text, words))
    return chunks


def about_text(title: str | None, facts: Facts) -> str:
    """Return what stands beside a text: its title, who wrote it and where."""
    return "\n".join(line for line in (title, facts.byline, facts.site) if line)


def _chunk(position: int, span: tuple[int, int, int], text: str, words: Indexed) -> Chunk:
    return Chunk(position, *span, uuid5(_SPACE, text), words.head, words.words, words.length)
