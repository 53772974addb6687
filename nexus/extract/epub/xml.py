"""XML that strangers wrote: nothing is expanded, loaded or fetched for it."""

from __future__ import annotations

import codecs
import re
from html.entities import html5

from lxml import etree

from nexus.extract.shallow import shallow
from nexus.extract.text import charset

DECLARATION = re.compile(r"\A\s*<\?xml[^>]*\?>")
DECLARED = re.compile(rb"\A\s*<\?xml[^>]*encoding\s*=\s*[\"']([A-Za-z0-9._-]+)")
DOCTYPE = re.compile(r"<!DOCTYPE[^\[>]*>", re.IGNORECASE)
ENTITY = re.compile(r"&([A-Za-z][A-Za-z0-9]*;)")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
XML_ENTITIES = frozenset({"amp;", "lt;", "gt;", "quot;", "apos;"})
FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def parse(data: bytes, *, recover: bool = True) -> etree._Element | None:
    """The root, every name without its namespace. None where it is not XML, or declares entities."""
    text = DOCTYPE.sub("", DECLARATION.sub("", decode(data)), count=1)
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        return None
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        recover=recover,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        root = etree.fromstring(ENTITY.sub(_character, text).encode(), parser)
    except etree.XMLSyntaxError:
        return None
    if root is not None:
        _drop_namespaces(root)
    return root


def parse_html(data: bytes) -> etree._Element | None:
    """As browsers do, whatever it looks like."""
    text = shallow(DECLARATION.sub("", decode(data)))
    if not text.strip():
        return None
    parser = etree.HTMLParser(
        encoding="utf-8", no_network=True, remove_comments=True, remove_pis=True, huge_tree=True
    )
    root = etree.HTML(text.encode(), parser)
    if root is not None:
        _drop_namespaces(root)
    return root


def decode(data: bytes) -> str:
    for mark, marked in MARKS:
        if data.startswith(mark):
            return FORBIDDEN.sub("", data[len(mark) :].decode(marked, "replace"))
    declared = DECLARED.match(data[:200])
    name = charset(declared[1].decode()) if declared else None
    return FORBIDDEN.sub("", data.decode(name or "utf-8", "replace"))


def words(element: etree._Element | None) -> str:
    """Its text on one line."""
    return "" if element is None else " ".join("".join(map(str, element.itertext())).split())


def _character(found: re.Match[str]) -> str:
    """The characters that HTML has names for: XML knows them only from a DTD, and none is loaded."""
    name = found[1]
    if name in XML_ENTITIES:
        return found[0]
    return html5.get(name, f"&amp;{name}")


def _drop_namespaces(root: etree._Element) -> None:
    for element in root.iter(etree.Element):
        element.tag = _local(element.tag)
        for name, value in element.items():
            local = _local(name)
            if local != name and local not in element.attrib:
                element.set(local, value)
    etree.cleanup_namespaces(root)


def _local(name: str) -> str:
    """`{namespace}name` and `prefix:name` are `name`. The HTML parser makes names that nothing else takes."""
    local = name.rpartition("}")[2].rpartition(":")[2]
    return local if NAME.fullmatch(local) else "x"
