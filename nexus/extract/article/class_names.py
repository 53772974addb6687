"""What the names of classes, ids and roles say about a part of a page, in whatever language its text is."""

from __future__ import annotations

import re
from functools import lru_cache

#: One group per bit. A name counts if it begins with one of these words, or equals one that ends in a full stop.
GROUPS = {
    "comment": "comment disqus respond kommentar leserbrief pinglun livefyre",
    "reply": "reply replies thread forum message posting answer question discussion topic",
    "nav": "nav menu breadcrumb crumb toolbar topbar pagination pager sitemap tab. tabs. skip",
    "foot": "foot copyright legal imprint disclaimer colophon bottom",
    "head": "header masthead banner topper hero",
    "side": "side aside rail widget right gadget secondary",
    "related": "relat recommend more. similar also teaser suggest outbrain taboola trend popular latest recirc next. "
    "prev mehr weiter hot rank",
    "share": "share sharing social facebook twitter whatsapp follow bookmark addthis like. print email",
    "ad": "adv ad. ads. sponsor promo anzeige commercial affiliate campaign donat",
    "popup": "cookie consent gdpr modal popup overlay lightbox dialog notice alert toast",
    "signup": "newsletter subscri signup login register paywall premium abo. member regwall",
    "meta": "meta byline author date time publish info credit dateline source editor stat. stats.",
    "tags": "tag. tags. categor label keyword badge rubri kicker",
    "caption": "caption figure image photo picture gallery slide carousel video player media",
    "body": "entry content story text body articulo artikel prose markdown rich wysiwyg copy",
    "article": "article post blog news main detail single page",
    "product": "product price desc spec feature review rating sku cart shop buy offer variant",
    "card": "card grid list item tile result row cell feed archive",
    "docs": "doc api code highlight section chapter guide manual wiki toc reference",
    "user": "user profile avatar signature karma score vote",
    "title": "title headline heading subtitle lead intro summary abstract excerpt standfirst deck",
    "hidden": "hidden invisible visually sr. screenreader collapse offscreen none noscript",
}
BIT = {name: 1 << at for at, name in enumerate(GROUPS)}

#: A capital letter begins a new word, like a dash.
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_WHOLE = {word[:-1]: BIT[name] for name, words in GROUPS.items() for word in words.split() if word[-1] == "."}
#: By their first letters: each page is read by a new process, so no cache of earlier answers helps for long.
_LETTERS = 3
_BEGINNINGS: dict[str, list[tuple[str, int]]] = {}
for _name, _words in GROUPS.items():
    for _word in _words.split():
        if _word[-1] != ".":
            _BEGINNINGS.setdefault(_word[:_LETTERS], []).append((_word, BIT[_name]))


@lru_cache(maxsize=4096)
def groups_of(names: str) -> int:
    """Return the groups that a class and an id belong to, as bits."""
    found = 0
    for word in _WORD.findall(names[:300]):
        found |= _meaning(word)
    return found


@lru_cache(maxsize=16384)
def _meaning(word: str) -> int:
    word = word.lower()
    found = _WHOLE.get(word, 0)
    for beginning, bit in _BEGINNINGS.get(word[:_LETTERS], ()):
        if word.startswith(beginning):
            found |= bit
    return found


def group_bits(names: str) -> int:
    """Return the bits of groups given by name."""
    return sum(BIT[name] for name in names.split())
