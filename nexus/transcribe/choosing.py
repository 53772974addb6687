"""Which of several captions a person wants: in a language of theirs, and written by people rather than by machines."""

from __future__ import annotations

from collections.abc import Sequence

#: After every language that a person reads.
_SPOKEN, _OTHER = 1000, 1001


def choose_captions(captions: Sequence[tuple[str, bool]], languages: Sequence[str]) -> int | None:
    """Return the place of the best captions; None if there are none.

    Each has its language, and whether a machine wrote it. Without one that the person reads, what is spoken is better
    than a translation: machines write down the language that they hear.
    """
    order = rank_captions(captions, languages)
    return order[0] if order else None


def rank_captions(captions: Sequence[tuple[str, bool]], languages: Sequence[str]) -> list[int]:
    """Return the places of captions, the best first."""
    spoken = {_base(language) for language, is_automatic in captions if is_automatic}

    def rank(place: int) -> tuple[int, bool, int]:
        language, is_automatic = captions[place]
        known = rank_language(language, languages)
        unknown = _SPOKEN if _base(language) in spoken else _OTHER
        return unknown if known is None else known, is_automatic, place

    return sorted(range(len(captions)), key=rank)


def reads_language(language: str | None, languages: Sequence[str]) -> bool:
    """Whether somebody who reads these languages reads another, which may be unknown."""
    return not language or any(_base(language) == _base(one) for one in languages)


def rank_language(language: str, languages: Sequence[str]) -> int | None:
    """Return the place of a language among those that a person reads; None if they don't read it.

    British English will do for somebody who reads English, but after what they asked for.
    """
    for place, one in enumerate(languages):
        if _plain(one) == _plain(language):
            return 2 * place
        if _base(one) == _base(language):
            return 2 * place + 1
    return None


def _plain(language: str) -> str:
    return language.lower().replace("_", "-")


def _base(language: str) -> str:
    return _plain(language).partition("-")[0]
