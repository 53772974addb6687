"""Plain text and Markdown become fragments of bounded size; other files are refused."""

from __future__ import annotations

import random

import pytest

from nexus.errors import EmptyContent, ExtractionFailed, TextUnreadable
from nexus.extract import Extraction, Heading, Hints, markup
from nexus.extract.text import FRAGMENT_LENGTH, read_text
from tests.kit import documents

MARKDOWN = Hints(filename="My notes.md")
PLAIN = Hints(filename="My notes.txt")


def text_of(extraction: Extraction) -> str:
    return "\n\n".join(fragment.text for fragment in extraction.fragments)


def test_plain_text_is_kept_as_it_stands() -> None:
    extraction = read_text(b"\nA title\n\n  indented  \n<b>not html</b>\r\n\n\n\nend\n", PLAIN)
    assert extraction == Extraction.plain("A title", "A title\n\n  indented\n<b>not html</b>\n\nend")


@pytest.mark.parametrize(
    ("data", "declared"),
    [
        ("Grüße".encode(), None),
        ("Grüße".encode(), "iso-8859-1"),
        (b"\xef\xbb\xbf" + "Grüße".encode(), None),
        (b"\xff\xfe" + "Grüße".encode("utf-16-le"), None),
        (b"\xfe\xff" + "Grüße".encode("utf-16-be"), "utf-8"),
        ("Grüße".encode("cp1252"), "latin-1"),
        ("Schöne Grüße aus Köln an alle, die über Österreich fahren müssen.".encode("cp1252"), None),
        ("Schöne Grüße aus Köln an alle, die über Österreich fahren müssen.".encode("cp1252"), "rot13"),
    ],
)
def test_the_charset_of_a_text_is_found(data: bytes, declared: str | None) -> None:
    assert "Grüße" in text_of(read_text(data, Hints(charset=declared)))


@pytest.mark.parametrize(
    ("text", "charset"),
    [
        ("Größe, Übung und Straße: schöne Wörter für müde Bären.", "latin-1"),
        ("Les élèves rentrèrent à la maison. Où aller?", "cp1252"),
        ("café naïve résumé", "cp1252"),
        ("¿Qué hora es, señor?", "cp1252"),
        ("Привет, как дела? Сегодня хорошая погода, и мы идём гулять.", "cp1251"),
    ],
)
def test_the_charset_of_a_few_words_is_found(text: str, charset: str) -> None:
    assert text_of(read_text(text.encode(charset), Hints())) == text


@pytest.mark.parametrize(
    "data",
    [
        b"\x00text",
        b"\x89PNG\r\n\x1a\n\x00\x00",
        b"\x01\x02\x03\x04 four of them",
        documents.epub({"a.xhtml": documents.chapter("<p>x</p>")}),
        random.Random(1).randbytes(4000).replace(b"\x00", b"."),
    ],
)
def test_a_file_that_is_not_text_is_refused(data: bytes) -> None:
    with pytest.raises(TextUnreadable):
        read_text(data, PLAIN)


@pytest.mark.parametrize("data", [b"", b" \n\t\n", b"\xef\xbb\xbf", b"\x1a"])
@pytest.mark.parametrize("hints", [PLAIN, MARKDOWN])
def test_an_empty_file_is_refused(data: bytes, hints: Hints) -> None:
    with pytest.raises(EmptyContent):
        read_text(data, hints)


def test_a_single_invalid_character_is_dropped() -> None:
    assert text_of(read_text(b"the end\x1a", PLAIN)) == "the end"


def test_a_long_first_line_is_no_title() -> None:
    assert read_text(b"word " * 100, PLAIN).title == "My notes"
    assert read_text(b"word " * 100, Hints()).title is None


def test_a_long_text_is_cut_at_ends_of_paragraphs() -> None:
    paragraphs = [f"{n} " + "word " * 199 for n in range(200)]
    extraction = read_text("\n\n".join(paragraphs).encode(), PLAIN)
    assert len(extraction.fragments) > 5
    assert all(len(fragment.text) <= FRAGMENT_LENGTH for fragment in extraction.fragments)
    assert text_of(extraction).split("\n\n") == [paragraph.strip() for paragraph in paragraphs]


def test_an_endless_paragraph_is_cut_all_the_same() -> None:
    extraction = read_text(b"a" * 3 * FRAGMENT_LENGTH + b" end", PLAIN)
    assert [len(fragment.text) for fragment in extraction.fragments] == [FRAGMENT_LENGTH] * 3 + [3]


def test_markdown_is_formatted_and_links_to_its_headings() -> None:
    source = "# One\n\nhi *x*, [on](#two--three)\n\n## Two & Three\n\n|a|b|\n|-|-|\n|1|2|\n\n<i>raw</i>"
    extraction = read_text(source.encode(), MARKDOWN)
    assert extraction.title == "One"
    assert text_of(extraction) == "One\n\nhi x, on\n\nTwo & Three\n\na\tb\n1\t2\n\n<i>raw</i>"
    assert extraction.outline == (Heading("One", 1, "f0-one"), Heading("Two & Three", 2, "f0-two--three"))
    assert 'href="#f0-two--three"' in (extraction.fragments[0].html or "")


def test_markdown_is_known_by_name_or_type() -> None:
    assert read_text(b"# T", Hints(content_type="text/markdown")).outline
    assert read_text(b"# T", Hints(filename="T.MARKDOWN")).outline
    assert not read_text(b"# T", PLAIN).outline


def test_front_matter_gives_the_title_and_is_not_text() -> None:
    extraction = read_text(b"---\ntags: [a]\ntitle: 'On: notes'\n---\nbody\n", MARKDOWN)
    assert extraction == Extraction("On: notes", read_text(b"body", MARKDOWN).fragments)


def test_markdown_links_go_where_they_are_allowed_to() -> None:
    html = (
        read_text(b"[a](javascript:x) [b](data:text/html,x) [c](/d) ![p](q.png)", MARKDOWN).fragments[0].html
        or ""
    )
    assert "<a" not in html
    assert "<img" not in html
    html = read_text(b"[c](/d)", Hints("https://e.org/x/y.md", "text/markdown")).fragments[0].html or ""
    assert 'href="https://e.org/d"' in html


def test_long_markdown_is_cut_between_blocks_and_its_links_still_lead() -> None:
    body = "\n\n".join(f"paragraph {n} " + "word " * 150 for n in range(120))
    extraction = read_text(f"[down](#last)\n\n{body}\n\n# Last\n".encode(), MARKDOWN)
    last = len(extraction.fragments) - 1
    assert last > 2
    assert extraction.outline == (Heading("Last", 1, f"f{last}-last"),)
    assert f'href="#f{last}-last"' in (extraction.fragments[0].html or "")
    assert max(len(fragment.text) for fragment in extraction.fragments) < 2 * FRAGMENT_LENGTH


def test_a_fragment_without_text_takes_no_position(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nexus.extract.text.FRAGMENT_LENGTH", 10)
    extraction = read_text(b"first of the paragraphs\n\n![only a picture](x.png)\n\n# Last", MARKDOWN)
    assert [fragment.text for fragment in extraction.fragments] == ["first of the paragraphs", "Last"]
    assert extraction.outline == (Heading("Last", 1, "f1-last"),)
    with pytest.raises(EmptyContent):
        read_text(b"![only a picture](x.png)", MARKDOWN)


def test_damaged_markdown_is_read_or_refused() -> None:
    good = b"# T\n\n- a\n  - b\n\n> q [l](x)\n\n```\ncode\n```\n|a|b|\n|-|-|\n" * 3
    source = random.Random(5)
    for _ in range(200):
        at = source.randrange(len(good))
        bad = (
            good[:at]
            + bytes([source.randrange(256)]) * source.randrange(4)
            + good[at + source.randrange(9) :]
        )
        try:
            extraction = read_text(bad, source.choice([MARKDOWN, PLAIN]))
        except ExtractionFailed:
            continue
        assert all(fragment.text for fragment in extraction.fragments)


def test_a_page_of_text_may_be_shown_as_it_is_cleaned() -> None:
    fragment = read_text(b"a *b*", MARKDOWN).fragments[0]
    assert markup.clean_markup(fragment.html or "", None, 0)[0] == fragment
