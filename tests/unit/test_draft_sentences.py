"""Sentences end where readers of the language say that they end."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nexus.draft.sentences import LONGEST, split_sentences


def parts(text: str) -> list[str]:
    return [text[start:end] for start, end in split_sentences(text)]


@pytest.mark.parametrize(
    "sentences",
    [
        ["It rained.", "Nobody came!", "Why not?"],
        ["Mr. and Mrs. J. R. Smith live on Main St. 5 in Washington, D.C., with Dr. Who.", "They are well."],
        ["Prices rose 5.3 percent, e.g. for bread.", "Wages did not."],
        ["“We will go,” he said.", "“Will you?” she asked.", "“No.”", "He left."],
        ["He said no.", "She read p. 5 and No. 7 twice."],
        ["Wait... what is this?", "Nothing…", "Really?!", "Yes."],
        ["The U.S. Senate voted.", "(It was close.)", "It was late."],
        ["Am 3. Mai kam z. B. Herr Dr. Meier mit ca. 5 Mio. Euro.", "„Gut“, sagte er.", "Dann ging er."],
        ["«\u00a0Bonjour.\u00a0»", "Mme Dupont est partie à huit heures.", "C’est tout !", "Vraiment ?"],
        ["¿Quién vino?", "¡Nadie!", "El Sr. García y la Dra. Pérez no."],
        ["Он родился в 1990 г. в Москве, на ул. Ленина.", "Потом уехал.", "Куда?"],
        ["यह पहला वाक्य है।", "यह दूसरा है।"],
        ["هل جاء أحد؟", "لا، لم يأت أحد."],
        ["Ἦλθεν ὁ ἄνθρωπος.", "Εἶδεν τὴν πόλιν."],
    ],
)
def test_sentences_end_where_readers_end_them(sentences: list[str]) -> None:
    assert parts(" ".join(sentences)) == sentences


@pytest.mark.parametrize(
    "sentences",
    [
        ["国务院宣布了新的规定。", "“这很重要。”", "部长说。", "真的吗？", "是的！！"],
        ["橋は閉鎖された。", "「なぜですか？」", "市長は答えなかった。"],
        ["ស្ពានត្រូវបានបិទ។", "គ្មានអ្នកណាមកទេ។"],
    ],
)
def test_scripts_without_spaces_have_sentences_too(sentences: list[str]) -> None:
    assert parts("".join(sentences)) == sentences


def test_a_line_ends_a_sentence_unless_it_goes_on_in_small_letters() -> None:
    assert parts("A heading\nThe bridge was closed on\ntuesday, they said.\n\nand so on") == [
        "A heading",
        "The bridge was closed on\ntuesday, they said.",
        "and so on",
    ]


def test_an_endless_sentence_is_cut_between_words() -> None:
    found = parts("สะพาน ถูกปิด " * 100)
    assert len(found) > 1
    assert all(len(piece) <= LONGEST and set(piece.split()) <= {"สะพาน", "ถูกปิด"} for piece in found)
    assert "".join(parts("x" * 1000)) == "x" * 1000


@pytest.mark.parametrize(
    "text", ["!" * 50_000, " " * 50_000, "\n" * 50_000, "Mr. " * 12_000, ".”" * 25_000, "。" * 50_000]
)
def test_a_text_of_punctuation_only_is_split_quickly(text: str) -> None:
    assert all(end - start <= LONGEST for start, end in split_sentences(text))


@settings(deadline=None, derandomize=True)
@given(st.text(alphabet=st.one_of(st.sampled_from(" \n.!?。”'a Bc1"), st.characters())))
def test_splitting_into_sentences_loses_and_repeats_nothing(text: str) -> None:
    spans = split_sentences(text)
    assert spans == sorted(spans)
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert "".join("".join(text[start:end].split()) for start, end in spans) == "".join(text.split())
    assert all(text[start:end] == text[start:end].strip() for start, end in spans)
