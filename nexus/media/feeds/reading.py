"""Fetches feeds, reads them in a parser process, and makes what they say fit for the database."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from typing import NamedTuple
from uuid import UUID

from nexus import urls
from nexus.db.tables import UNSTORABLE
from nexus.errors import ExtractionFailed, FeedGone, FetchFailed, InvalidUrl
from nexus.extract import Hints
from nexus.extract.feeds import FEED_READER
from nexus.extract.feeds.results import FeedEntry, FeedReading
from nexus.extract.safe_html import safe_html
from nexus.fetch import Download, NotModified
from nexus.media.workbench import Tools

ACCEPT_FEED = (
    "application/atom+xml, application/rss+xml, application/feed+json, application/xml;q=0.9, text/xml;q=0.9, "
    "*/*;q=0.1"
)
WEB = ("http://", "https://")
#: A date that lies further ahead is a mistake.
AHEAD = timedelta(days=1)
LARGEST_NUMBER = 2**31 - 1
GONE = 410


#: Reads a feed in a parser process, in somebody's turn.
Read = Callable[[type[FeedReading], str, bytes, Hints], FeedReading]


@dataclass(frozen=True)
class FeedAnswer:
    """What a feed says, and where it was found."""

    reading: FeedReading
    #: Where the redirects ended.
    url: str
    #: Where it has moved for good.
    moved_to: str | None
    etag: str | None
    last_modified: str | None


class ToldFeed(NamedTuple):
    """What a feed says about itself, by the columns of `feeds`."""

    title: str | None
    author: str | None
    description: str | None
    language: str | None
    site_url: str | None
    picture_url: str | None
    is_podcast: bool


class ToldItem(NamedTuple):
    """What a feed says about one of its items, by the columns of `feed_items`.

    The digest is made of everything before it, in this order: another order would make every item a changed one.
    """

    told_by: str | None
    guid: str | None
    title: str | None
    author: str | None
    summary: str | None
    language: str | None
    url: str | None
    picture_url: str | None
    enclosure_url: str | None
    chapters_url: str | None
    enclosure_type: str | None
    enclosure_bytes: int | None
    seconds: float | None
    season: int | None
    number: int | None
    html: str | None
    text: str | None
    published_at: datetime | None
    chapters: str
    transcripts: str
    digest: str
    identity: str
    shown_at: datetime


@dataclass(frozen=True)
class NothingNew:
    """The feed says what it said before."""


def fetch_feed(
    tools: Tools, user: UUID, url: str, etag: str | None = None, last_modified: str | None = None
) -> FeedAnswer | NothingNew:
    """Fetch and read a feed in the turn of a user, if it has changed.

    Raises FetchFailed, FeedUnreadable or kinds of them.
    """
    try:
        answer = tools.fetcher.get_data(url, ACCEPT_FEED, etag=etag, last_modified=last_modified)
        if isinstance(answer, NotModified):
            if answer.url == url:
                return NothingNew()
            # The address leads elsewhere now. What is there has to be read: anybody can call their own feed by the
            # version of another.
            answer = tools.fetcher.get_data(url, ACCEPT_FEED)
    except FetchFailed as error:
        raise (FeedGone() if error.http_status == GONE else error) from error
    if isinstance(answer, NotModified):
        return NothingNew()
    read = partial(tools.sandbox.read_as, user=user)
    return _where_it_is_now(tools, read, read_answer(answer, read))


def _where_it_is_now(tools: Tools, read: Read, found: FeedAnswer) -> FeedAnswer:
    """Return the feed that a podcast names as its new one, as if it had redirected there for good.

    It has to answer and to be the same podcast; otherwise the one that names it stays. One that answers later is looked
    for again.
    """
    named = _other_address(found)
    if named is None:
        return found
    try:
        answer = tools.fetcher.get_data(named, ACCEPT_FEED)
        there = None if isinstance(answer, NotModified) else read_answer(answer, read)
    except (FetchFailed, ExtractionFailed) as error:
        return replace(found, etag=None, last_modified=None) if error.transient else found
    if there is None or _other_address(there) not in {None, named}:
        return found
    if not _is_same_podcast(found.reading, there.reading):
        return found
    # What the new one said of its version is nothing to ask the old one about.
    return FeedAnswer(there.reading, there.url, there.moved_to or named, None, None)


def _other_address(found: FeedAnswer) -> str | None:
    """Return where a podcast says that it has moved, if that is elsewhere. Many name their own address."""
    try:
        named = urls.identify_article(found.reading.new_feed_url or "").canonical_url
        own = {urls.identify_article(one).canonical_url for one in (found.url, found.moved_to) if one}
    except InvalidUrl:
        return None
    return None if named in own or not is_podcast(found.reading) else named


def _is_same_podcast(old: FeedReading, new: FeedReading) -> bool:
    """Whether at least half of the episodes of the one that has fewer are also in the other."""
    ours, theirs = ({one.guid or one.enclosure_url for one in each.entries} - {None} for each in (old, new))
    common = ours & theirs
    return is_podcast(new) and bool(common) and 2 * len(common) >= min(len(ours), len(theirs))


def read_answer(answer: Download, read: Read) -> FeedAnswer:
    """Read what an address answered as a feed. Raises FeedUnreadable, or another ExtractionFailed."""
    hints = Hints(answer.url, answer.content_type_header, answer.charset)
    reading = read(FeedReading, FEED_READER, answer.body, hints)
    return FeedAnswer(reading, answer.url, answer.moved_to, answer.etag, answer.last_modified)


def told_feed(reading: FeedReading) -> ToldFeed:
    """Return what a feed says about itself, fit for the database."""
    return ToldFeed(
        title=_text(reading.title),
        author=_text(reading.author),
        description=_text(reading.description),
        language=_text(reading.language),
        site_url=_web(reading.site_url),
        picture_url=_web(reading.picture_url),
        is_podcast=is_podcast(reading),
    )


def is_podcast(reading: FeedReading) -> bool:
    """Whether at least half of its items have something to hear or see."""
    return 0 < len(reading.entries) <= 2 * sum(_web(one.enclosure_url) is not None for one in reading.entries)


def told_items(reading: FeedReading, now: datetime, told_by: str | None = None) -> list[ToldItem]:
    """Return what a feed says about its items, each once and fit for the database; `told_by` is the host that answered.

    A guid that different items share says nothing.
    """
    # Of those without a date, a feed names the latest first.
    moments = (now - timedelta(microseconds=place) for place in range(len(reading.entries)))
    items = [_item(entry, at, told_by) for entry, at in zip(reading.entries, moments, strict=True)]
    shared = _shared_guids(items)
    found: dict[str, ToldItem] = {}
    for item in items:
        own = item._replace(guid=None) if item.guid in shared else item
        identity = _hash(_same_if(own))
        found.setdefault(identity, own._replace(identity=identity))
    return list(found.values())


def _shared_guids(items: Iterable[ToldItem]) -> set[str]:
    different = {(item.guid, item.url, item.enclosure_url) for item in items if item.guid}
    counted = Counter(guid for guid, _, _ in different)
    return {guid for guid, many in counted.items() if many > 1}


def _same_if(item: ToldItem) -> list[str | None]:
    if item.guid:
        return ["guid", item.guid]
    published = None if item.published_at is None else item.published_at.isoformat()
    if item.enclosure_url:
        return ["enclosure", item.enclosure_url, published]
    return ["page", item.url] if item.url else ["text", item.title, published, item.summary]


def _item(entry: FeedEntry, now: datetime, told_by: str | None) -> ToldItem:
    published = _moment(entry.published, now)
    html, text = _checked(entry)
    item = ToldItem(
        told_by=told_by,
        guid=_text(entry.guid),
        title=_text(entry.title),
        author=_text(entry.author),
        summary=_text(entry.summary),
        language=_text(entry.language),
        url=_web(entry.url),
        picture_url=_web(entry.picture_url),
        enclosure_url=_web(entry.enclosure_url),
        chapters_url=_web(entry.chapters_url),
        enclosure_type=_text(entry.enclosure_type),
        enclosure_bytes=entry.enclosure_bytes,
        seconds=entry.seconds,
        season=_small(entry.season),
        number=_small(entry.number),
        html=html,
        text=text,
        published_at=published,
        chapters=json.dumps([[one.seconds, _text(one.title)] for one in entry.chapters]),
        transcripts=json.dumps([one._asdict() for one in entry.transcripts if _web(one.url)]),
        digest="",
        identity="",
        shown_at=published or now,
    )
    told = item._asdict().items()
    before = islice(told, ToldItem._fields.index("digest"))
    return item._replace(digest=_hash([[name, str(value)] for name, value in before if value is not None]))


def _checked(entry: FeedEntry) -> tuple[str | None, str | None]:
    text = _text(entry.text)
    if text is None or entry.html is None or text != entry.text:
        return None, text
    return safe_html(entry.html, text), text


def _moment(told: str | None, now: datetime) -> datetime | None:
    if told is None:
        return None
    try:
        found = datetime.fromisoformat(told)
        found = found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return found if found <= now + AHEAD else None


def _text(given: str | None) -> str | None:
    return UNSTORABLE.sub("", given).strip() or None if given else None


def _web(address: str | None) -> str | None:
    return _text(address) if address is not None and address.startswith(WEB) else None


def _small(number: int | None) -> int | None:
    return number if number is not None and 0 <= number <= LARGEST_NUMBER else None


def _hash(parts: object) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
