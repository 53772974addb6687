"""Reads plain text and Markdown."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import PurePath
from urllib.parse import quote

from charset_normalizer import from_bytes
from markdown_it import MarkdownIt
from markdown_it.token import Token

from nexus.errors import EmptyContent, TextUnreadable
from nexus.extract import Extraction, Fragment, Heading, Hints, markup

#: About as much as is read at one sitting; a paragraph is only cut where it alone is longer.
FRAGMENT_LENGTH = 20_000
LONGEST_TITLE = 120
MARKDOWN_ENDINGS = (".md", ".markdown")
MARKDOWN_TYPE = "text/markdown"

BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
#: A declared charset is believed if it is one that texts are written in.
CHARSET = re.compile(
    r"ascii|utf-(?:8|16|32)(?:-[lb]e)?|iso8859-\d+|cp\d+|koi8-[rut]|mac-\w+|gbk?\d*|hz|big5\w*|"
    r"(?:shift_jis|euc_j\w+|iso2022_\w+)(?:_\w+)?|euc_kr|johab|tis-620|ptcp154|kz1048"
)
#: Browsers read these as their Windows cousins.
COUSINS = {"ascii": "cp1252", "iso8859-1": "cp1252", "iso8859-9": "cp1254", "tis-620": "cp874"}
#: So little says nothing about a charset, and is what most systems of the West have written, if it can be.
SHORT = 400
#: Letters with accents among those without: two of them in a row are seldom, three are another alphabet.
WESTERN = re.compile(
    "(?:[\x00-\x7f«»„“”‘’–—…€£§°¡¿]|[àáâãäåæçèéêëìíîïñòóôõöøœùúûüÿßÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØŒÙÚÛÜŸ]{1,2}(?![À-ÿŒœŸ]))+"
)
CONTROL = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\ufffe\uffff]")
NEWLINE = re.compile(r"\r\n?|[\f\u2028\u2029]")
PARAGRAPH = re.compile(r"\n{2,}")
FRONT_MATTER = re.compile(r"---\n(.{0,20000}?)\n(?:---|\.\.\.)(?:\n|\Z)", re.DOTALL)
FRONT_TITLE = re.compile(r"^title:\s*(['\"]?)(.+?)\1\s*$", re.MULTILINE)
NOT_IN_SLUG = re.compile(r"[^\w\- ]")
#: One control character in so many is dirt; more of them are no text.
DIRT = 100

_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])


def read(data: bytes, hints: Hints) -> Extraction:
    text = NEWLINE.sub("\n", _decode(data, hints.charset))
    text = CONTROL.sub("", text)
    if not text.strip():
        raise EmptyContent
    return _read_markdown(text, hints) if _is_markdown(hints) else _read_plain(text, hints)


def _is_markdown(hints: Hints) -> bool:
    name = (hints.filename or "").lower()
    return name.endswith(MARKDOWN_ENDINGS) or hints.content_type == MARKDOWN_TYPE


def _decode(data: bytes, declared: str | None) -> str:
    """As browsers do: the mark at the beginning, then UTF-8, then what was declared, then a guess."""
    text = _marked(data)
    if text is None and b"\x00" in data:
        raise TextUnreadable
    if text is None:
        text = _try(data, "utf-8") or _declared(data, declared) or _guessed(data)
    if (len(CONTROL.findall(text)) - 1) * DIRT > len(text):
        raise TextUnreadable
    return text


def _marked(data: bytes) -> str | None:
    for mark, charset in BOMS:
        if data.startswith(mark):
            return data[len(mark) :].decode(charset, "replace")
    return None


def _try(data: bytes, charset: str) -> str | None:
    try:
        return data.decode(charset)
    except UnicodeDecodeError:
        return None


def charset(name: str) -> str | None:
    """What Python calls a charset that texts are written in."""
    try:
        known = codecs.lookup(name).name
    except (LookupError, ValueError):
        return None
    return COUSINS.get(known, known) if CHARSET.fullmatch(known) else None


def _declared(data: bytes, declared: str | None) -> str | None:
    name = charset(declared or "")
    return _try(data, name) if name else None


def _guessed(data: bytes) -> str:
    if len(data) < SHORT and (text := _try(data, "cp1252")) and WESTERN.fullmatch(text):
        return text
    best = from_bytes(data).best()
    if best is None:
        raise TextUnreadable
    return str(best)


def _read_plain(text: str, hints: Hints) -> Extraction:
    lines = [line.rstrip() for line in text.split("\n")]
    fragments = tuple(map(Fragment, _pack(_paragraphs("\n".join(lines).strip("\n")))))
    first = next(line.strip() for line in lines if line)
    return Extraction(_title(first, hints), fragments)


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in PARAGRAPH.split(text):
        rest = paragraph
        while len(rest) > FRAGMENT_LENGTH:
            cut = _last_break(rest)
            yield rest[:cut].rstrip()
            rest = rest[cut:].lstrip("\n ")
        yield rest


def _last_break(text: str) -> int:
    """Where to cut a paragraph that is too long: after a line, a sentence, a word, or anywhere."""
    for mark in ("\n", ". ", " "):
        cut = text.rfind(mark, FRAGMENT_LENGTH // 2, FRAGMENT_LENGTH)
        if cut >= 0:
            return cut + 1
    return FRAGMENT_LENGTH


def _pack(paragraphs: Iterable[str]) -> Iterator[str]:
    packed: list[str] = []
    length = 0
    for paragraph in paragraphs:
        if packed and length + len(paragraph) > FRAGMENT_LENGTH:
            yield "\n\n".join(packed)
            packed, length = [], 0
        packed.append(paragraph)
        length += len(paragraph) + 2
    yield "\n\n".join(packed)


def _read_markdown(text: str, hints: Hints) -> Extraction:
    front = FRONT_MATTER.match(text)
    named = front and FRONT_TITLE.search(front[1])
    groups = list(_groups(_MARKDOWN.parse(text[front.end() :] if front else text)))
    fragments, outline = _clean(groups, hints)
    while not all(fragment.text for fragment in fragments):
        groups = [group for group, fragment in zip(groups, fragments, strict=True) if fragment.text]
        fragments, outline = _clean(groups, hints)
    if not fragments:
        raise EmptyContent
    first = outline[0].title if outline else fragments[0].text.split("\n")[0]
    return Extraction(_title(named[2] if named else first, hints), tuple(fragments), outline=tuple(outline))


def _clean(groups: list[list[Token]], hints: Hints) -> tuple[list[Fragment], list[Heading]]:
    anchors = _name_headings(groups)

    def link(href: str) -> str | None:
        return anchors.get(href) if href.startswith("#") else markup.outward(href, hints.url)

    fragments: list[Fragment] = []
    outline: list[Heading] = []
    for position, group in enumerate(groups):
        html = _MARKDOWN.renderer.render(group, _MARKDOWN.options, {})
        fragment, headings = markup.clean(html, hints.url, position, link=link)
        fragments.append(fragment)
        outline += headings
    return fragments, outline


def _groups(tokens: list[Token]) -> Iterator[list[Token]]:
    """The blocks of a text, as many together as make a fragment."""
    group: list[Token] = []
    length = 0
    for token in tokens:
        if token.level == 0 and token.nesting >= 0 and length > FRAGMENT_LENGTH:
            yield group
            group, length = [], 0
        group.append(token)
        length += len(token.content)
    if group:
        yield group


def _name_headings(groups: list[list[Token]]) -> dict[str, str]:
    """Give every heading the id that writers of Markdown link to; where each of these links leads."""
    anchors: dict[str, str] = {}
    for position, group in enumerate(groups):
        for heading, content in pairwise(group):
            if heading.type == "heading_open":
                slug = NOT_IN_SLUG.sub("", content.content.lower()).strip().replace(" ", "-")
                heading.attrSet("id", slug)
                anchors.setdefault(f"#{quote(slug)}", f"#f{position}-{markup.safe_id(slug)}")
    return anchors


def _title(first: str, hints: Hints) -> str | None:
    """The first line if it is short, or the name of the file."""
    title = " ".join(first.split())
    if 0 < len(title) <= LONGEST_TITLE:
        return title
    return PurePath(hints.filename or "").stem or None
