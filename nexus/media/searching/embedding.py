"""Embedding as work: the vectors of an item's chunks are made, and written together with its status.

An item that has just become readable is claimed by its status. Whatever comes later, another revision or another model,
is asked for by a row of `indexing`, which also gives chunks to texts from before there were any.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import bindparam, select

from nexus.db.chunks import indexing
from nexus.db.rows import IndexingRow, MediaRow
from nexus.db.session import Query, Session
from nexus.db.tables import media
from nexus.embed import Embedded, Embedder
from nexus.errors import EmbeddingFailed, EmbeddingUnusable, WorkError
from nexus.libraries import quota
from nexus.media import lifecycle
from nexus.media.lifecycle import EMBEDDING
from nexus.media.searching import vectors
from nexus.media.searching.indexing import BACKLOG, ERRANDS, INDEXING, cut_uncut, unembedded_texts
from nexus.media.searching.vectors import BEFORE_READY, Made
from nexus.media.workbench import Tools
from nexus.queue import Work
from nexus.states.media import MediaStatus
from nexus.work.errands import ErrandHandler, held_by
from nexus.work.handler import WORKER, Claim, EndedAttempt, Handler, Hold
from nexus.work.retry import Again, decide

#: How often people are shown how far it has come.
PROGRESS_SECONDS = 1.0
#: About how many characters a token has.
TOKEN_LENGTH = 4


class _Status(NamedTuple):
    processing_status: MediaStatus


_STATUS = Query(select(media.c.processing_status).where(media.c.id == bindparam("media_id")), _Status)
_GIVE_UP = ERRANDS.let_go(error_code=bindparam("code", type_=indexing.c.error_code.type))


class Embedding(Handler[MediaRow, Made | EmbeddingFailed]):
    """Items that have just become readable. Several at once, so that short texts fill the model's batches together."""

    kind = EMBEDDING
    backlog = lifecycle.UNEMBEDDED_BACKLOG
    log_event, log_id = "embedding", "media_id"
    share = 0.5

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    def lanes(self) -> Sequence[str | None]:
        return (None,) if present_embedder(self._tools) is not None else ()

    def claim(self, session: Session, row_id: UUID, lease: timedelta) -> Claim[MediaRow] | None:
        if present_embedder(self._tools) is None:
            return None
        row = lifecycle.worker_start_embedding(session, row_id, lease)
        return None if row is None else _claimed(row)

    def claim_due(
        self,
        session: Session,
        lane: str | None,  # noqa: ARG002
        user_id: UUID,
        most: int,
        lease: timedelta,
    ) -> list[Claim[MediaRow]]:
        return [_claimed(row) for row in lifecycle.claim_unembedded(session, user_id, most, lease)]

    def do(self, claim: Claim[MediaRow]) -> Made | EmbeddingFailed:
        row = claim.subject
        return _made(self._tools, row.id, row.created_by_user_id, claim.hold.attempt)

    def settle(self, ended: Sequence[EndedAttempt[MediaRow, Made | EmbeddingFailed]]) -> list[str]:
        return [self._settled(one.claim, one.result) for one in ended]

    def put_down(
        self, session: Session, hold: Hold, again: Again | None, error: WorkError | None, actor: str
    ) -> bool:
        vectors.end_progress(session, hold.work.id)
        return lifecycle.put_down(session, hold.work.id, hold.attempt, again, error, actor)

    def _settled(self, claim: Claim[MediaRow], result: Made | EmbeddingFailed) -> str:
        row, attempt = claim.subject, claim.hold.attempt
        with self._tools.sessions.begin() as session:
            if isinstance(result, EmbeddingFailed):
                again = decide(result, claim.tries, self._tools.backoff_seconds)
                if not self.put_down(session, claim.hold, again, result, WORKER):
                    return "stale"
                _record_tokens(session, row.id, row.created_by_user_id, result.tokens_used)
                return "failed" if again is None else "released"
            if not lifecycle.mark_embedded(session, row.id, attempt):
                return "stale"
            _write(session, row.id, row.created_by_user_id, result)
        return "ready"


class Indexing(ErrandHandler[IndexingRow, IndexingRow, Made | EmbeddingFailed | None]):
    """What was asked for apart from an item's status. A result of None says that there was nothing to embed."""

    kind = INDEXING
    backlog, errands = BACKLOG, ERRANDS
    log_event, log_id = "indexing", "indexing_id"
    share = 0.25

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    def take(self, session: Session, row: IndexingRow) -> Claim[IndexingRow]:  # noqa: ARG002
        return Claim(Hold(Work(INDEXING, row.id), row.attempt), row.tries, row, None)

    def do(self, claim: Claim[IndexingRow]) -> Made | EmbeddingFailed | None:
        row = claim.subject
        cut_uncut(self._tools.sessions, row.media_id)
        with self._tools.sessions.read() as session:
            found = session.first(_STATUS, media_id=row.media_id)
        if found is None or found.processing_status in BEFORE_READY or present_embedder(self._tools) is None:
            return None
        return _made(self._tools, row.media_id, row.user_id, row.attempt)

    def give_up(self, session: Session, hold: Hold, error: WorkError) -> bool:
        return session.run(_GIVE_UP, code=error.code, **held_by(hold)) > 0

    def settle_one(self, claim: Claim[IndexingRow], result: Made | EmbeddingFailed | None) -> str:
        row = claim.subject
        with self._tools.sessions.begin() as session:
            if isinstance(result, EmbeddingFailed):
                again = decide(result, claim.tries, self._tools.backoff_seconds)
                if not self.put_down(session, claim.hold, again, result, WORKER):
                    return "stale"
                _record_tokens(session, row.media_id, row.user_id, result.tokens_used)
                return "given up" if again is None else "released"
            if not ERRANDS.finish(session, claim.hold):
                return "stale"
            vectors.end_progress(session, row.media_id)
            if result is not None:
                _write(session, row.media_id, row.user_id, result)
        return "indexed"


def present_embedder(tools: Tools) -> Embedder | None:
    """Return the embedder if it can be used now: it is not off, and its model is installed."""
    embedder = tools.embedder
    return embedder if embedder is not None and embedder.missing is None else None


def _made(tools: Tools, media_id: UUID, user_id: UUID, attempt: int) -> Made | EmbeddingFailed:
    """Make the vectors that an item lacks. Texts from before there were chunks get them first."""
    embedder = tools.embedder
    assert embedder is not None, "claimed without an embedder"  # noqa: S101
    try:
        cut_uncut(tools.sessions, media_id)
        with tools.sessions.read() as session:
            lacking = unembedded_texts(session, media_id, embedder.model)
            known = vectors.dimension_of(session, embedder.model)
        if not lacking:
            return Made(embedder.model, {}, 0)
        expected = sum(len(one.text) for one in lacking) // TOKEN_LENGTH
        quota.require_embedding(tools.sessions, tools.limits, user_id, expected)
        watch = _watch(tools, media_id, attempt, len(lacking))
        done = embedder.embed([one.text for one in lacking], watch)
        _require_dimension(done, known)
    except EmbeddingFailed as error:
        return error
    by_chunk = {one.id: vector for one, vector in zip(lacking, done.vectors, strict=True)}
    return Made(embedder.model, by_chunk, done.tokens)


def _require_dimension(done: Embedded, known: int | None) -> None:
    """A server may have another model by now under the same name, whose vectors can't be compared with earlier ones."""
    found = len(done.vectors[0]) // vectors.FLOAT_BYTES
    if known not in {None, found}:
        error = EmbeddingUnusable(
            f"The embedding model's vectors have {found} numbers, but earlier ones have {known}. If the server has "
            "another model now, set its name in NEXUS_EMBED_MODEL and restart Nexus."
        )
        error.tokens_used = done.tokens
        raise error


def _watch(tools: Tools, media_id: UUID, attempt: int, total: int) -> Callable[[int], None]:
    """Return a function that takes the number of texts done, and shows it to people now and then."""
    told = time.monotonic()

    def watch(done: int) -> None:
        nonlocal told
        if time.monotonic() - told >= PROGRESS_SECONDS and done < total:
            told = time.monotonic()
            with tools.sessions.begin() as session:
                vectors.tell_progress(session, media_id, attempt, done, total)

    return watch


def _write(session: Session, media_id: UUID, user_id: UUID, made: Made) -> None:
    vectors.write_vectors(session, media_id, made)
    vectors.end_progress(session, media_id)
    _record_tokens(session, media_id, user_id, made.tokens)


def _record_tokens(session: Session, media_id: UUID, user_id: UUID, tokens: int) -> None:
    """Of what failed, too: a server has counted them."""
    if tokens:
        quota.record_usage(session, user_id, quota.Operation.EMBED_TOKENS, tokens, media_id)


def _claimed(row: MediaRow) -> Claim[MediaRow]:
    hold = Hold(Work(EMBEDDING, row.id), row.processing_attempts)
    return Claim(hold, row.tries, row, row.request_id)
