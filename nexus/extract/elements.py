"""The elements of HTML, sorted by what Nexus does with them."""

from __future__ import annotations

from nexus.extract.writer import HEADINGS


def words(text: str) -> frozenset[str]:
    """The set of words in a text."""
    return frozenset(text.split())


KEPT_BLOCKS = words(
    "p blockquote pre ul ol li dl dt dd figure figcaption table caption thead tbody tfoot tr td th"
)
KEPT_BLOCKS |= HEADINGS
#: They separate text, and are written as paragraphs.
LOOSE_BLOCKS = words(
    "address article aside body center details dialog div fieldset footer form header hgroup legend main nav section "
    "summary"
)
INLINES = words(
    "a abbr b bdi bdo cite code del dfn em i ins kbd mark q rp rt ruby s samp small strong sub sup time u var"
)
SYNONYMS = {"strike": "s", "tt": "code", "acronym": "abbr"}
BARE = words("br hr img span")
#: Elements whose content nobody reads.
DROPPED = words(
    "audio canvas datalist iframe noembed noframes noscript script select style svg template "
    "textarea title video x-annotation x-annotation-xml"
)
VOID = words("area base br col embed hr img input link meta source track wbr")
#: A parser closes these by itself, so a page that leaves them open is not deep.
SELF_CLOSING = words("p li dt dd tr td th thead tbody tfoot colgroup caption option optgroup rt rp")
