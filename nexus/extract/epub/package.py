"""What a book says about itself: metadata, files in reading order, table of contents, and whether it is locked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from lxml import etree

from nexus.errors import EpubDamaged, EpubDrm
from nexus.extract import Facts, markup
from nexus.extract.epub import xml
from nexus.extract.epub.archive import Archive, resolve_path

CONTAINER = "META-INF/container.xml"
ENCRYPTION = "META-INF/encryption.xml"
#: Files that only locked books have, and the bytes that prove it.
LOCKS = {"META-INF/rights.xml": b"adobe.com/adept", "META-INF/sinf.xml": b"", "META-INF/license.lcpl": b""}
#: They only keep fonts from being copied.
FONT_ALGORITHMS = frozenset({"http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC"})
FONTS = (".otf", ".ttf", ".ttc", ".woff", ".woff2", ".dfont", ".eot")
READABLE = frozenset({"application/xhtml+xml", "text/html", "application/x-dtbook+xml", "image/svg+xml"})
MOST_LINES = 10_000
LOWEST_LEVEL = 6
LONGEST_EXCERPT = 1000
DATE = re.compile(r"\d{4}(?:-\d\d(?:-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?)?)?")


@dataclass(frozen=True)
class ManifestItem:
    """A file of the book, as its manifest lists it."""

    id: str
    path: str
    media_type: str
    properties: frozenset[str]
    fallback: str | None


@dataclass(frozen=True)
class ContentsLine:
    """A line of the table of contents: a path in the archive, and an id in that file, which may be empty."""

    title: str
    level: int
    path: str
    name: str


@dataclass(frozen=True)
class Package:
    root: etree._Element
    items: dict[str, ManifestItem]

    def spine(self) -> list[ManifestItem]:
        """Return the files to read, in order. Notes beside the text are read where they are listed."""
        wanted = (_id(ref.get("idref")) for ref in self.root.iterfind("spine/itemref"))
        found = (self._readable(self.items.get(name)) for name in wanted)
        return list({item.path: item for item in found if item}.values())

    def cover(self) -> ManifestItem | None:
        named = self.root.find("metadata//meta[@name='cover']")
        by_name = self.items.get(_id(named.get("content"))) if named is not None else None
        return next((item for item in self.items.values() if "cover-image" in item.properties), by_name)

    def title(self) -> str | None:
        return next(self._said("title"), None)

    def facts(self) -> Facts:
        description = next(self._said("description"), "")
        return Facts(
            byline=", ".join(dict.fromkeys(self._said("creator"))) or None,
            site=next(self._said("publisher"), None),
            published=self._published(),
            language=next(self._said("language"), None),
            excerpt=" ".join(markup.clean_markup(description, None, 0)[0].text.split())[:LONGEST_EXCERPT]
            or None,
        )

    def contents(self, archive: Archive) -> list[ContentsLine]:
        nav = next((item for item in self.items.values() if "nav" in item.properties), None)
        lines = _from_nav(archive, nav.path) if nav else []
        spine = self.root.find("spine")
        ncx = self.items.get(_id(spine.get("toc")) if spine is not None else "")
        ncx = ncx or next(
            (i for i in self.items.values() if i.media_type == "application/x-dtbncx+xml"), None
        )
        return lines or (_from_ncx(archive, ncx.path) if ncx else [])

    def _readable(self, item: ManifestItem | None) -> ManifestItem | None:
        """Return the item, or the first of its fallbacks that is readable."""
        seen: set[str] = set()
        while item and item.media_type not in READABLE and item.fallback and item.id not in seen:
            seen.add(item.id)
            item = self.items.get(item.fallback)
        return item

    def _said(self, name: str) -> Iterator[str]:
        found = (xml.text_of(element) for element in self.root.iterfind(f"metadata//{name}"))
        return (words for words in found if words)

    def _published(self) -> str | None:
        dates = list(self.root.iterfind("metadata//date"))
        dates.sort(key=lambda date: "publication" not in date.get("event", ""))
        found = (DATE.match(xml.text_of(date)) for date in dates)
        return next((match[0] for match in found if match), None)


def open_package(archive: Archive) -> Package:
    """Raises EpubDrm, or EpubDamaged if there is no package."""
    _refuse_locked(archive)
    path = _package_path(archive)
    root = _tree(archive, path)
    if root is None or root.find("spine") is None:
        raise EpubDamaged
    items: dict[str, ManifestItem] = {}
    for element in root.iterfind("manifest/item"):
        target = resolve_path(path, element.get("href", ""))
        if target:
            item = ManifestItem(
                _id(element.get("id")),
                target,
                element.get("media-type", ""),
                frozenset(element.get("properties", "").split()),
                _id(element.get("fallback")) or None,
            )
            items.setdefault(item.id, item)
    return Package(root, items)


def _id(given: str | None) -> str:
    """Return an id as XML compares ids: blanks around it, or several in it, make no difference."""
    return " ".join((given or "").split())


def _package_path(archive: Archive) -> str:
    """Return the path of the first rendition or, without a container, of the first package in the archive."""
    container = _tree(archive, CONTAINER)
    files = container.iter("rootfile") if container is not None else ()
    paths = [resolve_path("", element.get("full-path", ""), quoted=False) for element in files]
    paths += [name for name in archive.names() if name.endswith(".opf")]
    for path in paths:
        if path and path in archive:
            return path
    raise EpubDamaged


def _refuse_locked(archive: Archive) -> None:
    for path, mark in LOCKS.items():
        if path in archive and mark in (archive.read(path) or b""):
            raise EpubDrm
    encryption = _tree(archive, ENCRYPTION)
    if encryption is not None and any(map(_is_lock, encryption.iter("EncryptedData"))):
        raise EpubDrm


def _is_lock(encrypted: etree._Element) -> bool:
    method = encrypted.find("EncryptionMethod")
    reference = encrypted.find("CipherData/CipherReference")
    algorithm = method.get("Algorithm", "") if method is not None else ""
    target = reference.get("URI", "") if reference is not None else ""
    return algorithm not in FONT_ALGORITHMS and not target.lower().endswith(FONTS)


def _from_nav(archive: Archive, path: str) -> list[ContentsLine]:
    root = _tree(archive, path)
    if root is None:
        return []
    navs = list(root.iter("nav"))
    toc = next((nav for nav in navs if "toc" in nav.get("type", "").split()), navs[0] if navs else None)
    if toc is None:
        return []
    found = []
    for entry in islice(toc.iter("li"), MOST_LINES):
        link = next(entry.iter("a"), None)
        label = next(entry.iterchildren("a", "span"), link)
        level = sum(1 for _ in entry.iterancestors("ol"))
        found.append(_line(path, xml.text_of(label), level, link.get("href", "") if link is not None else ""))
    return [line for line in found if line]


def _from_ncx(archive: Archive, path: str) -> list[ContentsLine]:
    root = _tree(archive, path)
    if root is None:
        return []
    found = []
    for point in islice(root.iter("navPoint"), MOST_LINES):
        content = point.find("content")
        level = 1 + sum(1 for _ in point.iterancestors("navPoint"))
        source = content.get("src", "") if content is not None else ""
        found.append(_line(path, xml.text_of(point.find("navLabel")), level, source))
    return [line for line in found if line]


def _line(base: str, title: str, level: int, href: str) -> ContentsLine | None:
    path = resolve_path(base, href)
    if not path or not title:
        return None
    return ContentsLine(title, min(max(level, 1), LOWEST_LEVEL), path, href.partition("#")[2])


def _tree(archive: Archive, path: str) -> etree._Element | None:
    data = archive.read(path)
    return xml.parse_xml(data) if data else None
