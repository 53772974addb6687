"""What the index is asked for: a question's words as tokens, in every language that some text was stemmed in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from sqlalchemy import select

from nexus.db.chunks import word_languages
from nexus.db.session import Query, Session
from nexus.search.analysis import DEFAULT, STEMMERS, is_spaceless, split_words, tokens_of
from nexus.search.questions import STOP_WORDS, Question

#: Tokens that follow each other.
Form = tuple[str, ...]
#: The most terms of a question.
MOST_TERMS = 32
#: The most languages in which each is looked for.
MOST_LANGUAGES = 8


@dataclass(frozen=True)
class Term:
    """One thing to look for, in any of its forms: those that its word has in several languages."""

    forms: tuple[Form, ...]
    #: How often the question names it.
    times: int = 1


@dataclass(frozen=True)
class Terms:
    """Everything that a question looks for."""

    wanted: tuple[Term, ...]
    required: tuple[Term, ...] = ()
    excluded: tuple[Term, ...] = ()


class _Piece(NamedTuple):
    spelled: str
    forms: tuple[Form, ...]


class _Language(NamedTuple):
    language: str


_LANGUAGES = Query(
    select(word_languages.c.language)
    .where(word_languages.c.language != DEFAULT)
    .order_by(word_languages.c.language),
    _Language,
)


def terms_of(session: Session, question: Question) -> Terms:
    """Return what to ask the index for."""
    found = [row.language for row in session.all(_LANGUAGES) if row.language in STEMMERS]
    return terms_in(question, [DEFAULT, *found[: MOST_LANGUAGES - 1]])


def terms_in(question: Question, languages: Sequence[str]) -> Terms:
    """Return the terms of a question that is asked in these languages."""
    required = [_phrase(text, languages) for text in question.phrases]
    excluded = [_phrase(text, languages) for text in question.excluded]
    pieces = [piece for text in question.words for piece in _pieces(text, languages)]
    telling = [piece for piece in pieces if piece.spelled not in STOP_WORDS]
    times = Counter([*required, *(piece.forms for piece in telling or pieces)])
    wanted = [Term(forms, count) for forms, count in times.items()][:MOST_TERMS]
    return Terms(tuple(wanted), _once(required), _once(excluded))


def _once(found: Iterable[tuple[Form, ...]]) -> tuple[Term, ...]:
    return tuple(Term(forms) for forms in dict.fromkeys(found))


def _phrase(text: str, languages: Sequence[str]) -> tuple[Form, ...]:
    forms = (tuple(map(tokens_of(language), split_words(text, language))) for language in languages)
    return tuple(dict.fromkeys(forms))


def _pieces(text: str, languages: Sequence[str]) -> Iterator[_Piece]:
    """The words of a text. A run of characters without spaces is asked for in short, overlapping pieces.

    They also find texts that have only part of the run; texts that have all of it have the most pieces.
    """
    spelled = [split_words(text, language) for language in languages]
    first = spelled[0]
    for width, run in groupby(range(len(first)), lambda place: _width(first[place])):
        places = list(run)
        for start in places[: max(len(places) - width + 1, 1)]:
            end = min(start + width, places[-1] + 1)
            forms = (
                tuple(map(tokens_of(language), words[start:end]))
                for language, words in zip(languages, spelled, strict=True)
            )
            yield _Piece("".join(first[start:end]), tuple(dict.fromkeys(forms)))


def _width(word: str) -> int:
    """How many tokens make a piece: letters without spaces say less than ideographs and syllables do."""
    if not is_spaceless(word):
        return 1
    return 2 if word >= "\u1100" and not "\u1780" <= word <= "\u1bff" else 4
