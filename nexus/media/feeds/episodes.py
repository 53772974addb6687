"""Episodes of podcasts. Two are the same if their podcast gives them the same guid or, without one, if they have the
same enclosure and date. If several race to make one, the unique indexes of `episodes` decide who has."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID, uuid4

import msgspec
from sqlalchemy import bindparam, delete, func, insert, select, update

from nexus import urls
from nexus.db.feeds import episodes
from nexus.db.moves import MEDIA_ROWS, log_created
from nexus.db.rows import FeedItemRow, FeedRow
from nexus.db.session import Query, Session, Statement
from nexus.db.tables import media
from nexus.db.upserts import insert_or_nothing
from nexus.errors import Conflict
from nexus.extract.recording import NamedTranscript, Recording, TimedChapter
from nexus.media.addresses import Known
from nexus.media.recordings.facts import find_recording, keep_recording, with_saved_words
from nexus.states.media import Kind
from nexus.transcribe.merging import fill_in

#: In case others keep creating the episode and deleting it again.
MOST_TRIES = 5


class _LockedEpisode(NamedTuple):
    media_id: UUID


_OF_FEED = episodes.c.feed_id == bindparam("feed_id")
_FOUND = select(media.c.id, media.c.processing_status, media.c.run_after).join(
    episodes, episodes.c.media_id == media.c.id
)
_BY_GUID = Query(
    _FOUND.where(_OF_FEED, episodes.c.guid == bindparam("guid")).with_for_update(key_share=True, of=media),
    Known,
)
_BY_ENCLOSURE = Query(
    _FOUND.where(
        _OF_FEED,
        episodes.c.guid.is_(None),
        episodes.c.enclosure_url == bindparam("enclosure_url"),
        episodes.c.published_at.is_not_distinct_from(
            bindparam("published_at", type_=episodes.c.published_at.type)
        ),
    ).with_for_update(key_share=True, of=media),
    Known,
)
_NEW_NAMES = (
    "id",
    "kind",
    "title",
    "run_after",
    "requested_url",
    "external_playback_url",
    "host",
    "created_by_user_id",
    "created_at",
    "updated_at",
    "request_id",
)
_CREATE = Statement(insert(media).values({name: bindparam(name) for name in _NEW_NAMES}).inline())
_TAKE_BACK = Statement(delete(media).where(media.c.id == bindparam("media_id")))
_IDENTIFY = insert_or_nothing(episodes)
_LOCK = Query(
    select(episodes.c.media_id).where(episodes.c.media_id == bindparam("media_id")).with_for_update(),
    _LockedEpisode,
)
_MOVE = Statement(
    update(episodes)
    .where(episodes.c.media_id == bindparam("of_media"))
    .values(
        enclosure_url=func.coalesce(bindparam("enclosure_url"), episodes.c.enclosure_url),
        season=bindparam("season"),
        number=bindparam("number"),
    )
)
_PLAYS_FROM = Statement(
    update(media)
    .where(media.c.id == bindparam("media_id"))
    .values(external_playback_url=bindparam("enclosure_url"))
)


def get_or_create_episode(
    session: Session, feed: FeedRow, item: FeedItemRow, user_id: UUID, request_id: str | None
) -> tuple[Known, bool]:
    """Return the item of an episode, locked against deletion, and whether this call has created it.

    The caller has to put it into a library in the same transaction.
    """
    for _ in range(MOST_TRIES):
        found = _find(session, feed, item)
        if found is not None:
            return found, False
        made = _create(session, feed, item, user_id, request_id)
        if made is not None:
            return made, True
    raise Conflict


def recording_of(feed: FeedRow, item: FeedItemRow) -> Recording:
    """Return what a feed says about an episode."""
    return Recording(
        title=item.title,
        author=item.author or feed.author,
        site=feed.title,
        published=None if item.published_at is None else item.published_at.isoformat(),
        language=item.language or feed.language,
        seconds=item.seconds,
        picture_url=item.picture_url or feed.picture_url,
        notes=item.html,
        chapters_url=item.chapters_url,
        chapters=tuple(TimedChapter(*one) for one in item.chapter_list),
        transcripts=tuple(NamedTranscript(**one) for one in item.transcript_list),
        audio_url=item.enclosure_url,
        audio_type=item.enclosure_type,
        audio_bytes=item.enclosure_bytes,
    )


def update_episode(session: Session, feed: FeedRow, item: FeedItemRow) -> None:
    """Write what its feed has changed about an episode: its enclosure may have moved, a transcript been added.

    Its notes and chapters stay as people have saved them, and so does what was found out elsewhere, such as its true
    length. The feed may be the one that its own has moved to.
    """
    if item.media_id is None or item.enclosure_url is None:
        return
    if session.first(_LOCK, media_id=item.media_id) is None:
        return
    known = find_recording(session, item.media_id)
    told = recording_of(feed, item)
    session.run(
        _MOVE,
        of_media=item.media_id,
        enclosure_url=item.enclosure_url,
        season=item.season,
        number=item.number,
    )
    session.run(_PLAYS_FROM, media_id=item.media_id, enclosure_url=item.enclosure_url)
    if known is not None:
        seconds = known.recording.seconds or told.seconds
        told = with_saved_words(fill_in(told, known.recording), known.recording)
        told = msgspec.structs.replace(told, seconds=seconds)
    keep_recording(session, item.media_id, told)


def _find(session: Session, feed: FeedRow, item: FeedItemRow) -> Known | None:
    if item.guid is not None:
        return session.first(_BY_GUID, feed_id=feed.id, guid=item.guid)
    given = {"enclosure_url": item.enclosure_url, "published_at": item.published_at}
    return session.first(_BY_ENCLOSURE, feed_id=feed.id, **given)


def _create(
    session: Session, feed: FeedRow, item: FeedItemRow, user_id: UUID, request_id: str | None
) -> Known | None:
    """None if somebody else has just made it."""
    media_id = uuid4()
    session.run(
        _CREATE,
        id=media_id,
        kind=Kind.PODCAST_EPISODE.value,
        title=item.title,
        run_after=session.now,
        requested_url=item.url,
        external_playback_url=item.enclosure_url,
        host=urls.host_of(item.url or feed.site_url or feed.url),
        created_by_user_id=user_id,
        created_at=session.now,
        updated_at=session.now,
        request_id=request_id,
    )
    made = session.run(
        _IDENTIFY,
        media_id=media_id,
        feed_id=feed.id,
        guid=item.guid,
        enclosure_url=item.enclosure_url,
        published_at=item.published_at,
        season=item.season,
        number=item.number,
    )
    if made == 0:
        session.run(_TAKE_BACK, media_id=media_id)
        return None
    log_created(session, MEDIA_ROWS, media_id, actor=str(user_id))
    keep_recording(session, media_id, recording_of(feed, item))
    return Known(media_id, MEDIA_ROWS.machine.initial, session.now)
