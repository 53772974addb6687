"""Texts to search in, written in bulk without the work that makes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from sqlalchemy import bindparam, insert, select

from nexus.db.chunks import chunks, vectors, word_languages
from nexus.db.session import Session, Sessions, Statement
from nexus.db.tables import fragments, library_media, media, memberships, revisions
from nexus.db.upserts import insert_or_nothing
from nexus.extract import Facts
from nexus.libraries import access
from nexus.media.searching.chunking import Chunk, TextPiece, cut_chunks
from nexus.search.analysis import stemmed_in
from nexus.search.scope import SearchScope

#: How many texts are written at a time.
TOGETHER = 200
READABLE = (
    select(library_media.c.media_id, access.shown_revision().label("revision"))
    .join(memberships, memberships.c.library_id == library_media.c.library_id)
    .join(media, media.c.id == library_media.c.media_id)
    .where(memberships.c.user_id == bindparam("viewer"))
    .group_by(library_media.c.media_id)
)


class SearchText(NamedTuple):
    """An item to find. Its revision is what the library holds."""

    text: str
    title: str | None = None
    byline: str | None = None
    language: str | None = None
    media_id: UUID | None = None
    revision: int = 1
    #: Cut already, or cut when the text is written.
    chunks: Sequence[Chunk] | None = None


def _insert(table: Any, *names: str) -> Statement:
    return Statement(insert(table).values({table.c[name]: bindparam(name) for name in names}))


_MEDIA = _insert(
    media, "id", "kind", "run_after", "created_by_user_id", "created_at", "updated_at", "revision"
)
_REVISION = _insert(
    revisions,
    *("media_id", "number", "title", "content_hash", "origin", "extractor", "byline", "language", "words"),
    *("pieces", "characters", "outline", "written_at", "seen_at", "seen_by"),
)
_FRAGMENT = _insert(fragments, "media_id", "revision", "position", "id", "text")
_HOLD = _insert(library_media, "library_id", "media_id", "added_at")
_CHUNK = _insert(
    chunks,
    *("media_id", "revision", "position", "fragment", "start", "end", "id", "head", "words", "length"),
)
_VECTOR = _insert(vectors, "media_id", "chunk_id", "model", "vector")
_LANGUAGE = insert_or_nothing(word_languages)


def everything_of_viewer(viewer: UUID) -> SearchScope:
    """Return all that a viewer may read, without filters."""
    return SearchScope(READABLE, {"viewer": viewer})


def add_texts(sessions: Sessions, viewer: UUID, texts: Iterable[SearchText]) -> list[UUID]:
    """Put texts into the viewer's own library, ready to be found by their words. A known item gets a revision."""
    added: list[UUID] = []
    given = iter(texts)
    with sessions.begin() as session:
        library = access.ensure_user(session, viewer)
        while some := list(islice(given, TOGETHER)):
            added += _add(session, viewer, library, some)
    return added


def add_vectors(sessions: Sessions, model: str, made: Mapping[tuple[UUID, UUID], bytes]) -> None:
    """Write the vectors of chunks, by item and chunk."""
    with sessions.begin() as session:
        rows = [
            {"media_id": media_id, "chunk_id": chunk_id, "model": model, "vector": vector}
            for (media_id, chunk_id), vector in made.items()
        ]
        session.run_many(_VECTOR, rows)


def _add(session: Session, viewer: UUID, library: UUID, texts: list[SearchText]) -> list[UUID]:
    ids = [text.media_id or uuid4() for text in texts]
    times = {"created_at": session.now, "updated_at": session.now, "run_after": session.now}
    new = [media_id for media_id, text in zip(ids, texts, strict=True) if text.media_id is None]
    own = {"kind": "web_article", "created_by_user_id": viewer, "revision": 1, **times}
    session.run_many(_MEDIA, [{"id": media_id, **own} for media_id in new])
    held = {"library_id": library, "added_at": session.now}
    session.run_many(_HOLD, [{"media_id": media_id, **held} for media_id in new])
    pairs = list(zip(ids, texts, strict=True))
    session.run_many(_REVISION, [_revision(session, *pair) for pair in pairs])
    session.run_many(_FRAGMENT, [_fragment(*pair) for pair in pairs])
    session.run_many(_CHUNK, [row for pair in pairs for row in _chunks(*pair)])
    for language in {stemmed_in(text.language) for text in texts}:
        session.run(_LANGUAGE, language=language)
    return ids


def _fragment(media_id: UUID, given: SearchText) -> dict[str, Any]:
    return {
        "media_id": media_id,
        "revision": given.revision,
        "position": 0,
        "id": uuid4(),
        "text": given.text,
    }


def _chunks(media_id: UUID, given: SearchText) -> Iterator[dict[str, Any]]:
    facts = Facts(byline=given.byline, language=given.language)
    cut = given.chunks or cut_chunks(given.title, facts, [TextPiece(0, given.text, None)])
    for chunk in cut:
        yield {"media_id": media_id, "revision": given.revision, **chunk._asdict()}


def _revision(session: Session, media_id: UUID, given: SearchText) -> dict[str, Any]:
    return {
        "media_id": media_id,
        "number": given.revision,
        "title": given.title,
        "byline": given.byline,
        "language": given.language,
        "content_hash": uuid4().hex,
        "origin": "extracted",
        "extractor": "test",
        "words": 0,
        "pieces": 1,
        "characters": len(given.text),
        "outline": "[]",
        "written_at": session.now,
        "seen_at": session.now,
        "seen_by": "test",
    }
