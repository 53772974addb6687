"""Writes MathML so that a browser shows the formula, while its text content is the formula on one line.

In MathML the characters of a half are "12", and the elements around them say the rest. Here they are "1/2", in the text
and in the html. What a reader would otherwise see twice stands in annotations, which browsers hide.
"""

from __future__ import annotations

import re
from html import escape
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

from nexus.extract.elements import words

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

#: Formulas are cleaned under other names: cleaners drop foreign content, or treat it by rules of its own.
PREFIX = "x-"
LEAVES = words("mi mn mo ms mtext")
SCRIPTS = {
    "msub": ("_",),
    "msup": ("^",),
    "msubsup": ("_", "^"),
    "munder": ("_",),
    "mover": ("^",),
    "munderover": ("_", "^"),
}
#: They show nothing, or tell machines what the formula means.
SILENT = words("mphantom mprescripts none annotation annotation-xml")
NAMES = (
    LEAVES
    | SILENT
    | SCRIPTS.keys()
    | words(
        "math mrow mstyle mpadded merror menclose mfrac msqrt mroot mfenced mmultiscripts mtable mtr mlabeledtr mtd "
        "mspace maction semantics"
    )
)
#: What a written formula is made of, and the attributes that its elements may have.
WRITTEN = (
    LEAVES | SCRIPTS.keys() | words("math mrow mfrac msqrt mroot mtable mtr mtd mspace semantics annotation")
)
ATTRIBUTES = {
    "math": {"display": "block"},
    "mi": {"mathvariant": "normal"},
    "mo": {"stretchy": "true|false"},
    "mfrac": {"linethickness": "0"},
    "mover": {"accent": "true"},
    "munder": {"accentunder": "true"},
    "mtable": {"columnalign": "(?:left|center|right| )+"},
}
#: How a formula, its elements and their attributes are called while they are cleaned.
HIDDEN_FORMULA = f"{PREFIX}math"
HIDDEN_NAMES = {PREFIX + name for name in NAMES - {"annotation", "annotation-xml"}}
HIDDEN_ATTRIBUTES = {PREFIX + name: set(kept) for name, kept in ATTRIBUTES.items()} | {
    f"{PREFIX}mfenced": {"open", "close", "separators"},
    f"{PREFIX}mspace": {"width"},
}
DEEPEST = 60
#: What is longer is not a formula.
LONGEST = 20_000

_TAG = re.compile(
    rf"<(/?)({'|'.join(sorted(NAMES, key=len, reverse=True))})(?![\w-])([^<>]*?)(/?)>", re.IGNORECASE
)
_SPACES = re.compile(r"\s+")
_APPLY, _TIMES, _COMMA, _PLUS = "\u2061\u2062\u2063\u2064"
_ONE_PART = re.compile(r"\w+|.|\([^()]*\)", re.DOTALL)
_LONG_NAME = re.compile(r"[^\W\d_]{2,}$")


class Formula(NamedTuple):
    """A part of a formula: its html, and the text content of that."""

    html: str
    text: str


NOTHING = Formula("", "")


def hide_formulas(html: str) -> str:
    """Return html whose formulas are made of elements that a cleaner of html passes through."""
    return _TAG.sub(_renamed, html) if "<m" in html or "<M" in html else html


def _renamed(found: re.Match[str]) -> str:
    close, name, attributes, ends = found.groups()
    name = PREFIX + name.lower()
    return f"<{name}{attributes}></{name}>" if ends and not close else f"<{close}{name}{attributes}>"


def write_formula(math: Element) -> Formula:
    """Write a `math` element, or one that `hide_formulas` has renamed. NOTHING if it has no text or is too long."""
    written = _shown("math", math, _row(math, 0))
    return written if written.text.strip() and len(written.text) <= LONGEST else NOTHING


def _write(element: Element, depth: int) -> Formula:
    tag = _name(element)
    if tag in SILENT:
        return NOTHING
    if tag in LEAVES or depth > DEEPEST:
        return _leaf(tag if tag in LEAVES else "mtext", element)
    if tag in SCRIPTS:
        return _scripted(tag, element, depth)
    write = _WRITERS.get(tag, _row)
    return write(element, depth + 1)


def _name(element: Element) -> str:
    return str(element.tag).removeprefix(PREFIX)


def _parts(element: Element, depth: int) -> list[Formula]:
    return [_write(child, depth) for child in element if isinstance(child.tag, str)]


def _shown(tag: str, element: Element | None, *parts: Formula) -> Formula:
    given = {} if element is None else ATTRIBUTES.get(tag, {})
    attributes = "".join(
        f' {name}="{value}"'
        for name, values in given.items()
        if element is not None and re.fullmatch(values, value := element.get(name, "").strip())
    )
    inside = "".join(part.html for part in parts)
    return Formula(f"<{tag}{attributes}>{inside}</{tag}>", "".join(part.text for part in parts))


def _hidden(text: str) -> Formula:
    """Write text that only the line needs: a browser shows only the first part of `semantics`, an empty space."""
    return Formula(
        f"<semantics><mspace></mspace><annotation>{escape(text, quote=False)}</annotation></semantics>", text
    )


def _joined(*parts: Formula) -> Formula:
    """Join parts into one, because most elements have a fixed number of children."""
    solid = [part for part in parts if part.html]
    return solid[0] if len(solid) == 1 else _shown("mrow", None, *solid)


def _grouped(part: Formula) -> Formula:
    return part if _ONE_PART.fullmatch(part.text) else _joined(_hidden("("), part, _hidden(")"))


def _row(element: Element, depth: int) -> Formula:
    parts: list[Formula] = []
    for part in _parts(element, depth):
        if parts and _run_together(parts[-1].text, part.text):
            parts.append(_hidden(" "))
        parts.append(part)
    return _joined(*parts)


def _run_together(left: str, right: str) -> bool:
    """Whether a name of several letters, like sin, would be read as one word with its neighbour."""
    ends = right[:1].isalnum() and left[-1:].isalnum()
    return ends and bool(_LONG_NAME.search(left) or _LONG_NAME.match(right))


def _leaf(tag: str, element: Element) -> Formula:
    text = _SPACES.sub(" ", "".join(map(str, element.itertext())))
    if text in {_APPLY, _TIMES, _COMMA, _PLUS}:
        said = {_APPLY: " ", _COMMA: ","}.get(text)
        return _hidden(said) if said else NOTHING
    # A browser shows no ordinary space at the edge of an element.
    text = text.replace(" ", "\u00a0") if tag == "mtext" else text.strip()
    return _shown(tag, element, Formula(escape(text, quote=False), text)) if text else NOTHING


def _scripted(tag: str, element: Element, depth: int) -> Formula:
    base, *scripts = _parts(element, depth + 1) or [NOTHING]
    if len(scripts) != len(SCRIPTS[tag]):
        return _joined(base, *scripts)
    return _shown(
        tag, element, _grouped(base), *(_script(*pair) for pair in zip(SCRIPTS[tag], scripts, strict=True))
    )


def _script(sign: str, part: Formula) -> Formula:
    """A sign like ′ or ¯ stands for itself; anything else is said to be above or below."""
    if not part.text:
        return _joined(part)
    if len(part.text) == 1 and not part.text.isalnum() and part.text not in "+-−*∞":
        return part
    return _joined(_hidden(sign), _grouped(part))


def _fraction(element: Element, depth: int) -> Formula:
    parts = _parts(element, depth)
    if len(parts) != 2:
        return _joined(*parts)
    above, below = map(_grouped, parts)
    sign = " choose " if element.get("linethickness") == "0" else "/"
    return _shown("mfrac", element, _joined(above, _hidden(sign)), _joined(below))


def _square_root(element: Element, depth: int) -> Formula:
    return _shown("msqrt", element, _hidden("√"), _grouped(_row(element, depth)))


def _any_root(element: Element, depth: int) -> Formula:
    parts = _parts(element, depth)
    if len(parts) != 2:
        return _joined(*parts)
    base, degree = parts
    return _shown("mroot", element, _grouped(base), _joined(_hidden("^(1/"), _grouped(degree), _hidden(")")))


def _fenced(element: Element, depth: int) -> Formula:
    """The separators are used in turn, and the last one as often as needed."""
    signs = "".join(element.get("separators", ",").split())
    out = [_sign(element.get("open", "("))]
    for place, part in enumerate(_parts(element, depth)):
        between = signs[min(place, len(signs)) - 1] if place and signs else ""
        out += (_sign(between), part)
    return _joined(*out, _sign(element.get("close", ")")))


def _sign(text: str) -> Formula:
    return Formula(f"<mo>{escape(text, quote=False)}</mo>", text) if text else NOTHING


def _table(element: Element, depth: int) -> Formula:
    rows = [[_write(cell, depth) for cell in row] for row in element if _name(row) in {"mtr", "mlabeledtr"}]
    written = []
    for number, row in enumerate(rows, 1):
        ends = [", "] * (len(row) - 1) + ["; " if number < len(rows) else ""]
        cells = (
            _shown("mtd", None, cell, _hidden(end) if end else NOTHING)
            for cell, end in zip(row, ends, strict=True)
        )
        written.append(_shown("mtr", None, *cells))
    return _shown("mtable", element, *written)


def _many_scripts(element: Element, depth: int) -> Formula:
    """Scripts come in pairs, below and above: after the base, and after `mprescripts` those before it."""
    base, *rest = [child for child in element if isinstance(child.tag, str)] or [element]
    names = [_name(child) for child in rest]
    at = names.index("mprescripts") if "mprescripts" in names else len(rest)
    after, before = rest[:at], rest[at + 1 :]
    written = _with_pairs(_write(base, depth), after, depth) if base is not element else NOTHING
    return _joined(_with_pairs(NOTHING, before, depth), written) if before else written


def _with_pairs(base: Formula, scripts: list[Element], depth: int) -> Formula:
    for below, above in zip_longest(scripts[::2], scripts[1::2]):
        parts = [NOTHING if one is None else _write(one, depth) for one in (below, above)]
        base = _shown("msubsup", None, _grouped(base) if base.text else _joined(), *map(_script, "_^", parts))
    return base


def _space(element: Element, depth: int) -> Formula:  # noqa: ARG001 - as all writers
    wide = element.get("width", "0").strip()[:1].strip("0-")
    return Formula("<mtext>\u00a0</mtext>", "\u00a0") if wide else NOTHING


def _first(element: Element, depth: int) -> Formula:
    return next(iter(_parts(element, depth)), NOTHING)


_WRITERS = {
    "mfrac": _fraction,
    "msqrt": _square_root,
    "mroot": _any_root,
    "mfenced": _fenced,
    "mtable": _table,
    "mmultiscripts": _many_scripts,
    "mspace": _space,
    "maction": _first,
    "semantics": _first,
}
