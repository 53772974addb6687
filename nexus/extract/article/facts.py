"""Who wrote a page, where and when, in which language: from linked data, meta tags, and what is marked in the text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from lxml import etree
from lxml.etree import _Element as Element
from resiliparse.parse.lang import detect_fast

from nexus.extract import Facts
from nexus.extract.article import dates
from nexus.extract.article.blocks import Block, Scope
from nexus.extract.article.heads import Head, name_of
from nexus.extract.markup import absolute

LONGEST_EXCERPT = 300
LONGEST_BYLINE = 120
#: Bylines stand near the beginning.
MOST_BLOCKS = 150
#: Above this the detector is guessing.
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
PUBLISHED = (
    "article:published_time",
    "og:article:published_time",
    "og:published_time",
    "datepublished",
    "publishdate",
    "pubdate",
    "publish-date",
    "publish_date",
    "date",
    "dc.date",
    "dc.date.issued",
    "dcterms.created",
    "dcterms.date",
    "sailthru.date",
    "parsely-pub-date",
    "article.published",
    "cxenseparse:recs:publishtime",
    "citation_publication_date",
    "citation_date",
    "displaydate",
    "timestamp",
    "weibo: article:create_at",
    "bt:pubdate",
    "release_date",
    "published_at",
    "last-modified",
    "article:modified_time",
    "og:updated_time",
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

_BYLINES = etree.XPath("//*[@rel='author' or @itemprop='author']")
_TIMES = etree.XPath("//time[@datetime or @itemprop='datePublished']|//*[@itemprop='datePublished']")
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
class Source:
    """What facts are taken from: the tree, its head, its blocks, and the text that is kept."""

    root: Element
    head: Head
    blocks: list[Block]
    text: str
    url: str | None
    base_url: str | None


def gather(source: Source) -> Facts:
    root, head, text, url = source.root, source.head, source.text, source.url
    return Facts(
        byline=_byline(root, head, source.blocks),
        site=_site(head, url),
        published=_published(root, head, text, url),
        language=_language(head, text),
        lead_image=_picture(head, source.base_url),
        excerpt=_excerpt(head, text),
    )


def _byline(root: Element, head: Head, blocks: list[Block]) -> str | None:
    given = [name_of(thing.get("author") or thing.get("creator")) for thing in head.articles()]
    given += [head.first(name) for name in AUTHORS]
    said = filter(None, map(_person, given))
    return next(said, None) or next(filter(None, _marked_bylines(root, blocks)), None)


def _marked_bylines(root: Element, blocks: list[Block]) -> Iterator[str | None]:
    """What is marked as an author in the tree, named so in a class, or begins as a byline does."""
    for element in _BYLINES(root)[:8]:
        yield _signed(" ".join(element.itertext()))
    for block in blocks[:MOST_BLOCKS]:
        if len(block.text) <= LONGEST_BYLINE and (_BY.match(block.text) or _names_author(block.scope)):
            yield _signed(block.text)


def _names_author(scope: Scope) -> bool:
    names = (scope.element.get("class") or "").lower()
    return "author" in names or "byline" in names


def _signed(text: str) -> str | None:
    text = " ".join(text.split())
    return _person(_AFTER.sub("", _BY.sub("", text))) if len(text) <= LONGEST_BYLINE else None


def _person(name: str | None) -> str | None:
    """A name, and not an address or a role."""
    if not name:
        return None
    name = _BY.sub("", name).strip(" ,;:|-–")
    if not 2 <= len(name) <= LONGEST_BYLINE or _ADDRESS.search(name) or _NOBODY.match(name):
        return None
    return name


def _site(head: Head, url: str | None) -> str | None:
    named = next(iter(head.site_names()), None)
    if named:
        return named[:200]
    host = urlsplit(url).hostname if url else None
    return host.removeprefix("www.") if host else None


def _published(root: Element, head: Head, text: str, url: str | None) -> str | None:
    given = [
        thing.get(key) for key in ("datePublished", "dateCreated", "uploadDate") for thing in head.things
    ]
    given += [head.first(name) for name in PUBLISHED]
    for value in given:
        found = dates.stamp(value) if isinstance(value, str) else None
        if found:
            return found
    for element in _TIMES(root)[:5]:
        found = dates.stamp(element.get("datetime") or element.get("content") or "".join(element.itertext()))
        if found:
            return found
    return dates.in_address(url) or dates.in_text(text[:600])


def _language(head: Head, text: str) -> str | None:
    given = (head.language, *(head.first(name) for name in LANGUAGES))
    for name in given:
        if name and _LANGUAGE.match(name.strip()):
            return name.strip().replace("_", "-")
    language, distance = detect_fast(text[:5000])
    return str(language) if distance <= UNSURE else None


def _picture(head: Head, base_url: str | None) -> str | None:
    given = [head.first(name) for name in PICTURES]
    given += [_address(thing.get("image")) for thing in head.articles()]
    return next((found for one in given if one and (found := absolute(one, base_url))), None)


def _address(image: object) -> str | None:
    if isinstance(image, list):
        return _address(image[0]) if image else None
    if isinstance(image, dict):
        return _address(image.get("url"))
    return image if isinstance(image, str) else None


def _excerpt(head: Head, text: str) -> str | None:
    given = next((value for name in EXCERPTS if (value := head.first(name)) and len(value) > 20), None)
    return _shortened(given or text)


def _shortened(text: str) -> str | None:
    text = " ".join(text[: 4 * LONGEST_EXCERPT].split())
    if len(text) <= LONGEST_EXCERPT:
        return text or None
    cut = text[: LONGEST_EXCERPT - 1]
    return (cut.rpartition(" ")[0] or cut).rstrip(" ,;:.") + "…"
