"""Reads EPUBs: a fragment for each chapter, the table of contents as the outline, and pictures as assets."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import unquote

from nexus.errors import EmptyContent, EpubDamaged
from nexus.extract import Extraction, Fragment, Heading, Hints, markup
from nexus.extract.epub.archive import Archive, resolve_path
from nexus.extract.epub.chapters import Chapter, load_chapter
from nexus.extract.epub.package import ContentsLine, Package, open_package
from nexus.extract.epub.pictures import Pictures


def read_epub(data: bytes, hints: Hints) -> Extraction:  # noqa: ARG001 - a book needs no hints
    """Raises EpubDamaged, EpubDrm, EpubTooLarge or EmptyContent."""
    archive = Archive(data)
    package = open_package(archive)
    loaded = [load_chapter(archive, item) for item in package.spine()]
    found = [chapter for chapter in loaded if chapter]
    if not found:
        raise EpubDamaged
    pictures = Pictures(archive)
    book = _clean(found, pictures)
    return _extraction(archive, package, book, pictures)


def _clean(found: list[Chapter], pictures: Pictures) -> _Book:
    """Clean every chapter. If one turns out to have no text, start over with it joined to its neighbour."""
    while any(chapter.has_text for chapter in found):
        book = _Book(found, pictures)
        if not book.blank:
            return book
        found = [replace(c, has_text=False) if c.path in book.blank else c for c in found]
    return _picture_book(found, pictures)


def _picture_book(found: list[Chapter], pictures: Pictures) -> _Book:
    """Number the pages of a book that has only pictures, such as a comic, so that each has a text to find it by."""
    pages = [
        replace(
            chapter,
            html=f"<figure>{chapter.html}<figcaption>Page {number}</figcaption></figure>",
            has_text=True,
        )
        for number, chapter in enumerate(found, 1)
    ]
    book = _Book(pages, pictures)
    if not pictures.assets():
        raise EmptyContent
    return book


class _Book:
    """The cleaned chapters. A chapter with only pictures is shown at the beginning of the next one."""

    def __init__(self, found: list[Chapter], pictures: Pictures) -> None:
        self.chapters = {chapter.path: chapter for chapter in found}
        self.positions = _positions(found)
        self.blank: set[str] = set()
        self.headings: list[Heading] = []
        self._pictures = pictures
        shown: list[list[Fragment]] = [[] for _ in range(max(self.positions.values()) + 1)]
        for chapter in found:
            shown[self.positions[chapter.path]].append(self._fragment(chapter))
        self.fragments = tuple(map(_joined, shown))

    def anchor(self, path: str, name: str) -> str | None:
        """Return the anchor for a link within the book: the id if it exists, else the chapter."""
        chapter = self.chapters.get(path)
        if chapter is None:
            return None
        for spelling in (name, unquote(name)):
            if spelling in chapter.ids:
                return f"f{self.positions[path]}-{markup.safe_id(spelling)}"
        return f"f{self.positions[path]}"

    def _fragment(self, chapter: Chapter) -> Fragment:
        def link(href: str) -> str | None:
            path = resolve_path(chapter.path, href) if href[:1] != "#" else chapter.path
            target = path and self.anchor(path, href.partition("#")[2])
            return f"#{target}" if target else markup.outbound_url(href)

        def asset(source: str) -> str | None:
            return self._pictures.name(resolve_path(chapter.path, source))

        fragment, headings = markup.clean_markup(
            chapter.html, None, self.positions[chapter.path], asset, link
        )
        self.headings += headings
        if chapter.has_text and not fragment.text:
            self.blank.add(chapter.path)
        return fragment


def _positions(found: list[Chapter]) -> dict[str, int]:
    """Return the position of each chapter's fragment. Only chapters with text have one of their own."""
    positions: dict[str, int] = {}
    last = sum(chapter.has_text for chapter in found) - 1
    position = 0
    for chapter in found:
        positions[chapter.path] = min(position, last)
        position += chapter.has_text
    return positions


def _joined(parts: list[Fragment]) -> Fragment:
    return Fragment("".join(part.text for part in parts), "".join(part.html or "" for part in parts))


def _extraction(archive: Archive, package: Package, book: _Book, pictures: Pictures) -> Extraction:
    cover = package.cover()
    cover_name = pictures.name(cover.path) if cover else None
    facts = replace(package.facts(), lead_image=f"asset:{cover_name}" if cover_name else None)
    outline = _outline(package.contents(archive), book)
    return Extraction(package.title(), book.fragments, facts, outline, pictures.assets())


def _outline(lines: list[ContentsLine], book: _Book) -> tuple[Heading, ...]:
    """Take the outline from the table of contents, else the headings, else the titles of the chapters."""
    anchors = ((line, book.anchor(line.path, line.name)) for line in lines)
    found = [Heading(line.title, line.level, anchor) for line, anchor in anchors if anchor]
    titled = (chapter for chapter in book.chapters.values() if chapter.title and chapter.has_text)
    titles = (Heading(chapter.title, 1, f"f{book.positions[chapter.path]}") for chapter in titled)
    return tuple(found or book.headings or titles)
