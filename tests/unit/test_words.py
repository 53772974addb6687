"""How long a text is: what a person would count, in every script."""

from __future__ import annotations

import pytest

from nexus.media.documents import count_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", 0),
        (" \n\t", 0),
        ("one", 1),
        ("  one\n\ntwo\tthree ", 3),
        ("don't stop", 2),
        ("naïve café", 2),
        ("Привет, мир!", 2),
        ("한국어 문장 입니다", 3),
        ("日本語です。", 3),
        ("日本 and 中国", 3),
        ("half of a pair \ud800", 5),
    ],
)
def test_words_stand_between_spaces_or_are_two_characters_where_there_are_none(text: str, words: int) -> None:
    assert count_words(text) == words
