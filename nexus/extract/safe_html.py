"""Checks html on the trusted side: what a parser sent, and what the database holds.

A parser that a document has taken over can send any html, so its word counts for nothing. What `writer.py` writes has a
shape of its own: few elements, each closed in its place, few attributes, each in double quotes. One pass over the tags
tells whether html has that shape, in a time that grows with its length alone. Other html, from an extractor that writes
its own, is cleaned first.
"""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

from nexus import logging
from nexus.extract import Extraction, Fragment, formulas
from nexus.extract.elements import INLINES, KEPT_BLOCKS

log = logging.get_logger(__name__)

DEEPEST = 500
_ID = r"f\d{1,9}-[A-Za-z0-9_.:-]{1,120}"
_ASSET_NAME = r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,199}"
_SPAN, _SIZE = r"[1-9]\d{0,3}", r"[1-9]\d{0,4}"
_PICTURE = rf'https?://[^"<>]*|asset:{_ASSET_NAME}'
#: The attributes that each element may have, and their values as they are written, with `&` and the like escaped.
_ANYWHERE = {"id": _ID, "lang": r"[A-Za-z0-9-]{1,35}", "dir": "ltr|rtl|auto"}
_ATTRIBUTES = {name: dict(_ANYWHERE) for name in (*KEPT_BLOCKS, *INLINES, "span")} | {"br": {}, "hr": {}}
_ATTRIBUTES["a"] |= {
    "href": rf'https?://[^"<>]*|mailto:[^"<>]*|#f\d{{1,9}}|#{_ID}',
    "rel": "noopener noreferrer nofollow",
}
_ATTRIBUTES["abbr"] |= {"title": r'[^"<>]{1,4000}'}
_ATTRIBUTES["time"] |= {"datetime": "[0-9A-Za-z:+. -]{1,40}"}
_ATTRIBUTES["li"] |= {"value": r"-?\d{1,6}"}
_ATTRIBUTES["ol"] |= {"start": r"-?\d{1,6}", "reversed": '[^"<>&]{0,8}', "type": "[1aAiI]"}
_ATTRIBUTES["td"] |= {"colspan": _SPAN, "rowspan": _SPAN}
_ATTRIBUTES["th"] |= {"colspan": _SPAN, "rowspan": _SPAN, "scope": "col|row|colgroup|rowgroup"}
_ATTRIBUTES["img"] = {
    "src": _PICTURE,
    "alt": '[^"<>]*',
    "width": _SIZE,
    "height": _SIZE,
    "loading": "lazy",
    "referrerpolicy": "no-referrer",
}
_ATTRIBUTES |= {name: formulas.ATTRIBUTES.get(name, {}) for name in formulas.WRITTEN}
_EMPTY = frozenset({"br", "hr", "img"})
_PLAIN = frozenset(_ATTRIBUTES) - _EMPTY
_TAG = re.compile(r"<([^<>]*)>")
_VALUES = {
    (element, name): re.compile(values)
    for element, attributes in _ATTRIBUTES.items()
    for name, values in attributes.items()
}
_WITH_ATTRIBUTES = re.compile(r'([a-z][a-z0-9]*)((?: [a-z]+="[^"]*")+)')
_ATTRIBUTE = re.compile(r' ([a-z]+)="([^"]*)"')
#: As people write them: in capitals, in single quotes, with spaces.
_ANY_TAG = re.compile(r"""<(/?)([a-zA-Z][a-zA-Z0-9]*)((?:[^<>"']|"[^"<]*"|'[^'<]*')*+)>""")
_ANY_ATTRIBUTE = re.compile(r"""\s([a-zA-Z]+)=(?:"([^"]*)"|'([^'"]*)')""")
_LEAD = re.compile(_PICTURE)
_NAME = re.compile(_ASSET_NAME)
_IMAGE = re.compile(r"image/(?:png|jpeg|gif|webp|avif)")


def is_safe(html: str) -> bool:
    """Whether html holds only the elements and attributes that a text may have, each closed in its place."""
    tags = _TAG.findall(html)
    if not html.count("<") == html.count(">") == len(tags):
        return False
    opened: list[str] = []
    for tag in tags:
        if tag in _PLAIN:
            name = tag
        elif tag[:1] == "/":
            if not opened or opened.pop() != tag[1:]:
                return False
            continue
        else:
            name = _name_if_safe(tag)
            if not name:
                return False
        if not _may_stand_in(opened, name):
            return False
        if name not in _EMPTY:
            opened.append(name)
            if len(opened) > DEEPEST:
                return False
    return not opened


def safe_html(html: str, text: str) -> str | None:
    """Return html that is safe and has this text, or None if that can't be had: then the text is shown as it is.

    Html that is not safe as it stands loses what may not be there.
    """
    if is_safe(html):
        return html
    cleaned = _cleaned(html)
    return cleaned if is_safe(cleaned) and unescape(_TAG.sub("", cleaned)) == text else None


def safe_extraction(found: Extraction) -> Extraction:
    """Return what a parser found with its html and the addresses of its pictures checked."""
    fragments = tuple(map(_safe_fragment, found.fragments))
    lead = found.facts.lead_image
    if lead is not None and not _LEAD.fullmatch(lead):
        found = replace(found, facts=replace(found.facts, lead_image=None))
    assets = tuple(
        one for one in found.assets if _NAME.fullmatch(one.name) and _IMAGE.fullmatch(one.content_type)
    )
    return replace(found, fragments=fragments, assets=assets)


def _safe_fragment(fragment: Fragment) -> Fragment:
    if fragment.html is None or is_safe(fragment.html):
        return fragment
    log.warning("html_cleaned")
    return replace(fragment, html=safe_html(fragment.html, fragment.text))


def _name_if_safe(tag: str) -> str:
    """Return the name of the element, or nothing if it or one of its attributes may not be there."""
    if tag in _EMPTY:
        return tag
    found = _WITH_ATTRIBUTES.fullmatch(tag)
    if found is None:
        return ""
    name = found[1]
    safe = all(_may_have(name, attribute, value) for attribute, value in _ATTRIBUTE.findall(found[2]))
    return name if safe else ""


def _may_have(element: str, attribute: str, value: str) -> bool:
    values = _VALUES.get((element, attribute))
    return values is not None and values.fullmatch(value) is not None


def _may_stand_in(opened: list[str], name: str) -> bool:
    """Whether an element may begin here: formulas hold the elements of formulas, and nothing else does."""
    return (name in formulas.WRITTEN and name != "math") == (bool(opened) and opened[-1] in formulas.WRITTEN)


def _cleaned(html: str) -> str:
    """Leave out every tag and attribute that may not be there, and close what is open.

    A cleaner that reads html as browsers do is no help here: some html takes it quadratic time.
    """
    written, opened, at = list[str](), list[str](), 0
    for found in _ANY_TAG.finditer(html):
        written.append(_escaped(html[at : found.start()]))
        at, name = found.end(), found[2].lower()
        if found[1]:
            if opened[-1:] == [name]:
                written.append(f"</{opened.pop()}>")
        elif name in _ATTRIBUTES and len(opened) < DEEPEST and _may_stand_in(opened, name):
            written.append(f"<{name}{_kept(name, found[3])}>")
            opened += [name] if name not in _EMPTY else []
    written.append(_escaped(html[at:]))
    return "".join(written) + "".join(f"</{name}>" for name in reversed(opened))


def _kept(element: str, attributes: str) -> str:
    given = {
        name.lower(): _escaped(double or single)
        for name, double, single in _ANY_ATTRIBUTE.findall(attributes)
    }
    return "".join(f' {name}="{value}"' for name, value in given.items() if _may_have(element, name, value))


def _escaped(text: str) -> str:
    return text.replace("<", "&lt;").replace(">", "&gt;")
