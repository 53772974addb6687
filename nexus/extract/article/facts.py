"""What a page says about itself: its title, who wrote it, where and when, and in which language."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from urllib.parse import urlsplit

from htmldate import find_date
from lxml import etree
from lxml.etree import _Element as Element
from resiliparse.parse.lang import detect_fast

from nexus.extract import Facts
from nexus.extract.article.blocks import Block, BlockScope
from nexus.extract.article.heads import PageHead, entity_name
from nexus.extract.markup import absolute_url

LONGEST_TITLE = 500
LONGEST_EXCERPT = 300
LONGEST_BYLINE = 120
#: Bylines stand near the beginning.
MOST_BLOCKS = 150
MOST_HEADINGS = 5
#: What some sites put behind a heading, to be clicked on.
PERMALINKS = " ¶#"
#: Shorter parts of a domain are not names of sites.
SHORTEST_NAME = 3
#: With this many words in common, and half of the shorter one's, a heading and a title are the same.
LEAST_SHARED = 4
#: Pages older than the web have a wrong date.
OLDEST = "1991-01-01"
MOST_TIMES = 20
LONGEST_TIMESTAMP = 40
#: The language detector's distance above which it is guessing.
UNSURE = 1100

AUTHORS = (
    "author",
    "article:author",
    "dc.creator",
    "dc:creator",
    "dcterms.creator",
    "parsely-author",
    "sailthru.author",
    "byl",
    "citation_author",
    "twitter:data1-author",
    "og:article:author",
)
PICTURES = (
    "og:image",
    "og:image:url",
    "og:image:secure_url",
    "twitter:image",
    "twitter:image:src",
    "thumbnail",
)
LANGUAGES = ("content-language", "og:locale", "language", "dc.language")
EXCERPTS = ("og:description", "description", "twitter:description", "dc.description")

#: What sites put between a title and their name.
_SEAM = re.compile(r"\s+[|–—\-·•»«›‹:/~]+\s+|\s*[|｜_]\s*|:\s+|\s*[–—]\s+|\s+[–—]\s*")
_WORD = re.compile(r"\w+")
#: Meta tags that say when a page was changed, not when it was published.
_CHANGED = re.compile(r"modif|updat|revis|expir")
_HEADING = etree.XPath(".//text() | .//br")
_TIMES = etree.XPath("//time[@datetime] | //*[@itemprop='datePublished']")
_BYLINES = etree.XPath("//*[@rel='author' or @itemprop='author']")
_BY = re.compile(
    r"^\s*(?:(?:written|posted|published)\s+by|by|von|par|por|door|di|av|作者|文|记者)\b[\s:：]*",
    re.IGNORECASE,
)
_AFTER = re.compile(r"\s*(?:[|•·–—]|\s-\s|,\s*(?:updated|published)|\d).*$", re.IGNORECASE | re.DOTALL)
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})*\Z")
_ADDRESS = re.compile(r"^(?:https?:|www\.|@)|\.(?:com|org|net|de)\b|/", re.IGNORECASE)
_NOBODY = re.compile(
    r"^(?:admin|administrator|author|staff|editor|guest|root|user|unknown|null|none)$", re.IGNORECASE
)


@dataclass(frozen=True)
class FactSources:
    """What facts are taken from: the tree, its head, its blocks, and the text that is kept."""

    root: Element
    head: PageHead
    blocks: list[Block]
    text: str
    url: str | None
    base_url: str | None


def gather_facts(sources: FactSources) -> Facts:
    root, head, text = sources.root, sources.head, sources.text
    return Facts(
        byline=stated_byline(head) or next(filter(None, _marked_bylines(root, sources.blocks)), None),
        site=_site(head, sources.url),
        published=_published(root, head, sources.url),
        language=_language(head, text),
        lead_image=_picture(head, sources.base_url),
        excerpt=_excerpt(head),
    )


def page_title(head: PageHead, body: Element, url: str | None) -> str | None:
    """Return og:title, twitter:title, the title tag or the first h1, without the name of the site.

    If a heading says nearly the same, it is the title as readers see it: the others are written for search engines.
    """
    shown = map(_heading_text, islice(body.iter("h1"), MOST_HEADINGS))
    headings = [text for text in shown if text]
    given = head.first("og:title") or head.first("twitter:title") or head.title
    if not given:
        return headings[0] if headings else None
    sites = [*head.site_names(), *_domain_names(url)]
    title = _without_domain(_without_site(given, headings, sites), url)
    return _as_shown(title, headings)[:LONGEST_TITLE].strip() or None


def _heading_text(heading: Element) -> str:
    """Return the words of a heading. A line break stands between words."""
    pieces = (piece if isinstance(piece, str) else " " for piece in _HEADING(heading))
    return " ".join("".join(pieces).split()).rstrip(PERMALINKS)


def _host_of(url: str | None) -> str:
    return ((urlsplit(url).hostname if url else None) or "").removeprefix("www.")


def _domain_names(url: str | None) -> list[str]:
    """Return what a site may be called by its domain: example.com, and example."""
    host = _host_of(url)
    labels = host.split(".")[:-1]
    return [host, *(".".join(labels[at:]) for at in range(len(labels)))]


def _without_domain(title: str, url: str | None) -> str:
    """Drop the last part of a title if it and a label of the domain are alike: Koia, of drinkkoia.com."""
    seams = [seam for seam in _SEAM.finditer(title) if ":" not in seam[0]]
    seam = seams[-1] if seams else None
    if seam is None or not title[: seam.start()].strip():
        return title
    name = _folded(title[seam.end() :])
    labels = (_folded(label) for label in _host_of(url).split(".")[:-1])
    is_named = len(name) >= SHORTEST_NAME and any(
        len(label) >= SHORTEST_NAME and (label in name or name in label) and len(name) <= 3 * len(label)
        for label in labels
    )
    return title[: seam.start()].strip() if is_named else title


def _as_shown(title: str, headings: list[str]) -> str:
    """Return the heading that says the same as the title, or nearly the same, or what the title cuts short."""
    folded, said = _folded(title), _spoken(title)
    for heading in headings:
        whole = _folded(heading)
        if whole == folded or (title.endswith(("...", "…")) and whole.startswith(folded)):
            return heading
    for heading in headings:
        words = _spoken(heading)
        if len(words & said) >= max(LEAST_SHARED, min(len(words), len(said)) / 2):
            return heading
    return title


def _spoken(text: str) -> set[str]:
    return set(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))


def _without_site(given: str, headings: list[str], sites: list[str]) -> str:
    """Drop what stands beside a seam, if a heading or the site's own name shows that it is not part of the title."""
    whole = _folded(given)
    if any(_folded(heading) == whole for heading in headings):
        return given
    known = {_folded(site) for site in sites} - {""}
    for seam in _SEAM.finditer(given):
        left, right = given[: seam.start()].strip(), given[seam.end() :].strip()
        if _is_heading(left, headings) or (_folded(right) in known and left):
            return left
        if _is_heading(right, headings) or (_folded(left) in known and right):
            return right
    return given


def _is_heading(part: str, headings: list[str]) -> bool:
    """Short words prove nothing: they may be the name of a section."""
    folded = _folded(part)
    return len(folded) > 3 and any(_folded(heading) == folded for heading in headings)


def _folded(text: str) -> str:
    text = unicodedata.normalize("NFKC", text).casefold()
    return "".join(letter for letter in text if letter.isalnum())


def stated_byline(head: PageHead) -> str | None:
    """Return who wrote the article, if the head of the page says so: no guess from a line of the text."""
    given = [entity_name(thing.get("author") or thing.get("creator")) for thing in head.articles()]
    given += [head.first(name) for name in AUTHORS]
    return next(filter(None, map(_person, given)), None)


def _marked_bylines(root: Element, blocks: list[Block]) -> Iterator[str | None]:
    """Yield what is marked as an author in the tree or by a class, and blocks that begin like a byline."""
    for element in _BYLINES(root)[:8]:
        yield _signed(" ".join(element.itertext()))
    for block in blocks[:MOST_BLOCKS]:
        if len(block.text) <= LONGEST_BYLINE and (_BY.match(block.text) or _names_author(block.scope)):
            yield _signed(block.text)


def repeats_byline(block: Block, byline: str | None) -> bool:
    """Whether a block says who wrote the article, and nothing else but perhaps when."""
    signed = _signed(block.text)
    return signed is not None and byline is not None and signed.casefold() == byline.casefold()


def _names_author(scope: BlockScope) -> bool:
    names = (scope.element.get("class") or "").lower()
    return "author" in names or "byline" in names


def _signed(text: str) -> str | None:
    text = " ".join(text.split())
    return _person(_AFTER.sub("", _BY.sub("", text))) if len(text) <= LONGEST_BYLINE else None


def _person(name: str | None) -> str | None:
    """Return the name if it is a person's, not an address or a role."""
    if not name:
        return None
    name = _BY.sub("", name).strip(" ,;:|-–")
    if not 2 <= len(name) <= LONGEST_BYLINE or _ADDRESS.search(name) or _NOBODY.match(name):
        return None
    return name


def _site(head: PageHead, url: str | None) -> str | None:
    named = next(iter(head.site_names()), None)
    if named:
        return named[:200]
    return _host_of(url) or None


def _published(root: Element, head: PageHead, url: str | None) -> str | None:
    """htmldate finds the day. If the page gives a time of that day in a form for machines, it is kept."""
    day = find_date(root, extensive_search=False, original_date=True, url=url, min_date=OLDEST)
    if day is None:
        return None
    return next((stamp for stamp in _timestamps(root, head) if stamp.startswith(day)), str(day))


def _timestamps(root: Element, head: PageHead) -> Iterator[str]:
    given = [
        thing.get(key) for key in ("datePublished", "dateCreated", "uploadDate") for thing in head.things
    ]
    given += [value for name, values in head.meta.items() if not _CHANGED.search(name) for value in values]
    given += [element.get("datetime") or element.get("content") for element in _TIMES(root)[:MOST_TIMES]]
    for value in given:
        if isinstance(value, str) and ":" in value:
            with suppress(ValueError):
                yield datetime.fromisoformat(value.strip()[:LONGEST_TIMESTAMP]).isoformat()


def _language(head: PageHead, text: str) -> str | None:
    given = (head.language, *(head.first(name) for name in LANGUAGES))
    for name in given:
        if name and _LANGUAGE.match(name.strip()):
            return name.strip().replace("_", "-")
    language, distance = detect_fast(text[:5000])
    return str(language) if distance <= UNSURE else None


def _picture(head: PageHead, base_url: str | None) -> str | None:
    given = [head.first(name) for name in PICTURES]
    given += [_picture_address(thing.get("image")) for thing in head.articles()]
    return next((found for one in given if one and (found := absolute_url(one, base_url))), None)


def _picture_address(image: object) -> str | None:
    if isinstance(image, list):
        return _picture_address(image[0]) if image else None
    if isinstance(image, dict):
        return _picture_address(image.get("url"))
    return image if isinstance(image, str) else None


def _excerpt(head: PageHead) -> str | None:
    """As the page describes itself. Without that, a list shows the first words of the text."""
    return next(
        (_shortened(value) for name in EXCERPTS if (value := head.first(name)) and len(value) > 20), None
    )


def _shortened(text: str) -> str | None:
    text = " ".join(text[: 4 * LONGEST_EXCERPT].split())
    if len(text) <= LONGEST_EXCERPT:
        return text or None
    cut = text[: LONGEST_EXCERPT - 1]
    return (cut.rpartition(" ")[0] or cut).rstrip(" ,;:.") + "…"
