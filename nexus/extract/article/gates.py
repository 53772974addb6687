"""Refuses pages that are not articles: pages without text, checks for robots, logins and paywalls.

A marker alone proves nothing: people write about captchas, and sites keep a login form on every page. Little text
alone proves nothing either. Only both together do.
"""

from __future__ import annotations

from dataclasses import dataclass

from lxml.etree import _Element as Element

from nexus.errors import BlockedPage, EmptyContent, LoginWall
from nexus.extract.article.heads import PageHead
from nexus.extract.article.phrases import CHECKS, SAYS_CHECK, SAYS_LOGIN, SAYS_WALL

LEAST = 100
#: A page that only checks its visitor has less text than this, including all its links and notes.
LONGEST_CHECK = 1200
#: A paywall lets a teaser through.
LONGEST_TEASER = 700
LONGEST_WALL = 2500
#: With less text than this, the markup of a check is proof enough.
SHORTEST = 300


@dataclass(frozen=True)
class GatedPage:
    """A page before the gates: what would be saved, and everything that a visitor sees."""

    text: str
    visible: str
    title: str
    html: str
    root: Element
    head: PageHead


def require_article(page: GatedPage) -> None:
    """Raises BlockedPage, LoginWall or EmptyContent."""
    if len(page.visible) < LONGEST_CHECK and _is_check(page):
        raise BlockedPage
    if len(page.text) < LONGEST_TEASER and _is_wall(page):
        raise LoginWall
    if len(page.text) < LEAST:
        raise EmptyContent


def _is_check(page: GatedPage) -> bool:
    said = f"{page.title} {page.visible}"
    return bool(SAYS_CHECK.search(said)) or bool(len(page.text) < SHORTEST and CHECKS.search(page.html))


def _is_wall(page: GatedPage) -> bool:
    if any(_is_closed(thing.get("isAccessibleForFree")) for thing in page.head.things):
        return True
    if len(page.visible) < LONGEST_WALL and SAYS_WALL.search(page.visible):
        return True
    asks = any((element.get("type") or "").lower() == "password" for element in page.root.iter("input"))
    named = SAYS_LOGIN.search(f"{page.title} {page.text}")
    return bool(asks and named and len(page.visible) < LONGEST_WALL)


def _is_closed(free: object) -> bool:
    return str(free).lower() in {"false", "http://schema.org/false", "https://schema.org/false"}
