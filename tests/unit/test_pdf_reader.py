"""Pages of a PDF become fragments; unreadable PDFs fail with the reason."""

from __future__ import annotations

import random

import pytest

from nexus.errors import ExtractionFailed, PdfDamaged, PdfEncrypted, PdfNoText
from nexus.extract import Extraction, Facts, Fragment, Heading, Hints, pdf
from nexus.extract.pdf import read_pdf
from tests.kit import documents

NOTHING = Hints()
RUNNING = (
    "The first line of a paragraph is as long as the others of it, and the text\n"
    "goes on in the second line, which is of about the same length as the first\n"
    "until it ends."
)


def page_texts(data: bytes) -> list[str]:
    return [fragment.text for fragment in read_pdf(data, NOTHING).fragments]


def title_of(title: str, hints: Hints = NOTHING) -> str | None:
    return read_pdf(documents.pdf("text", info={"Title": title}), hints).title


def published(date: str) -> str | None:
    return read_pdf(documents.pdf("text", info={"CreationDate": date}), NOTHING).facts.published


def test_each_page_with_text_is_a_fragment_that_names_its_page() -> None:
    extraction = read_pdf(documents.pdf("one <1>", "", "three"), NOTHING)
    assert extraction == Extraction(
        None,
        (
            Fragment("one <1>", '<p id="f0-page1">one &lt;1&gt;</p>'),
            Fragment("three", '<p id="f1-page3">three</p>'),
        ),
    )


def test_lines_of_running_text_are_one_paragraph() -> None:
    assert page_texts(documents.pdf(f"A heading\n{RUNNING}\n{RUNNING}")) == [
        "\n\n".join(["A heading", *[RUNNING.replace("\n", " ")] * 2])
    ]


def test_short_lines_of_a_pdf_stay_lines() -> None:
    fragment = read_pdf(documents.pdf("Name\nType\nDefault"), NOTHING).fragments[0]
    assert fragment == Fragment("Name\nType\nDefault", '<p id="f0-page1">Name<br>\nType<br>\nDefault</p>')


def test_items_of_a_list_begin_their_own_line() -> None:
    long = "a line of the list that is quite as long as the next one is"
    assert "\n\n- " in page_texts(documents.pdf(f"- {long}\n- {long}"))[0]


def test_a_word_divided_at_the_end_of_a_line_is_whole_again() -> None:
    assert page_texts(documents.pdf("an exam-\nple of a hyphen, and one of Jean-\nPaul")) == [
        "an example of a hyphen, and one of Jean-Paul"
    ]


@pytest.mark.parametrize(
    ("raw", "line"),
    [
        ("co\u2010\noperate", "cooperate"),
        ("soft\u00ad\nware", "software"),
        ("non\u2010\nEuropean", "non-European"),
        ("well\u2010known", "well\u2010known"),
    ],
)
def test_hyphens_of_typesetters_at_line_ends_are_joined(raw: str, line: str) -> None:
    assert pdf._lines(raw) == [line]


def test_printed_page_numbers_are_no_paragraphs() -> None:
    pages = {
        0: [["Once."], ["7"]],
        1: [["– 8 –"], ["Upon."]],
        2: [["A time."], ["Page 9 of 20"]],
        3: [["In"], ["1990"]],
    }
    kept = pdf.without_page_numbers(pages)
    assert kept == {0: [["Once."]], 1: [["Upon."]], 2: [["A time."]], 3: [["In"], ["1990"]]}


@pytest.mark.parametrize("layer", ["% & % ' ( & )", "?@''/ ?/&'3 ?&'@", "\xb4\xbf\xa2\xb0\xa3"])
def test_a_text_layer_of_signs_is_no_text(layer: str) -> None:
    with pytest.raises(PdfNoText):
        read_pdf(documents.pdf(layer), NOTHING)


def test_a_verdict_does_not_depend_on_the_file_read_before() -> None:
    for _ in range(2):
        with pytest.raises(PdfEncrypted):
            read_pdf(documents.locked_pdf(), NOTHING)
        for damaged in (b"", b"%PDF-1.7\n", documents.pdf()):
            with pytest.raises(PdfDamaged):
                read_pdf(damaged, NOTHING)


def test_bookmarks_are_the_outline_and_lead_to_the_next_page_with_text() -> None:
    marks = [("One", 0), ("  ", 0), ("Two", 1), ("Three", 2)]
    extraction = read_pdf(documents.pdf("one", "", "three", bookmarks=marks), NOTHING)
    assert extraction.outline == (Heading("One", 1, "f0"), Heading("Two", 1, "f1"), Heading("Three", 1, "f1"))


def test_metadata_of_a_pdf_is_read() -> None:
    info = {"Title": " A  title", "Author": "A. Uploader", "CreationDate": "D:20240102030405+02'30'"}
    extraction = read_pdf(documents.pdf("text", info=info, language="de-DE"), NOTHING)
    assert extraction.title == "A title"
    assert extraction.facts == Facts(
        byline="A. Uploader", published="2024-01-02T03:04:05+02:30", language="de-DE"
    )


@pytest.mark.parametrize(
    "title",
    [
        "",
        "untitled",
        "Untitled-1",
        "Microsoft Word - letter.doc",
        "thesis.tex",
        "Document1",
        "---",
        "Scan.PDF",
        "paper",
    ],
)
def test_a_title_that_a_program_generated_is_ignored(title: str) -> None:
    assert title_of(title, Hints(filename="paper")) is None


@pytest.mark.parametrize(
    ("date", "expected"),
    [
        ("D:2024", "2024-01-01"),
        ("D:20240203", "2024-02-03"),
        ("20240203040506", "2024-02-03T04:05:06"),
        ("D:20240203040506Z", "2024-02-03T04:05:06+00:00"),
        ("D:20240203040506-08'00'", "2024-02-03T04:05:06-08:00"),
        ("D:20241399", None),
        ("D:20240203040506+99'99'", None),
        ("yesterday", None),
        ("", None),
    ],
)
def test_a_date_is_read_or_left_out(date: str, expected: str | None) -> None:
    assert published(date) == expected


def test_a_pdf_with_a_password_is_reported_as_locked() -> None:
    with pytest.raises(PdfEncrypted):
        read_pdf(documents.locked_pdf(), NOTHING)


def test_a_pdf_without_text_is_reported() -> None:
    with pytest.raises(PdfNoText):
        read_pdf(documents.pdf("", ""), NOTHING)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"%PDF-1.7\n",
        b"%PDF-1.7\n" + random.Random(2).randbytes(5000),
        b"not a PDF",
        documents.pdf("text")[:300],
        documents.pdf("text").partition(b"xref")[0],
        documents.pdf(),
        documents.epub({"a.xhtml": documents.chapter("<p>x</p>")}),
    ],
)
def test_a_damaged_pdf_is_reported_as_damaged(data: bytes) -> None:
    with pytest.raises(PdfDamaged):
        read_pdf(data, Hints(filename="paper.pdf", content_type="application/pdf"))


def test_a_pdf_whose_index_is_wrong_is_read() -> None:
    whole = documents.pdf("one", "two", "three")
    assert page_texts(whole.replace(b"startxref\n", b"startxref\n9")) == ["one", "two", "three"]


def test_a_pdf_with_fewer_pages_than_stated_is_read() -> None:
    assert page_texts(documents.pdf("one").replace(b"/Count 1>>", b"/Count 9>>")) == ["one"]


def test_a_thousand_pages_are_read() -> None:
    pages = [f"page {n}\n{RUNNING}" for n in range(1000)]
    marks = [(f"mark {n}", n) for n in range(0, 1000, 10)]
    extraction = read_pdf(documents.pdf(*pages, bookmarks=marks), NOTHING)
    assert len(extraction.fragments) == 1000
    assert extraction.outline[-1] == Heading("mark 990", 1, "f990")


def test_damaged_pdfs_are_read_or_refused() -> None:
    good = documents.pdf(RUNNING, "two", info={"Title": "T"}, bookmarks=[("One", 0), ("Two", 1)])
    source = random.Random(6)
    for _ in range(300):
        bad = bytearray(good)
        for _ in range(source.randrange(1, 6)):
            at = source.randrange(len(bad))
            bad[at : at + source.randrange(4)] = source.randbytes(source.randrange(4))
        try:
            extraction = read_pdf(bytes(bad), NOTHING)
        except ExtractionFailed:
            continue
        assert all(fragment.text for fragment in extraction.fragments)
