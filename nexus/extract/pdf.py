"""Reads PDFs: a fragment for each page that has text, and the bookmarks as the outline."""

from __future__ import annotations

import ctypes
import re
import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone
from html import escape
from itertools import islice

import pypdfium2
import pypdfium2.raw

from nexus.errors import PdfDamaged, PdfEncrypted, PdfNoText
from nexus.extract import Extraction, Facts, Fragment, Heading, Hints

MOST_PAGES = 20_000
MOST_BOOKMARKS = 10_000
LONGEST_TITLE = 300
LOWEST_LEVEL = 6
LOCKED = frozenset({pypdfium2.raw.FPDF_ERR_PASSWORD, pypdfium2.raw.FPDF_ERR_SECURITY})

#: A hyphen at the end of a line: PDFium's own sign for it, or a character that a typesetter put there. The word
#: continues after it.
HYPHEN = re.compile("[\x02\ufffe]\n?|(?<=\\w)[\xad\u2010]\n(?=\\w)")
HYPHEN_THAT_STAYS = re.compile("(?:[\x02\ufffe]\n?|(?<=\\w)[\xad\u2010]\n)(?=[A-Z0-9])")
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\ufeff\ufffe\uffff]")
LIGATURES = str.maketrans(
    {"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st", "\xad": None}
)
ITEM = re.compile(r"[•●▪■◦‣·*–—-]\s|\(?\w{1,3}[.)]\s")
SENTENCE_END = re.compile(r"[.!?:;…][\"'”’»)\]]*$")
#: A line at least this long, and at least this share of the longest line near it, continues on the next one.
RUNNING_LENGTH = 40
RUNNING_SHARE = 0.7
ENDING_SHARE = 0.9
NEIGHBOURS = 6

#: A printed page number, alone on its line.
PAGE_NUMBER = re.compile(
    r"(?:page|seite|p\.|s\.)?[\s–—|·-]*(\d{1,5})(?:\s*(?:of|von|/)\s*\d{1,5})?[\s–—|·-]*", re.IGNORECASE
)
#: How much of a text is letters and digits, and how much of it is looked at.
LEAST_LETTERS = 0.4
SAMPLE = 20_000

DATE = re.compile(
    r"(?:D:)?(\d{4})(\d{2})?(\d{2})?(\d{2})?(\d{2})?(\d{2})?(?:([Zz+-])(?:(\d{2})'?(\d{2})?)?)?"
)
#: What programs write in place of a title.
NO_TITLE = re.compile(
    r"untitled.*|microsoft .* - .*|powerpoint presentation|(?:document|slide|book|layout|doc|print)\s?\d*|"
    r".*\.(?:docx?|pdf|pptx?|xlsx?|indd|tex|dvi|ps|eps|qxd|pmd|rtf|odt|html?|txt|cdr|ai|fm|jpe?g|png|tiff?)|\W*",
    re.IGNORECASE | re.DOTALL,
)


def read_pdf(data: bytes, hints: Hints) -> Extraction:
    """Raises PdfEncrypted, PdfDamaged or PdfNoText."""
    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        locked = getattr(error, "err_code", None) in LOCKED
        raise (PdfEncrypted if locked else PdfDamaged) from error
    with closing(document):
        return _read(document, hints)


def _read(document: pypdfium2.PdfDocument, hints: Hints) -> Extraction:
    texts = {index: text for index, text in without_page_numbers(dict(_pages(document))).items() if text}
    if not texts or not _is_language(texts.values()):
        raise PdfNoText
    fragments = tuple(
        _fragment(paragraphs, position, index + 1)
        for position, (index, paragraphs) in enumerate(texts.items())
    )
    info = document.get_metadata_dict()
    return Extraction(
        _title(info.get("Title", ""), hints),
        fragments,
        Facts(
            byline=_line(info.get("Author", "")),
            published=_date(info.get("CreationDate", "")),
            language=_language(document),
        ),
        _outline(document, list(texts)),
    )


def _pages(document: pypdfium2.PdfDocument) -> Iterator[tuple[int, list[list[str]]]]:
    """Yield the paragraphs of each page. Damaged pages are skipped; if none can be opened, the file is damaged."""
    opened = 0
    for index in range(min(len(document), MOST_PAGES)):
        try:
            with closing(document[index]) as page, closing(page.get_textpage()) as text:
                raw = text.get_text_bounded()
        except pypdfium2.PdfiumError:
            continue
        opened += 1
        yield index, _paragraphs(_lines(raw))
    if not opened:
        raise PdfDamaged


def without_page_numbers(pages: dict[int, list[list[str]]]) -> dict[int, list[list[str]]]:
    """Drop the printed number at the top or the bottom of each page, if it goes up with the pages."""
    found = {
        (index, place): number - index
        for index, paragraphs in pages.items()
        for place in {0, len(paragraphs) - 1}
        if paragraphs and (number := _page_number(paragraphs[place])) is not None
    }
    steps = Counter(found.values())
    dropped = {where for where, step in found.items() if steps[step] > 1}
    return {
        index: [one for place, one in enumerate(paragraphs) if (index, place) not in dropped]
        for index, paragraphs in pages.items()
    }


def _page_number(lines: list[str]) -> int | None:
    found = PAGE_NUMBER.fullmatch(lines[0]) if len(lines) == 1 else None
    return int(found[1]) if found else None


def _is_language(pages: Iterable[list[list[str]]]) -> bool:
    """Whether it reads like language. A font without a table of its characters gives signs in place of letters."""
    text = "".join(line for paragraphs in pages for lines in paragraphs for line in lines)
    signs = [letter for letter in text[:SAMPLE] if not letter.isspace()]
    letters = sum(letter.isalnum() or unicodedata.category(letter)[0] == "M" for letter in signs)
    return letters >= LEAST_LETTERS * len(signs)


def _lines(raw: str) -> list[str]:
    text = raw.replace("\r\n", "\n").replace("\r", "\n")
    text = HYPHEN.sub("", HYPHEN_THAT_STAYS.sub("-", text))
    text = CONTROL.sub("", text).translate(LIGATURES)
    return [" ".join(line.split()) for line in text.split("\n")]


def _paragraphs(lines: list[str]) -> list[list[str]]:
    """Group lines into paragraphs. Running text becomes one line; text set line by line keeps its lines."""
    paragraphs: list[list[str]] = []
    previous = ""
    running = False
    for index, line in enumerate(lines):
        if not line:
            previous = ""
            continue
        full = _is_full(line, lines, index)
        if previous and _goes_on(previous, line, lines, index - 1):
            paragraphs[-1][-1] += f" {line}"
            running = True
        elif previous and not running and not full:
            paragraphs[-1].append(line)
        else:
            paragraphs.append([line])
            running = full
        previous = line
    return paragraphs


def _goes_on(line: str, following: str, lines: list[str], index: int) -> bool:
    """Whether the text of a line continues on the next one."""
    if ITEM.match(following):
        return False
    ended = SENTENCE_END.search(line) is not None
    if _is_full(line, lines, index, ENDING_SHARE if ended else RUNNING_SHARE):
        return True
    return not ended and len(line) >= RUNNING_LENGTH and following[0].islower()


def _is_full(line: str, lines: list[str], index: int, share: float = RUNNING_SHARE) -> bool:
    around = lines[max(0, index - NEIGHBOURS) : index + NEIGHBOURS + 1]
    return len(line) >= max(RUNNING_LENGTH, share * max(map(len, around)))


def _fragment(paragraphs: list[list[str]], position: int, page: int) -> Fragment:
    """The first id in the html names the page: positions can't, because pages without text are left out."""
    shown = ["<br>\n".join(escape(line, quote=False) for line in lines) for lines in paragraphs]
    html = "\n\n".join(f"<p>{paragraph}</p>" for paragraph in shown)
    named = html.replace("<p>", f'<p id="f{position}-page{page}">', 1)
    return Fragment("\n\n".join("\n".join(lines) for lines in paragraphs), named)


def _outline(document: pypdfium2.PdfDocument, pages: list[int]) -> tuple[Heading, ...]:
    outline = []
    for mark in islice(document.get_toc(), MOST_BOOKMARKS):
        title = _line(mark.get_title())
        destination = mark.get_dest()
        index = destination and destination.get_index()
        if title and index is not None:
            level = min(mark.level + 1, LOWEST_LEVEL)
            outline.append(Heading(title, level, f"f{_position(pages, index)}"))
    return tuple(outline)


def _position(pages: list[int], index: int) -> int:
    """Return the position of a page's fragment, or of the next page that has text."""
    return min(bisect_left(pages, index), len(pages) - 1)


def _line(text: str) -> str | None:
    return " ".join(CONTROL.sub("", text).split())[:LONGEST_TITLE] or None


def _title(text: str, hints: Hints) -> str | None:
    title = _line(text)
    return None if title is None or NO_TITLE.fullmatch(title) or title == hints.filename else title


def _date(text: str) -> str | None:
    """Return the day as an ISO date, with the time if that is complete."""
    found = DATE.match(text.strip())
    if not found:
        return None
    year, month, day, hour, minute, second = (int(part) if part else None for part in found.groups()[:6])
    try:
        moment = datetime(year or 0, month or 1, day or 1, hour or 0, minute or 0, second or 0, tzinfo=UTC)
        if hour is None or minute is None:
            return moment.date().isoformat()
        return moment.replace(tzinfo=_zone(found[7], found[8], found[9])).isoformat()
    except ValueError:
        return None


def _zone(sign: str | None, hours: str | None, minutes: str | None) -> timezone | None:
    if sign is None:
        return None
    ahead = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    return timezone(-ahead if sign == "-" else ahead)


def _language(document: pypdfium2.PdfDocument) -> str | None:
    size = pypdfium2.raw.FPDFCatalog_GetLanguage(document, None, 0)
    if not 2 < size < 100:
        return None
    buffer = (ctypes.c_ushort * (size // 2))()
    pypdfium2.raw.FPDFCatalog_GetLanguage(document, buffer, size)
    return bytes(buffer).decode("utf-16-le", "ignore").rstrip("\x00") or None
