"""The elements of HTML, by what becomes of them."""

from __future__ import annotations

from nexus.extract.writer import HEADINGS


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


KEPT_BLOCKS = _words(
    "p blockquote pre ul ol li dl dt dd figure figcaption table caption thead tbody tfoot tr td th"
)
KEPT_BLOCKS |= HEADINGS
#: They part the text, and are written as paragraphs.
LOOSE_BLOCKS = _words(
    "address article aside body center details dialog div fieldset footer form header hgroup legend main nav section "
    "summary"
)
INLINES = _words(
    "a abbr b bdi bdo cite code del dfn em i ins kbd mark q rp rt ruby s samp small strong sub sup time u var"
)
SYNONYMS = {"strike": "s", "tt": "code", "acronym": "abbr"}
BARE = _words("br hr img span")
#: Their content is not text to read.
DROPPED = _words(
    "audio canvas datalist iframe noembed noframes noscript script select style svg template "
    "textarea title video x-annotation x-annotation-xml"
)
VOID = _words("area base br col embed hr img input link meta source track wbr")
#: A parser closes these by itself: pages that leave them open are not deep.
SELF_CLOSING = _words("p li dt dd tr td th thead tbody tfoot colgroup caption option optgroup rt rp")
