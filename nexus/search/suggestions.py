"""Offers other words when a question found none: those of the viewer's own texts that are spelled much the same."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from nexus.db.session import Session
from nexus.search.analysis import DEFAULT, is_spaceless, spelled, split_words, tokens_of
from nexus.search.candidates import WordIndex
from nexus.search.finding import passage_texts
from nexus.search.questions import Question
from nexus.search.scope import SearchScope
from nexus.search.terms import Term
from nexus.search.words import word_index

#: How many words of a question are looked at, and how many others are tried for each.
MOST_WORDS = 4
TRIED = 5
#: Shorter words are like too many others.
SHORTEST_WORD = 4
#: Longer words may differ in two characters, others in one.
LONG_WORD = 6


class Suggestion(NamedTuple):
    typed: str
    instead: str


def suggest_words(session: Session, scope: SearchScope, question: Question) -> list[Suggestion]:
    """Return what to offer for each word of the question that is spelled much like one in the texts in scope."""
    typed = [word for part in (*question.words, *question.phrases) for word in split_words(part)]
    long = [word for word in dict.fromkeys(typed) if len(word) >= SHORTEST_WORD and not is_spaceless(word)]
    index = word_index(session)
    found = ((word, _instead(session, index, scope, word)) for word in long[:MOST_WORDS])
    return [Suggestion(word, instead) for word, instead in found if instead is not None]


def _instead(session: Session, index: WordIndex, scope: SearchScope, word: str) -> str | None:
    token = tokens_of(DEFAULT)(word)
    for other in _alike(token, index.tokens_from(session, *_beginning(token)))[:TRIED]:
        rows = index.best(session, scope, index.any_of([Term(((other,),))]))
        passages = [row.passage for row in rows[:TRIED]]
        for text in passage_texts(session, scope, passages).values():
            for seen in split_words(text):
                if tokens_of(DEFAULT)(seen) == other:
                    return seen
    return None


def _beginning(token: str) -> tuple[str, str]:
    """The range of tokens with the same first letter, which is rarely wrong. Those of other scripts share one."""
    first = token[:2] if token.startswith("q0") else token[:1]
    return first, first[:-1] + chr(ord(first[-1]) + 1)


def _alike(token: str, others: Iterable[str]) -> list[str]:
    stem = spelled(token)
    most = 2 if len(stem) >= LONG_WORD else 1
    found = []
    for other in others:
        written = spelled(other)
        if other != token and abs(len(written) - len(stem)) <= most:
            distance = _distance(stem, written, most)
            if distance <= most:
                found.append((distance, written[:2] != stem[:2], other))
    return [other for _, _, other in sorted(found)]


def _distance(one: str, other: str, most: int) -> int:
    """How many characters to insert, delete, replace or swap with their neighbour; more than `most` if there are more.

    Only a band around the diagonal is computed.
    """
    last: list[int] = []
    row = list(range(len(other) + 1))
    for place, character in enumerate(one, 1):
        before, last, row = last, row, [place]
        for number, wanted in enumerate(other, 1):
            if abs(place - number) > most:
                row.append(most + 1)
                continue
            cost = min(last[number] + 1, row[-1] + 1, last[number - 1] + (character != wanted))
            if before and number > 1 and character == other[number - 2] and one[place - 2] == wanted:
                cost = min(cost, before[number - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
    return row[-1]
