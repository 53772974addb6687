"""An item as one viewer sees it, as columns: for queries that find items by whatever means."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Double,
    Integer,
    Select,
    Subquery,
    Text,
    and_,
    bindparam,
    case,
    func,
    literal_column,
    or_,
    select,
)

from nexus.db.feeds import episodes, feeds
from nexus.db.pictures import pictures
from nexus.db.recordings import heard, listening, recordings
from nexus.db.shelves import shelf
from nexus.db.tables import library_media, media, media_file, memberships, revisions
from nexus.libraries import access
from nexus.libraries.access import Role
from nexus.states.media import Kind, MediaStatus, Stage


class ItemRow(NamedTuple):
    """An item, its file, and what the viewer may do with it."""

    id: UUID
    kind: Kind
    #: The viewer's own title, or else that of the text.
    title: str | None
    original_title: str | None
    processing_status: MediaStatus
    failure_stage: Stage | None
    last_error_code: str | None
    last_error_message: str | None
    processing_attempts: int
    tries: int
    run_after: datetime
    processing_started_at: datetime | None
    processing_completed_at: datetime | None
    failed_at: datetime | None
    requested_url: str | None
    canonical_url: str | None
    provider: str | None
    provider_id: str | None
    external_playback_url: str | None
    host: str
    created_by_user_id: UUID
    created_at: datetime
    updated_at: datetime
    has_file: bool
    file_name: str | None
    file_size: int | None
    file_type: str | None
    has_text: bool
    #: The revision that is shown; 0 if there is none.
    revision: int
    newest_revision: int
    byline: str | None
    site: str | None
    published: str | None
    #: 0 if there is no text.
    words: int
    excerpt: str | None
    #: What the text names as its picture, and the first that was fetched for it and is large enough to be seen.
    lead_image: str | None
    picture: str | None
    #: Whether it is the viewer's own text, which does not depend on the item's state.
    is_entered: bool
    #: Whether the viewer administers a library that holds it.
    administers: bool
    managed: bool
    #: What the viewer has noted about it; nobody else sees that.
    read_at: datetime | None
    archived_at: datetime | None
    favourite_at: datetime | None
    #: How much of the text lies behind them, from 0 to 1.
    progress: float
    #: How long a recording is, the show that it belongs to, how far the viewer has heard it, and whether it is queued.
    seconds: float | None
    show: str | None
    heard: float
    is_queued: bool
    #: When the first of the viewer's libraries got it.
    held_since: datetime
    #: When the latest of the listed libraries got it.
    added_at: datetime


#: How much of an excerpt a list shows, and how wide and high a picture must be.
EXCERPT = 300
VISIBLE = 100
HELD_BY_VIEWER = memberships.c.user_id == bindparam("viewer")
#: What an item is to a viewer, made from their libraries that hold it.
SEEN: list[ColumnElement[Any]] = [
    *(media.c[name] for name in ItemRow._fields if name in media.c and name != "revision"),
    access.shown_revision().label("revision"),
    (func.max(case((memberships.c.role == Role.ADMIN.value, 1), else_=0)) == literal_column("1")).label(
        "administers"
    ),
    func.max(library_media.c.moved_at).label("moved_at"),
    func.min(library_media.c.added_at).label("held_since"),
]


def unplanned(name: str, of: ColumnElement[Any]) -> Any:
    """Return a parameter whose value PostgreSQL can't see when it plans.

    Otherwise it plans a long statement again at each call for a value that is rarer than others, and that takes several
    times as long as to run it.
    """
    return select(bindparam(name, type_=of.type)).scalar_subquery()


def item_rows(seen: Subquery, number: ColumnElement[int]) -> Select[Any]:
    """Return the rows of items that a query of `SEEN` found, with one of their revisions."""
    original = func.coalesce(revisions.c.title, recordings.c.title, seen.c.title)
    shown = {
        "title": func.coalesce(shelf.c.title, original),
        "original_title": original,
        # A library that moves to another revision changes what its readers see, and nobody else's.
        "updated_at": case((seen.c.moved_at > seen.c.updated_at, seen.c.moved_at), else_=seen.c.updated_at),
        "has_file": media_file.c.media_id.is_not(None),
        "file_name": media_file.c.filename,
        "file_size": media_file.c.size_bytes,
        "file_type": media_file.c.content_type,
        "has_text": revisions.c.media_id.is_not(None),
        "revision": number,
        "byline": func.coalesce(revisions.c.byline, recordings.c.author),
        "site": func.coalesce(revisions.c.site, recordings.c.site),
        "published": func.coalesce(revisions.c.published, recordings.c.published),
        "lead_image": revisions.c.lead_image,
        "seconds": recordings.c.seconds,
        "show": feeds.c.title,
        "heard": func.coalesce(heard.c.seconds, literal_column("0"), type_=Double),
        "is_queued": listening.c.media_id.is_not(None),
        "words": func.coalesce(revisions.c.words, literal_column("0")),
        "excerpt": func.substr(
            revisions.c.excerpt, literal_column("1"), literal_column(str(EXCERPT)), type_=Text
        ),
        "picture": _picture(seen, number),
        **{name: shelf.c[name] for name in ("read_at", "archived_at", "favourite_at")},
        "progress": func.coalesce(shelf.c.fraction, literal_column("0"), type_=Double),
        "is_entered": revisions.c.private_to.is_not(None),
        "managed": or_(seen.c.created_by_user_id == bindparam("viewer"), seen.c.administers),
    }
    columns = [(shown[name] if name in shown else seen.c[name]).label(name) for name in ItemRow._fields]
    return (
        select(*columns)
        .outerjoin_from(
            seen, revisions, and_(revisions.c.media_id == seen.c.id, revisions.c.number == number)
        )
        .outerjoin(
            media_file,
            and_(
                media_file.c.media_id == seen.c.id,
                or_(media_file.c.revision == number, media_file.c.revision == literal_column("0")),
            ),
        )
        .outerjoin(
            shelf,
            and_(shelf.c.user_id == unplanned("viewer", shelf.c.user_id), shelf.c.media_id == seen.c.id),
        )
        .outerjoin(recordings, recordings.c.media_id == seen.c.id)
        .outerjoin(episodes, episodes.c.media_id == seen.c.id)
        .outerjoin(feeds, feeds.c.id == episodes.c.feed_id)
        .outerjoin(heard, and_(heard.c.user_id == bindparam("viewer"), heard.c.media_id == seen.c.id))
        .outerjoin(
            listening, and_(listening.c.user_id == bindparam("viewer"), listening.c.media_id == seen.c.id)
        )
    )


def _picture(seen: Subquery, number: ColumnElement[int]) -> ColumnElement[str | None]:
    """The name of the first picture of a revision that is there and is not an icon."""
    least = literal_column(str(VISIBLE), Integer)
    return (
        select(pictures.c.name)
        .where(
            pictures.c.media_id == seen.c.id,
            pictures.c.revision == number,
            pictures.c.width >= least,
            pictures.c.height >= least,
        )
        .order_by(pictures.c.place)
        .limit(literal_column("1"))
        .correlate(seen)
        .scalar_subquery()
    )
