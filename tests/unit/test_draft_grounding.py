"""A quote is found where it stands, however its marks are written; what was never said is never found."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nexus.draft.grounding import MOST_GAP, QuotableText

TEXT = (
    "“We can’t agree — ever,” said Zoë.\n\nThe cost was 5.3 million, the ﬁrm’s co\u00adworkers wrote in the café. "
    "« Bonjour\u00a0», dit-il. In 2019–20 it was less. Wait... what? “Never,” she said, “will we pay this sum.” "
    "他说“我们不同意”，然后离开了。 वह घर गया। It was −7 degrees."
)
SHORTENED = "The cost was 5.3 million, the ﬁrm’s co\u00adworkers wrote in the café"

#: Words of several scripts, none of which is a part of another.
WORDS = [
    "Zoë", "bridge", "council", "fifty", "can’t", "5.3", "café", "Straße", "мост", "закрыт", "γέφυρα", "घर",
    "Ma\u0308rz", "naïve", "flood", "waffle", "o’clock", "I", "12,000", "être",
]  # fmt: skip
GAPS = [" ", "  ", "\n", "\u00a0", "\u202f", "\t \n"]
MARKS = ["", ",", ".", ";", "!"]

words = st.lists(st.sampled_from(WORDS), min_size=1, max_size=40)


def place(quote: str, text: str = TEXT) -> str | None:
    span = QuotableText(text).find(quote)
    return None if span is None else text[span[0] : span[1]]


@pytest.mark.parametrize(
    ("quote", "stands"),
    [
        ("We can't agree - ever", "We can’t agree — ever"),
        ('"We can\'t agree -- ever," said Zoe\u0308.', "“We can’t agree — ever,” said Zoë."),
        ("said Zoë. The cost was 5.3 million", "said Zoë.\n\nThe cost was 5.3 million"),
        ("the firm's coworkers wrote", "the ﬁrm’s co\u00adworkers wrote"),
        ('"Bonjour", dit-il', "« Bonjour\u00a0», dit-il"),
        ("\u201cBonjour\u201d, dit-il.", "« Bonjour\u00a0», dit-il."),
        ("In 2019-20 it was less", "In 2019–20 it was less"),
        ("Wait… what?", "Wait... what?"),
        ("“The cost was 5.3 million.”", "The cost was 5.3 million"),
        ("'in the café.'", "in the café."),
        ("wrote in the cafe\u0301", "wrote in the café"),
        ("我们不同意", "我们不同意"),
        ('他说"我们不同意"，', "他说“我们不同意”，"),
        ("वह घर", "वह घर"),
        ("It was -7 degrees", "It was −7 degrees"),
        ("–7 degrees", "−7 degrees"),
        ("  The cost was\n5.3 million ", "The cost was 5.3 million"),
        ("The cost was 5.3 million … wrote in the café", SHORTENED),
        ("...wrote in the café...", "wrote in the café"),
        ("The cost was 5.3 million [...] wrote in the café", SHORTENED),
    ],
)
def test_a_quote_is_found_however_its_marks_are_written(quote: str, stands: str) -> None:
    assert place(quote) == stands


@pytest.mark.parametrize(
    "quote",
    [
        "",
        " ",
        "...",
        "“”",
        "\0",
        "we can't agree",
        "We can",
        "We cant agree",
        "The cost was 5",
        "3 million",
        "The cost was 53 million",
        "The cost was 5,3 million",
        "the cafe",
        "The cost was 5.3 billion",
        "The cost was 5.4 million",
        "The costs was 5.3 million",
        "he cost was",
        "cost was 5.3 mill",
        "wrote in the café … The cost was 5.3 million",
        "The cost … the café",
        "We can't agree and never will",
        "said Zoë … The cost was 5.3 million, he lied, in the café",
        "Bonjour, dit-il",
        "वह घ",
        "7 degrees",
    ],
)
def test_a_quote_that_is_not_in_the_text_is_not_found(quote: str) -> None:
    assert place(quote) is None


def test_the_parts_of_a_shortened_quote_stand_close_together() -> None:
    near = f"The mayor said on Monday {'x ' * 20} that he would go."
    far = f"The mayor said on Monday {'x ' * MOST_GAP} that he would go."
    quote = "The mayor said on Monday … that he would go."
    assert place(quote, near) == near
    assert place(quote, far) is None
    assert place(quote, far + near) == near


def test_many_quotes_in_a_long_text_of_one_word_are_found_quickly() -> None:
    """The worst case: thousands of places that nearly match."""
    source = QuotableText("ab " * 16_000)
    for _ in range(20):
        assert source.find("ab " * 300 + "… " + "ab " * 200 + "c") is None
        assert source.find("ab " * 400 + "a") is None


@settings(deadline=None, derandomize=True)
@given(words, st.data())
def test_every_run_of_words_is_found_in_its_place(chosen: list[str], data: st.DataObject) -> None:
    """In a text of numbered words no run occurs twice, so its span must be the right one."""
    marks = data.draw(st.lists(st.sampled_from(MARKS), min_size=len(chosen), max_size=len(chosen)))
    pieces = [f"{word} w{at}q{mark}" for at, (word, mark) in enumerate(zip(chosen, marks, strict=True))]
    text = " ".join(["—", *pieces, "—"])
    first = data.draw(st.integers(0, len(pieces) - 1))
    last = data.draw(st.integers(first, len(pieces) - 1))
    start = 2 + sum(len(piece) + 1 for piece in pieces[:first])
    quote = " ".join(pieces[first : last + 1])
    assert QuotableText(text).find(altered(quote, data)) == (start, start + len(quote))


@settings(deadline=None, derandomize=True)
@given(words, st.data())
def test_a_quote_with_one_word_changed_is_not_found(chosen: list[str], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(chosen) - 1))
    other = data.draw(st.sampled_from(WORDS))
    assume(other != chosen[at])
    changed = [*chosen[:at], other, *chosen[at + 1 :]]
    assume(not stands(changed, chosen))
    assert QuotableText(" ".join(chosen)).find(altered(" ".join(changed), data)) is None


@settings(deadline=None, derandomize=True)
@given(st.text(), st.text())
def test_any_text_and_quote_can_be_compared(text: str, quote: str) -> None:
    span = QuotableText(text).find(quote)
    assert span is None or 0 <= span[0] < span[1] <= len(text)


@settings(deadline=None, derandomize=True)
@given(st.text(min_size=1))
def test_a_text_with_a_word_in_it_is_found_in_itself(text: str) -> None:
    assume(any(map(str.isalnum, text)))
    span = QuotableText(text).find(text)
    assert span is not None
    assert any(map(str.isalnum, text[span[0] : span[1]]))


def altered(quote: str, data: st.DataObject) -> str:
    """The same words, with other white space and other marks around and inside of them."""
    quote = re.sub(" ", lambda _: data.draw(st.sampled_from(GAPS)), quote)
    quote = re.sub("[’']", lambda _: data.draw(st.sampled_from("'’‘ʼ`´")), quote)
    opening, closing = data.draw(
        st.sampled_from([("", ""), ('"', '"'), ("“", "”"), ("« ", " »"), ("„", "“"), (" ", "\n")])
    )
    return opening + quote + closing


def stands(wanted: list[str], there: list[str]) -> bool:
    return any(there[at : at + len(wanted)] == wanted for at, _ in enumerate(pairwise([*there, ""])))
