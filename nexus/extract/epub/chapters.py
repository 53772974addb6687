"""Loads the text files of a book as html, ready to be cleaned."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from lxml import etree

from nexus.extract.epub import xml
from nexus.extract.epub.archive import Archive
from nexus.extract.epub.package import ManifestItem

NOT_TEXT = ("script", "style", "template", "noscript")
RASTER = "image/"


@dataclass(frozen=True)
class Chapter:
    path: str
    html: str
    title: str
    ids: frozenset[str]
    has_text: bool


def load_chapter(archive: Archive, item: ManifestItem) -> Chapter | None:
    """Return None if the file is missing or has nothing to show."""
    if item.media_type.startswith(RASTER) and item.media_type != "image/svg+xml":
        html = f'<img src="{escape(item.path.rpartition("/")[2])}">'
        return Chapter(item.path, html, "", frozenset(), has_text=False)
    data = archive.read(item.path)
    if not data:
        return None
    root = xml.parse_xml(data, recover=False)
    if root is None:
        root = xml.parse_html(data)
    return None if root is None else _chapter(item.path, root)


def _chapter(path: str, root: etree._Element) -> Chapter | None:
    if root.tag == "svg":
        root = _drawing(root)
    body = root if root.tag in {"body", "div"} else root.find("body")
    if body is None:
        return None
    for drawing in list(body.iter("svg")):
        _replace(drawing, _drawing(drawing))
    etree.strip_elements(body, *NOT_TEXT, with_tail=False)
    return Chapter(
        path,
        etree.tostring(body, method="html", encoding="unicode"),
        xml.text_of(root.find("head/title")),
        frozenset(str(name) for name in body.xpath(".//@id | .//a/@name")),
        bool(xml.text_of(body)),
    )


def _drawing(svg: etree._Element) -> etree._Element:
    """Return the photographs and the words of a drawing. The drawing itself may hold scripts, and is left out."""
    block = etree.Element("div")
    for element in svg.iter("image", "text"):
        if element.tag == "text":
            etree.SubElement(block, "p").text = xml.text_of(element)
        elif element.get("href"):
            etree.SubElement(block, "img", src=element.get("href", ""))
    return block


def _replace(old: etree._Element, new: etree._Element) -> None:
    parent = old.getparent()
    if parent is not None:
        new.tail = old.tail
        parent.replace(old, new)
