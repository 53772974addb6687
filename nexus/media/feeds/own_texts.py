"""The text that a feed carries, for an article whose page can't be had.

It serves only if the site of the article itself has answered with it: what a feed says about another site's page proves
nothing, and everybody who has the item would read it. An address of the site that leads to a feed elsewhere proves
nothing either: many sites redirect to any address. Others read such a text with the preview.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import bindparam, func, literal_column, select

from nexus import urls
from nexus.db.feeds import feed_items, feeds, subscriptions
from nexus.db.rows import MediaRow
from nexus.db.session import Query, Sessions
from nexus.extract import Extraction, Facts, Fragment
from nexus.media.texts import Found
from nexus.states.media import Kind

#: A shorter one is only an invitation to read the page.
LEAST = 200
#: What people are told has read such a text.
FROM_FEED = "its feed"


class _Carried(NamedTuple):
    """The text of an item, and the feed that carries it."""

    told_by: str | None
    feed_title: str | None
    title: str | None
    author: str | None
    html: str | None
    text: str
    published_at: datetime | None
    language: str | None
    picture_url: str | None


_LENGTH = func.length(feed_items.c.text)
_CARRIED = Query(
    select(
        feed_items.c.told_by,
        feeds.c.title.label("feed_title"),
        *(feed_items.c[name] for name in ("title", "author", "html")),
        func.coalesce(feed_items.c.text, literal_column("''")).label("text"),
        *(feed_items.c[name] for name in ("published_at", "language", "picture_url")),
    )
    .join_from(feed_items, subscriptions, subscriptions.c.id == feed_items.c.subscription_id)
    .join(feeds, feeds.c.id == subscriptions.c.feed_id)
    .where(feed_items.c.media_id == bindparam("media_id"), literal_column(str(LEAST)) <= _LENGTH)
    .order_by(_LENGTH.desc(), feed_items.c.id)
    .limit(literal_column("20")),
    _Carried,
)


def text_from_feed(sessions: Sessions, row: MediaRow) -> Found | None:
    """Return the text that a feed on the site of an article carries; None if there is none."""
    if row.kind is not Kind.WEB_ARTICLE:
        return None
    site = urls.host_of(row.canonical_url).rstrip(".")
    with sessions.read() as session:
        carried = session.all(_CARRIED, media_id=row.id)
    own = next((one for one in carried if site and (one.told_by or "").rstrip(".") == site), None)
    return None if own is None else Found(_extraction(own), FROM_FEED)


def _extraction(own: _Carried) -> Extraction:
    facts = Facts(
        byline=own.author,
        site=own.feed_title,
        published=None if own.published_at is None else own.published_at.isoformat(),
        language=own.language,
        lead_image=own.picture_url,
    )
    return Extraction(own.title, (Fragment(own.text, own.html),), facts)
