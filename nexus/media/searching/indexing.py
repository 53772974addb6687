"""What is still to be indexed: requests, texts without chunks, and chunks without a vector."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple
from uuid import UUID, uuid4

from sqlalchemy import and_, bindparam, exists, literal_column, null, select

from nexus.db.chunks import ABOUT, INDEXING_WAITING, chunks, indexing, vectors, word_languages
from nexus.db.rows import IndexingRow
from nexus.db.session import Query, Session, Sessions, Statement
from nexus.db.tables import fragments, insert_all, media, revisions
from nexus.db.upserts import insert_or_nothing, upsert
from nexus.extract import Facts
from nexus.media.searching.chunking import TextPiece, about_text, cut_chunks
from nexus.search.analysis import DEFAULT, stemmed_in
from nexus.work.backlog import Backlog
from nexus.work.errands import Errands

INDEXING = "indexing"
BACKLOG = Backlog(
    indexing,
    key=indexing.c.id,
    fence=indexing.c.attempt,
    user=indexing.c.user_id,
    waiting=INDEXING_WAITING,
)
ERRANDS = Errands(BACKLOG, IndexingRow)


class _TextHead(NamedTuple):
    number: int
    title: str | None
    byline: str | None
    site: str | None
    language: str | None

    @property
    def facts(self) -> Facts:
        return Facts(byline=self.byline, site=self.site, language=self.language)


class _Locked(NamedTuple):
    id: UUID


class _ChunkPlace(NamedTuple):
    """Where a chunk without a vector is."""

    revision: int
    fragment: int
    start: int
    end: int
    id: UUID


class _FragmentText(NamedTuple):
    text: str


class ChunkText(NamedTuple):
    id: UUID
    text: str


_REQUEST = upsert(
    indexing,
    {
        indexing.c.id: bindparam("id"),
        indexing.c.media_id: bindparam("media_id"),
        indexing.c.user_id: bindparam("user_id"),
        indexing.c.run_after: bindparam("now"),
    },
    lambda new: new.on_conflict_do_update(
        index_elements=[indexing.c.media_id],
        set_={"run_after": new.excluded.run_after, "tries": literal_column("0"), "error_code": null()},
    ),
)
_USE_LANGUAGE = insert_or_nothing(word_languages)
_HEAD = (
    revisions.c.number,
    revisions.c.title,
    revisions.c.byline,
    revisions.c.site,
    revisions.c.language,
)
_HAS_CHUNKS = exists(
    select(chunks.c.key)
    .where(
        chunks.c.media_id == revisions.c.media_id,
        chunks.c.revision == revisions.c.number,
        chunks.c.position == literal_column(str(ABOUT)),
    )
    .correlate(revisions)
)
_UNCUT = Query(
    select(*_HEAD)
    .where(revisions.c.media_id == bindparam("media_id"), ~_HAS_CHUNKS)
    .order_by(revisions.c.number),
    _TextHead,
)
_ONE_HEAD = Query(
    select(*_HEAD).where(
        revisions.c.media_id == bindparam("media_id"), revisions.c.number == bindparam("number")
    ),
    _TextHead,
)
_PIECES = Query(
    select(fragments.c.position, fragments.c.text, fragments.c.html)
    .where(fragments.c.media_id == bindparam("media_id"), fragments.c.revision == bindparam("number"))
    .order_by(fragments.c.position),
    TextPiece,
)
_ONE_TEXT = Query(
    select(fragments.c.text).where(
        fragments.c.media_id == bindparam("media_id"),
        fragments.c.revision == bindparam("number"),
        fragments.c.position == bindparam("position"),
    ),
    _FragmentText,
)
#: Of two processes that find the same text uncut, one waits for the other.
_LOCK = Query(
    select(media.c.id).where(media.c.id == bindparam("media_id")).with_for_update(key_share=True), _Locked
)
_WRITE = Statement(insert_all(chunks))
_HAS_VECTOR = exists(
    select(vectors.c.seq)
    .where(
        vectors.c.media_id == chunks.c.media_id,
        vectors.c.chunk_id == chunks.c.id,
        vectors.c.model == bindparam("model"),
    )
    .correlate(chunks)
)
UNEMBEDDED_CHUNK = and_(chunks.c.length > literal_column("0"), ~_HAS_VECTOR)
_UNEMBEDDED = Query(
    select(chunks.c.revision, chunks.c.fragment, chunks.c.start, chunks.c.end, chunks.c.id)
    .where(chunks.c.media_id == bindparam("media_id"), UNEMBEDDED_CHUNK)
    .order_by(chunks.c.revision, chunks.c.position),
    _ChunkPlace,
)


def request_indexing(session: Session, media_id: UUID, user_id: UUID) -> None:
    """Ask for all texts of an item to be indexed, in the turn of a user."""
    session.run(_REQUEST, id=uuid4(), media_id=media_id, user_id=user_id, now=session.now)


def use_languages(session: Session, languages: Iterable[str | None]) -> None:
    """Remember in which languages words are stemmed, so that questions are, too."""
    for language in sorted({*map(stemmed_in, languages)} - {DEFAULT}):
        session.run(_USE_LANGUAGE, language=language)


def cut_uncut(sessions: Sessions, media_id: UUID) -> None:
    """Write the chunks of every text of an item that has none: those written before there were chunks."""
    with sessions.read() as session:
        uncut = session.all(_UNCUT, media_id=media_id)
    for head in uncut:
        with sessions.read() as session:
            pieces = session.all(_PIECES, media_id=media_id, number=head.number)
        made = cut_chunks(head.title, head.facts, pieces)
        with sessions.begin() as session:
            session.first(_LOCK, media_id=media_id)
            still = session.all(_UNCUT, media_id=media_id)
            if any(other.number == head.number for other in still):
                use_languages(session, [head.language])
                own = {"media_id": media_id, "revision": head.number}
                session.run_many(_WRITE, [{**own, **chunk._asdict()} for chunk in made])


def unembedded_texts(session: Session, media_id: UUID, model: str) -> list[ChunkText]:
    """Return the chunks of an item that have no vector of a model, each text once, in reading order."""
    places = session.all(_UNEMBEDDED, media_id=media_id, model=model)
    found: dict[UUID, str] = {}
    for (number, position), group in groupby(places, key=lambda place: (place.revision, place.fragment)):
        text = _text_at(session, media_id, number, position)
        for place in group:
            found.setdefault(place.id, text if position == ABOUT else text[place.start : place.end])
    return [ChunkText(*one) for one in found.items()]


def _text_at(session: Session, media_id: UUID, number: int, position: int) -> str:
    if position == ABOUT:
        head = session.first(_ONE_HEAD, media_id=media_id, number=number)
        return about_text(head.title, head.facts) if head else ""
    found = session.first(_ONE_TEXT, media_id=media_id, number=number, position=position)
    return found.text if found else ""
