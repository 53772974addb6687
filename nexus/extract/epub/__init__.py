"""Reads EPUBs: chapters as fragments in reading order, the table of contents as the outline, pictures as assets."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import unquote

from nexus.errors import EmptyContent, EpubDamaged
from nexus.extract import Extraction, Fragment, Heading, Hints, markup
from nexus.extract.epub import chapters
from nexus.extract.epub.archive import Archive, resolve
from nexus.extract.epub.chapters import Chapter
from nexus.extract.epub.package import Line, Package, open_package
from nexus.extract.epub.pictures import Pictures


def read(data: bytes, hints: Hints) -> Extraction:  # noqa: ARG001 - a book says all of itself
    archive = Archive(data)
    package = open_package(archive)
    loaded = [chapters.load(archive, item) for item in package.spine()]
    found = [chapter for chapter in loaded if chapter]
    if not found:
        raise EpubDamaged
    pictures = Pictures(archive)
    book = _clean(found, pictures)
    return _extraction(archive, package, book, pictures)


def _clean(found: list[Chapter], pictures: Pictures) -> _Book:
    """Clean every chapter. One that turns out to have no text joins its neighbour, and the rest move up."""
    while any(chapter.has_text for chapter in found):
        book = _Book(found, pictures)
        if not book.blank:
            return book
        found = [replace(c, has_text=False) if c.path in book.blank else c for c in found]
    raise EmptyContent


class _Book:
    """The chapters, cleaned. A chapter of pictures alone is shown at the beginning of the next one."""

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
        """Where a link to a place in the book leads: the place, or the chapter it would be in."""
        chapter = self.chapters.get(path)
        if chapter is None:
            return None
        for spelling in (name, unquote(name)):
            if spelling in chapter.ids:
                return f"f{self.positions[path]}-{markup.safe_id(spelling)}"
        return f"f{self.positions[path]}"

    def _fragment(self, chapter: Chapter) -> Fragment:
        def link(href: str) -> str | None:
            path = resolve(chapter.path, href) if href[:1] != "#" else chapter.path
            target = path and self.anchor(path, href.partition("#")[2])
            return f"#{target}" if target else markup.outward(href)

        def asset(source: str) -> str | None:
            return self._pictures.name(resolve(chapter.path, source))

        fragment, headings = markup.clean(chapter.html, None, self.positions[chapter.path], asset, link)
        self.headings += headings
        if chapter.has_text and not fragment.text:
            self.blank.add(chapter.path)
        return fragment


def _positions(found: list[Chapter]) -> dict[str, int]:
    """The fragment that each chapter is in: only those with text have their own."""
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


def _outline(lines: list[Line], book: _Book) -> tuple[Heading, ...]:
    """From the table of contents, or the headings, or the titles of the chapters."""
    anchors = ((line, book.anchor(line.path, line.name)) for line in lines)
    found = [Heading(line.title, line.level, anchor) for line, anchor in anchors if anchor]
    titled = (chapter for chapter in book.chapters.values() if chapter.title and chapter.has_text)
    titles = (Heading(chapter.title, 1, f"f{book.positions[chapter.path]}") for chapter in titled)
    return tuple(found or book.headings or titles)
