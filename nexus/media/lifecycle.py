"""The life of an item: every function here walks one edge, in the caller's transaction.

A worker's call carries the attempt it was given. If that is no longer the present one, the call changes nothing, so a
worker that froze, lost its lease and woke up can't write.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from logging import INFO, WARNING
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import bindparam, case, func, literal_column, null, select, text

from nexus import logging
from nexus.db.bulk import BulkMove, Given
from nexus.db.moves import MEDIA_ROWS, Missed, Move, Moved
from nexus.db.rows import MediaRow
from nexus.db.session import Query, Session
from nexus.db.tables import UNEMBEDDED, WAITING, media
from nexus.errors import EmbeddingTimeout, InvalidState, JobTimeout, WorkError
from nexus.libraries import access
from nexus.media import revisions
from nexus.media.addresses import record_addresses
from nexus.media.texts import Found, Readable
from nexus.states import media as edges
from nexus.states.media import HELD, Kind, MediaStatus, Stage
from nexus.work.backlog import Backlog
from nexus.work.handler import WORKER
from nexus.work.retry import Again

log = logging.get_logger(__name__)

#: The kind of work that gets the text of an item.
EXTRACTION = "extraction"
DEFAULT_LEASE = timedelta(seconds=60)
#: Items that wait for a worker, by kind.
BACKLOG = Backlog(
    media,
    key=media.c.id,
    fence=media.c.processing_attempts,
    user=media.c.created_by_user_id,
    waiting=WAITING,
    lane=media.c.kind,
)

#: The kind of work that makes the vectors of an item.
EMBEDDING = "embedding"
#: Readable items that wait for their vectors.
UNEMBEDDED_BACKLOG = Backlog(
    media,
    key=media.c.id,
    fence=media.c.processing_attempts,
    user=media.c.created_by_user_id,
    waiting=UNEMBEDDED,
)

_NO_FAILURE = dict.fromkeys(("failure_stage", "last_error_code", "last_error_message", "failed_at"), null())
_NO_LEASE = {"lease_expires_at": null()}
_CLAIM = {
    "processing_attempts": media.c.processing_attempts + literal_column("1"),
    "tries": media.c.tries + literal_column("1"),
    "lease_expires_at": bindparam("until", type_=media.c.lease_expires_at.type),
}
_START_SETS = {**_CLAIM, "processing_started_at": bindparam("now")}
_DUE = media.c.run_after <= bindparam("now")
_FAILURE = {
    "failure_stage": bindparam("stage"),
    "last_error_code": bindparam("code"),
    "last_error_message": bindparam("message"),
    "failed_at": bindparam("now"),
    **_NO_LEASE,
}
_RELEASE = {
    "run_after": bindparam("run_after", type_=media.c.run_after.type),
    "tries": media.c.tries - bindparam("uncounted", type_=media.c.tries.type),
    **_NO_LEASE,
}
_AGAIN = {
    **_NO_FAILURE,
    "tries": literal_column("0"),
    "run_after": bindparam("now"),
    "processing_started_at": null(),
    "processing_completed_at": null(),
    "request_id": bindparam("request_id", type_=media.c.request_id.type),
}
_RETRY = {
    **_AGAIN,
    "file_sha256": case((media.c.failure_stage == "upload", null()), else_=media.c.file_sha256),
}

_START = Move(MEDIA_ROWS, edges.START, row=MediaRow, sets=_START_SETS, guards=[_DUE, text(WAITING)])
_START_ALL = BulkMove(
    MEDIA_ROWS,
    edges.START,
    row=Moved,
    values={"until": media.c.lease_expires_at.type},
    sets=lambda given: {**_START_SETS, "lease_expires_at": given("until")},
    beside=(),
)


class _Numbered(NamedTuple):
    """An item that has become readable, and the number of its text."""

    id: UUID
    status_before: str | None
    fence: int
    revision: int


def _readable(given: Given) -> Mapping[str, Any]:
    """A text takes the next number, unless one was reserved for it."""
    reserved, following = given("reserved"), media.c.last_revision + literal_column("1")
    number = func.coalesce(reserved, following)
    return {
        **_NO_LEASE,
        "tries": literal_column("0"),
        "processing_completed_at": bindparam("now"),
        "title": func.coalesce(given("title"), media.c.title),
        "revision": number,
        "newest_revision": number,
        "last_revision": case((reserved.is_(None), following), else_=media.c.last_revision),
    }


_READABLE = BulkMove(
    MEDIA_ROWS,
    edges.READABLE,
    row=_Numbered,
    values={"title": media.c.title.type, "reserved": media.c.revision.type},
    sets=_readable,
    beside=revisions.TEXT,
    shared={"number": "revision", "revision": "revision"},
)
_EMBED = Move(MEDIA_ROWS, edges.EMBED, row=MediaRow, sets=_CLAIM, guards=[_DUE])
_EMBEDDED = Move(
    MEDIA_ROWS,
    edges.EMBEDDED,
    sets={**_NO_LEASE, "tries": literal_column("0"), "processing_completed_at": bindparam("now")},
    fenced=True,
)
_RELEASE_EXTRACTING = Move(MEDIA_ROWS, edges.RELEASE, sets=_RELEASE, fenced=True)
_RELEASE_EMBEDDING = Move(MEDIA_ROWS, edges.RELEASE_EMBEDDING, sets=_RELEASE, fenced=True)
_FAIL_HELD = Move(MEDIA_ROWS, edges.FAIL, sets=_FAILURE, only=HELD, fenced=True)
_FAIL_PENDING = Move(MEDIA_ROWS, edges.FAIL, sets=_FAILURE, only=frozenset({MediaStatus.PENDING}))
_SAME_STAGE = media.c.failure_stage == bindparam("stage")
_RETRY_ALL = Move(MEDIA_ROWS, edges.RETRY, row=MediaRow, sets=_RETRY, guards=[_SAME_STAGE])
_RETRY_EMBEDDING = Move(
    MEDIA_ROWS,
    edges.RETRY_EMBEDDING,
    row=MediaRow,
    sets=_AGAIN,
    guards=[_SAME_STAGE],
)


class _KindRow(NamedTuple):
    kind: Kind


class _StageRow(NamedTuple):
    failure_stage: Stage | None


class _StatusRow(NamedTuple):
    processing_status: MediaStatus


_KIND = Query(select(media.c.kind).where(media.c.id == bindparam("media_id")), _KindRow)
_STAGE = Query(select(media.c.failure_stage).where(media.c.id == bindparam("media_id")), _StageRow)
_STATUS = Query(select(media.c.processing_status).where(media.c.id == bindparam("media_id")), _StatusRow)


def worker_start_attempt(
    session: Session, media_id: UUID, lease: timedelta = DEFAULT_LEASE
) -> MediaRow | None:
    """pending → extracting. Returns the claimed row, whose processing_attempts is the fence; None if it is not due."""
    row = _START(session, media_id, actor=WORKER, until=session.now + lease)
    if isinstance(row, Missed):
        log.info("worker_start_attempt_noop", media_id=str(media_id), status=row.state)
        return None
    return row


def start_all(session: Session, attempts: Mapping[UUID, int], lease: timedelta = DEFAULT_LEASE) -> set[UUID]:
    """Start several items at once, each with the number of attempts it has had; return those that are started."""
    until = session.now + lease
    moves = [{"row_id": media_id, "fence": attempt, "until": until} for media_id, attempt in attempts.items()]
    return {row.id for row in _START_ALL(session, moves, {}, actor=WORKER)}


def claim_due(
    session: Session, kind: Kind, user_id: UUID, most: int, lease: timedelta = DEFAULT_LEASE
) -> list[MediaRow]:
    """Start up to `most` due items of one kind and user, the longest waiting first."""
    start = _start_due(most)
    return start.batch(session, actor=WORKER, until=session.now + lease, lane=kind.value, user_id=user_id)


@cache
def _start_due(most: int) -> Move[MediaStatus, MediaRow]:
    return Move(
        MEDIA_ROWS, edges.START, row=MediaRow, sets=_START_SETS, guards=[_DUE], pick=BACKLOG.pick(most)
    )


def mark_ready_for_reading(
    session: Session, media_id: UUID, attempt: int, found: Found, address: str | None = None
) -> bool:
    """extracting → ready_for_reading, with its text. False if the attempt is no longer the present one."""
    ready = Readable.of(media_id, attempt, found, address=address)
    return bool(mark_all_ready_for_reading(session, [ready]))


def mark_all_ready_for_reading(session: Session, ready: Sequence[Readable]) -> set[UUID]:
    """Make several items readable at once; return those that are readable now."""
    moves = [
        {"row_id": one.media_id, "fence": one.attempt, "title": one.title, "reserved": one.reserved}
        for one in ready
    ]
    moved = _READABLE(session, moves, revisions.text_rows(ready, session.now), actor=WORKER)
    numbers = {row.id: row.revision for row in moved}
    revisions.write_rest(session, [(numbers[one.media_id], one) for one in ready if one.media_id in numbers])
    record_addresses(session, [one for one in ready if one.media_id in numbers])
    readable = set(numbers)
    for one in ready:
        if one.media_id not in readable:
            missed = _READABLE.missed(session, one.media_id, WORKER, one.attempt)
            if _is_done("mark_ready_for_reading", one.media_id, one.attempt, missed):
                readable.add(one.media_id)
    return readable


def worker_start_embedding(
    session: Session, media_id: UUID, lease: timedelta = DEFAULT_LEASE
) -> MediaRow | None:
    """ready_for_reading → embedding. Returns the claimed row; None if it is not due."""
    row = _EMBED(session, media_id, actor=WORKER, until=session.now + lease)
    return None if isinstance(row, Missed) else row


def claim_unembedded(session: Session, user_id: UUID, most: int, lease: timedelta) -> list[MediaRow]:
    """Start embedding up to `most` items of one user, the longest waiting first."""
    until = session.now + lease
    return _embed_due(most).batch(session, actor=WORKER, until=until, user_id=user_id)


@cache
def _embed_due(most: int) -> Move[MediaStatus, MediaRow]:
    pick = UNEMBEDDED_BACKLOG.pick(most)
    return Move(MEDIA_ROWS, edges.EMBED, row=MediaRow, sets=_CLAIM, guards=[_DUE], pick=pick)


def mark_embedded(session: Session, media_id: UUID, attempt: int) -> bool:
    """embedding → ready. False if the attempt is no longer the present one."""
    row = _EMBEDDED(session, media_id, actor=WORKER, fence=attempt)
    return _is_done("mark_embedded", media_id, attempt, row)


def mark_failed(
    session: Session,
    media_id: UUID,
    stage: Stage,
    error_code: str,
    error_message: str,
    attempt: int | None = None,
    actor: str = WORKER,
) -> bool:
    """→ failed. False if it is not the failure of the present attempt: a late one never overwrites a success.

    Without an attempt it is the failure of an upload that no worker has begun to read.
    """
    values: dict[str, Any] = {"stage": stage.value, "code": error_code, "message": error_message}
    if attempt is None:
        row = _FAIL_PENDING(session, media_id, actor=actor, error_code=error_code, **values)
    else:
        row = _FAIL_HELD(session, media_id, actor=actor, error_code=error_code, fence=attempt, **values)
    if isinstance(row, Missed) and row.state in {MediaStatus.READY, MediaStatus.READY_FOR_READING}:
        log.warning("late_failure_ignored", media_id=str(media_id), error_code=error_code, status=row.state)
        return False
    return _is_done("mark_failed", media_id, attempt, row)


def release(
    session: Session,
    media_id: UUID,
    attempt: int,
    error_code: str | None,
    run_after: datetime,
    actor: str = WORKER,
    *,
    counted: bool = True,
) -> bool:
    """Back to where the claim found it, to be tried again at `run_after`.

    A try that could not begin is not counted: waiting is not trying.
    """
    values: dict[str, Any] = {"fence": attempt, "run_after": run_after, "uncounted": 0 if counted else 1}
    row = _RELEASE_EXTRACTING(session, media_id, actor=actor, error_code=error_code, **values)
    if isinstance(row, Missed) and row.state is MediaStatus.EMBEDDING:
        row = _RELEASE_EMBEDDING(session, media_id, actor=actor, error_code=error_code, **values)
    return _is_done("release", media_id, attempt, row)


def put_down(
    session: Session, media_id: UUID, attempt: int, again: Again | None, error: WorkError | None, actor: str
) -> bool:
    """Let go of an item without a result: due again, or failed if `again` is None. False if it was taken over."""
    if again is not None:
        code, run_after = error.code if error else None, session.now + again.wait
        return release(session, media_id, attempt, code, run_after, actor, counted=again.counted)
    if error is None or isinstance(error, JobTimeout):
        error = timeout_of(session, media_id)
    return mark_failed(session, media_id, Stage(error.stage), error.code, error.message, attempt, actor)


def kind_of(session: Session, media_id: UUID) -> Kind | None:
    """Return the kind of an item; None if it is gone."""
    found = session.first(_KIND, media_id=media_id)
    return None if found is None else found.kind


def timeout_of(session: Session, media_id: UUID) -> WorkError:
    """Return the error for an item whose worker was lost once too often."""
    found = session.first(_STATUS, media_id=media_id)
    return EmbeddingTimeout() if found and found.processing_status is MediaStatus.EMBEDDING else JobTimeout()


def retry_media(
    session: Session, media_id: UUID, actor_user_id: UUID, request_id: str | None = None
) -> MediaRow:
    """failed → pending, or ready_for_reading if only the embedding failed; what the failed stage made is deleted.

    Raises NotFound, Forbidden, or InvalidState if it has not failed.
    """
    access.require_manager(session, media_id, actor_user_id)
    return reset_failed(session, media_id, actor_user_id, request_id)


def reset_failed(
    session: Session, media_id: UUID, actor_user_id: UUID, request_id: str | None = None
) -> MediaRow:
    """Retry without asking who may: for callers with a right of their own, like somebody who adds the same URL."""
    found = session.first(_STAGE, media_id=media_id)
    if found is None or found.failure_stage is None:
        raise InvalidState
    stage = found.failure_stage
    move = _RETRY_EMBEDDING if stage is Stage.EMBED else _RETRY_ALL
    row = move(session, media_id, actor=str(actor_user_id), stage=stage.value, request_id=request_id)
    if isinstance(row, Missed):
        raise InvalidState
    if stage is not Stage.EMBED:
        revisions.drop_base(session, media_id)
        revisions.drop_fetched(session, media_id)
    if stage is Stage.UPLOAD:
        revisions.drop_upload(session, media_id)
    return row


def _is_done(
    verb: str, media_id: UUID, attempt: int | None, row: tuple[Any, ...] | Missed[MediaStatus]
) -> bool:
    """Whether this attempt's write is there, made by this call or by an earlier one whose answer was lost."""
    if not isinstance(row, Missed):
        return True
    log.log(
        INFO if row.repeated else WARNING,
        "unexpected_state",
        verb=verb,
        media_id=str(media_id),
        attempt=attempt,
        status=row.state,
        stale=row.stale,
        repeated=row.repeated,
    )
    return row.repeated
