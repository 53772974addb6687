"""What text becomes in the index: the same words are found however they are written."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nexus.search.analysis import LONGEST_WORD, analyse, indexed, split_words, stemmed_in


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [
        ("en", "Running", "runs"),
        ("en-GB", "naïve CAFÉ", "naive cafe"),
        ("de", "Häuser", "Haus"),
        ("de-CH", "Straße", "STRASSE"),
        ("fr", "élèves", "eleves"),
        ("es", "canciones", "canción"),
        ("tr", "IŞIKLAR", "ışıklar"),
        ("tr", "İstanbul", "istanbul"),
        ("pl", "Łódź", "lodz"),
        ("ar", "كِتَابٌ", "كتاب"),
        ("ar", "الكتاب", "كتاب"),
        ("he", "שָׁלוֹם", "שלום"),
        ("ru", "городов", "город"),
        ("el", "ΔΡΌΜΟΣ", "δρόμος"),
        ("hi", "किताबें", "किताब"),
        ("ja", "ﾀﾜｰ", "タワー"),
        (None, "ﬁne", "fine"),
        (None, "٤٢", "42"),
        (None, "multi\u00adply", "multiply"),
    ],
)
def test_spellings_of_a_word_become_the_same_token(language: str | None, one: str, other: str) -> None:
    assert analyse(one, language) == analyse(other, language)


def test_words_of_another_script_are_stemmed_in_a_language_of_that_script() -> None:
    assert analyse("running города", "ru") == analyse("runs городов", None)
    assert analyse("engines", "ja") == analyse("engine", "en")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("重跑gen-itgc后", ["重", "跑", "gen", "itgc", "后"]),
        ("ภาษา", ["ภ", "า", "ษ", "า"]),
        ("엔진을", ["엔", "진", "을"]),
        ("हिन्दी", ["हिन्दी"]),
        ("ខ្មែរ", list("ខ្មែរ")),
        ("l’homme d'État", ["l", "homme", "d", "état"]),
    ],
)
def test_text_is_split_as_its_script_asks(text: str, words: list[str]) -> None:
    assert split_words(text) == words


@pytest.mark.parametrize("tag", [None, "", "vi", "x-unknown", "zh-Hant", "not a tag"])
def test_text_in_a_language_without_a_stemmer_is_stemmed_in_english(tag: str | None) -> None:
    assert stemmed_in(tag) == "en"


def test_region_and_case_of_a_language_tag_make_no_difference() -> None:
    assert {stemmed_in(tag) for tag in ("pt", "pt-BR", "PT_pt")} == {"pt"}


@settings(max_examples=50, deadline=None)
@given(st.text(), st.sampled_from([None, "en", "tr", "ar", "de", "ru", "ja"]))
def test_tokens_are_short_and_plain_on_any_text(text: str, language: str | None) -> None:
    for token in analyse(text, language):
        assert re.fullmatch("[0-9]+|[a-z][a-z0-9]*", token)
        assert len(token) < 8 * LONGEST_WORD


@settings(max_examples=50, deadline=None)
@given(st.text(), st.text())
def test_a_text_has_the_tokens_of_its_parts(one: str, other: str) -> None:
    assert analyse(f"{one} . {other}") == [*analyse(one), *analyse(other)]


def test_length_counts_the_tokens_of_text_and_heads() -> None:
    found = indexed("Two words", ["A heading", None, ""], "en")
    assert found == ("two word", "a head", 4)
