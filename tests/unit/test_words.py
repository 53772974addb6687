"""The word count of a text, as a person would count it, in every script."""

from __future__ import annotations

import pytest

from nexus.media.texts import count_words


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
def test_words_are_counted_by_spaces_or_by_two_characters_each(text: str, words: int) -> None:
    assert count_words(text) == words
