"""Parses XML from strangers. Nothing is expanded, loaded or fetched for it."""

from __future__ import annotations

import re
from html.entities import html5

from lxml import etree

from nexus.extract.charsets import decode_xml
from nexus.extract.nesting import cut_nesting

DECLARATION = re.compile(r"\A\s*<\?xml[^>]*\?>")
DOCTYPE = re.compile(r"<!DOCTYPE[^\[>]*>", re.IGNORECASE)
ENTITY = re.compile(r"&([A-Za-z][A-Za-z0-9]*;)")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
XML_ENTITIES = frozenset({"amp;", "lt;", "gt;", "quot;", "apos;"})
FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def parse_xml(data: bytes, *, recover: bool = True) -> etree._Element | None:
    """Return the root, with all names stripped of namespaces. None if it is not XML or declares entities."""
    text = DOCTYPE.sub("", DECLARATION.sub("", FORBIDDEN.sub("", decode_xml(data))), count=1)
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
    """Parse as browsers do, however broken it is. None if it is empty."""
    text = cut_nesting(DECLARATION.sub("", FORBIDDEN.sub("", decode_xml(data))))
    if not text.strip():
        return None
    parser = etree.HTMLParser(
        encoding="utf-8", no_network=True, remove_comments=True, remove_pis=True, huge_tree=True
    )
    root = etree.HTML(text.encode(), parser)
    if root is not None:
        _drop_namespaces(root)
    return root


def text_of(element: etree._Element | None) -> str:
    """Return the text of an element on one line."""
    return "" if element is None else " ".join("".join(map(str, element.itertext())).split())


def _character(found: re.Match[str]) -> str:
    """Replace HTML's named characters. XML knows them only from a DTD, and none is loaded."""
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
    """Strip `{namespace}` or `prefix:` from a name. The HTML parser makes up names that lxml refuses elsewhere."""
    local = name.rpartition("}")[2].rpartition(":")[2]
    return local if NAME.fullmatch(local) else "x"
