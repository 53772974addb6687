"""Reads plain text and Markdown."""

from __future__ import annotations

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
from nexus.extract.charsets import codec_for, decode_marked

#: About as much as is read in one sitting. A paragraph is cut only if it is longer by itself.
FRAGMENT_LENGTH = 20_000
LONGEST_TITLE = 120
MARKDOWN_ENDINGS = (".md", ".markdown")
MARKDOWN_TYPE = "text/markdown"

#: A detector can't tell the charset of so few bytes. If they can be Western text, they are taken for it.
SHORT = 400
#: Western text: accented letters stand among plain ones, seldom two in a row. Three in a row are another alphabet.
WESTERN = re.compile(
    "(?:[\x00-\x7f«»„“”‘’–—…€£§°¡¿]|[àáâãäåæçèéêëìíîïñòóôõöøœùúûüÿßÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØŒÙÚÛÜŸ]{1,2}(?![À-ÿŒœŸ]))+"
)
CONTROL = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\ufffe\uffff]")
NEWLINE = re.compile(r"\r\n?|[\f\u2028\u2029]")
PARAGRAPH = re.compile(r"\n{2,}")
FRONT_MATTER = re.compile(r"---\n(.{0,20000}?)\n(?:---|\.\.\.)(?:\n|\Z)", re.DOTALL)
FRONT_TITLE = re.compile(r"^title:\s*(['\"]?)(.+?)\1\s*$", re.MULTILINE)
NOT_IN_SLUG = re.compile(r"[^\w\- ]")
#: One control character in this many is dirt. With more of them it is not text.
DIRT = 100

_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])


def read_text(data: bytes, hints: Hints) -> Extraction:
    """Raises TextUnreadable or EmptyContent."""
    text = NEWLINE.sub("\n", _decode(data, hints.charset))
    text = CONTROL.sub("", text)
    if not text.strip():
        raise EmptyContent
    return _read_markdown(text, hints) if _is_markdown(hints) else _read_plain(text, hints)


def _is_markdown(hints: Hints) -> bool:
    name = (hints.filename or "").lower()
    return name.endswith(MARKDOWN_ENDINGS) or hints.content_type == MARKDOWN_TYPE


def _decode(data: bytes, declared: str | None) -> str:
    """Decode as browsers do: by the byte order mark, then as UTF-8, then as declared, then by a guess."""
    text = decode_marked(data)
    if text is None and b"\x00" in data:
        raise TextUnreadable
    if text is None:
        text = _try(data, "utf-8") or _declared(data, declared) or _guessed(data)
    if (len(CONTROL.findall(text)) - 1) * DIRT > len(text):
        raise TextUnreadable
    return text


def _try(data: bytes, charset: str) -> str | None:
    try:
        return data.decode(charset)
    except UnicodeDecodeError:
        return None


def _declared(data: bytes, declared: str | None) -> str | None:
    codec = codec_for(declared)
    return _try(data, codec) if codec else None


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
    """Return where to cut a paragraph that is too long: after a line, else a sentence, else a word, else anywhere."""
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
        return anchors.get(href) if href.startswith("#") else markup.outbound_url(href, hints.url)

    fragments: list[Fragment] = []
    outline: list[Heading] = []
    for position, group in enumerate(groups):
        html = _MARKDOWN.renderer.render(group, _MARKDOWN.options, {})
        fragment, headings = markup.clean_markup(html, hints.url, position, link=link)
        fragments.append(fragment)
        outline += headings
    return fragments, outline


def _groups(tokens: list[Token]) -> Iterator[list[Token]]:
    """Group the blocks of a text into fragments."""
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
    """Give every heading the id that Markdown authors link to, and return where each such link leads."""
    anchors: dict[str, str] = {}
    for position, group in enumerate(groups):
        for heading, content in pairwise(group):
            if heading.type == "heading_open":
                slug = NOT_IN_SLUG.sub("", content.content.lower()).strip().replace(" ", "-")
                heading.attrSet("id", slug)
                anchors.setdefault(f"#{quote(slug)}", f"#f{position}-{markup.safe_id(slug)}")
    return anchors


def _title(first: str, hints: Hints) -> str | None:
    """Return the first line if it is short, else the name of the file."""
    title = " ".join(first.split())
    if 0 < len(title) <= LONGEST_TITLE:
        return title
    return PurePath(hints.filename or "").stem or None
