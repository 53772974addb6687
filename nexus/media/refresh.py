"""Reading a readable media again: the new text takes the old one's place in one transaction, or nothing changes.

The media keeps its status: it is readable all the while. What is asked for waits in a row of its own, which a worker
claims with an attempt number as fence and a lease that it renews. Who asks while a worker is at it asks for another
one: `tries` is 0 then, and whatever becomes of the older one, the row is due again at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Select,
    bindparam,
    case,
    delete,
    func,
    literal_column,
    null,
    or_,
    select,
    update,
)

from nexus import logging
from nexus.db.patience import insist
from nexus.db.session import Row, Session, Sessions, Statement
from nexus.db.tables import documents as documents_table
from nexus.db.tables import media, one_of, refreshes
from nexus.db.upserts import upsert
from nexus.errors import InvalidState, JobTimeout, WorkError
from nexus.extract.registry import origin
from nexus.libraries import access
from nexus.media import documents, extraction
from nexus.media.documents import Readable
from nexus.media.extraction import Found, Nothing
from nexus.media.files import discard
from nexus.media.lifecycle import MAX_TRIES, backoff, wait_for
from nexus.media.workbench import Bench, Tools, Unchanged
from nexus.queue import Queue
from nexus.states.media import URL_KINDS, Kind, Status
from nexus.work.leases import Hold

log = logging.get(__name__)

#: Readable, and nobody is making vectors of the present text.
AT_REST = frozenset({Status.READY_FOR_READING, Status.READY})

_NO_ERROR = {"error_code": null(), "error_message": null()}
_ONE = refreshes.c.media_id == bindparam("row_id")
_MINE = (_ONE, refreshes.c.attempt == bindparam("fence"), refreshes.c.lease_expires_at.is_not(None))
_FREE = refreshes.c.lease_expires_at.is_(None)
_WAITING = (refreshes.c.error_code.is_(None), _FREE)
_DUE = refreshes.c.run_after <= bindparam("now", type_=refreshes.c.run_after.type)
_UNTIL = bindparam("until", type_=refreshes.c.lease_expires_at.type)
_RUN_AFTER = bindparam("run_after", type_=refreshes.c.run_after.type)
#: Of a row that is held: nobody has asked again since it was claimed.
_IS_LATEST = refreshes.c.tries > literal_column("0")

_AT_REST = Statement(
    select(media.c.id, media.c.kind)
    .where(media.c.id == bindparam("media_id"), one_of(media.c.processing_status, AT_REST))
    .with_for_update(key_share=True)
)
_REQUEST = upsert(
    refreshes,
    {
        refreshes.c.media_id: bindparam("media_id"),
        refreshes.c.requested_by: bindparam("user_id"),
        refreshes.c.requested_at: bindparam("now"),
        refreshes.c.run_after: bindparam("now"),
    },
    lambda new: new.on_conflict_do_update(
        index_elements=[refreshes.c.media_id],
        set_={
            "requested_by": new.excluded.requested_by,
            "requested_at": new.excluded.requested_at,
            "run_after": new.excluded.run_after,
            "tries": literal_column("0"),
            **_NO_ERROR,
        },
    ),
)


def _claim(which: Any) -> Statement:
    return Statement(
        update(refreshes)
        .where(which, *_WAITING, _DUE)
        .values(
            attempt=refreshes.c.attempt + literal_column("1"),
            tries=refreshes.c.tries + literal_column("1"),
            lease_expires_at=_UNTIL,
        )
        .returning(*refreshes.c)
    )


def _next_due() -> Select[Any]:
    pick = (
        select(refreshes.c.media_id)
        .where(*_WAITING, _DUE)
        .order_by(refreshes.c.run_after, refreshes.c.media_id)
        .limit(literal_column("1"))
        .with_for_update(skip_locked=True)
    ).cte("picked")
    return select(pick.c.media_id)


_CLAIM_ONE = _claim(_ONE)
_CLAIM_NEXT = _claim(refreshes.c.media_id.in_(_next_due()))


def _let_go(**values: ColumnElement[Any]) -> Statement:
    """The end of an attempt. These values are of what it was claimed for: a newer request is due at once."""
    of_latest = {name: case((_IS_LATEST, value), else_=refreshes.c[name]) for name, value in values.items()}
    return Statement(update(refreshes).where(*_MINE).values(lease_expires_at=null(), **of_latest))


_DONE = Statement(delete(refreshes).where(*_MINE, _IS_LATEST))
_ANOTHER = _let_go()
_FAIL = _let_go(
    error_code=bindparam("code", type_=refreshes.c.error_code.type),
    error_message=bindparam("message", type_=refreshes.c.error_message.type),
)
_RELEASE = _let_go(run_after=_RUN_AFTER)
_GIVE_BACK = _let_go(run_after=_RUN_AFTER, tries=refreshes.c.tries - literal_column("1"))
_RENEW = Statement(update(refreshes).where(*_MINE).values(lease_expires_at=_UNTIL))
_EXPIRED = Statement(
    select(refreshes.c.media_id, refreshes.c.attempt, refreshes.c.tries)
    .where(refreshes.c.lease_expires_at <= bindparam("now", type_=refreshes.c.lease_expires_at.type))
    .limit(bindparam("most"))
    .with_for_update(skip_locked=True)
)
_WAITING_IDS = Statement(
    select(refreshes.c.media_id, media.c.kind)
    .join(media, media.c.id == refreshes.c.media_id)
    .where(*_WAITING, _DUE)
    .order_by(refreshes.c.run_after)
    .limit(bindparam("most"))
)
_MEDIA = Statement(select(media).where(media.c.id == bindparam("media_id")))
_RENAME = Statement(
    update(media)
    .where(media.c.id == bindparam("media_id"))
    .values(
        title=func.coalesce(bindparam("title", type_=media.c.title.type), media.c.title),
        updated_at=bindparam("now"),
    )
)
_PRESENT = Statement(select(refreshes).where(refreshes.c.media_id == bindparam("media_id")))
_OUTDATED = Statement(
    select(media.c.id, media.c.kind)
    .outerjoin(documents_table, documents_table.c.media_id == media.c.id)
    .where(
        one_of(media.c.processing_status, AT_REST),
        media.c.kind == bindparam("kind"),
        or_(documents_table.c.extractor.is_(None), documents_table.c.extractor != bindparam("extractor")),
        access.READABLE,
        access.MANAGED,
    )
    .order_by(media.c.id)
)


@dataclass(frozen=True)
class Claim:
    media: Row
    attempt: int
    tries: int


def request(sessions: Sessions, queue: Queue, media_id: UUID, viewer: UUID, request_id: str | None) -> bool:
    """Ask for it; whether a worker was told. Raises NotFound, Forbidden, or InvalidState for what is not readable."""
    with sessions.begin() as session:
        access.require_manager(session, media_id, viewer)
        found = session.first(_AT_REST, media_id=media_id)
        if found is None:
            raise InvalidState("Only what is readable can be refreshed. Retry what has failed.")
        session.run(_REQUEST, media_id=media_id, user_id=viewer, now=session.now)
    return queue.announce(media_id, request_id)


def outdated(session: Session, tools: Tools, viewer: UUID) -> list[UUID]:
    """What the viewer may change and another extractor, or an older version, has read."""
    return [
        row.id
        for kind, extractor in tools.extractors.items()
        for row in session.all(_OUTDATED, kind=kind.value, extractor=origin(extractor), viewer=viewer)
    ]


def present(session: Session, media_id: UUID) -> Row | None:
    """What is asked for and not done, or has failed."""
    return session.first(_PRESENT, media_id=media_id)


def run(tools: Tools, media_id: UUID) -> str | None:
    """Claim the refresh of one media and do it, and do it again if somebody asked meanwhile: how the last one ended,
    or None when there was none to do."""
    ended = None
    while (outcome := _run(tools, _CLAIM_ONE, row_id=media_id)) is not None:
        ended = outcome
    return ended


def run_next(tools: Tools) -> bool:
    """The same for the one that waits longest; whether there was one.

    It looks first: on SQLite a claim is the only writer.
    """
    with tools.sessions.read() as session:
        if not waiting(session, 1):
            return False
    return _run(tools, _CLAIM_NEXT) is not None


def waiting(session: Session, most: int, before: datetime | None = None) -> list[Row]:
    """What is due. With a time, only what has been due since then."""
    return session.all(_WAITING_IDS, now=before or session.now, most=most)


def renew_leases(session: Session, held: Iterable[Hold], lease: timedelta) -> None:
    """A sign of life for each (media, attempt); those that were taken over stay as they are."""
    until = session.now + lease
    session.run_many(
        _RENEW, [{"row_id": media_id, "fence": attempt, "until": until} for media_id, attempt in held]
    )


def release_expired(session: Session, backoff_seconds: float, most: int = 100) -> int:
    """Those whose worker is gone: tried again, or failed after the third try. How many."""
    rows = session.all(_EXPIRED, now=session.now, most=most)
    for row in rows:
        if row.tries < MAX_TRIES:
            _release(session, row.media_id, row.attempt, backoff(backoff_seconds, row.tries))
        else:
            _fail(session, row.media_id, row.attempt, JobTimeout())
    return len(rows)


def _run(tools: Tools, statement: Statement, **values: Any) -> str | None:
    claim = _claimed(tools, statement, **values)
    if claim is None:
        return None
    with logging.task_log_context(request_id=None, media_id=claim.media.id):
        log.info("refresh_started", media_id=str(claim.media.id), attempt=claim.attempt)
        with tools.refresh_leases.hold((claim.media.id, claim.attempt)):
            outcome = _work(tools, claim)
        log.info("refresh_ended", media_id=str(claim.media.id), attempt=claim.attempt, outcome=outcome)
    return outcome


def _claimed(tools: Tools, statement: Statement, **values: Any) -> Claim | None:
    with tools.sessions.begin() as session:
        until = session.now + tools.refresh_leases.length
        row = session.first(statement, now=session.now, until=until, **values)
        if row is None:
            return None
        return Claim(session.first(_MEDIA, media_id=row.media_id), row.attempt, row.tries)


def _work(tools: Tools, claim: Claim) -> str:
    result: Found | Nothing | None
    try:
        bench = Bench(tools, claim.media, _known(tools, claim))
        result = extraction.attempt(tools, claim.media, claim.attempt, bench)
    except Unchanged:
        result = None
    return insist(lambda: _settle(tools, claim, result))


def _settle(tools: Tools, claim: Claim, result: Found | Nothing | None) -> str:
    """Write what came of it; None is that nothing has changed."""
    if result is None:
        with tools.sessions.begin() as session:
            return "unchanged" if _finish(session, claim) else "stale"
    if isinstance(result, Found):
        return _swap(tools, claim, result)
    if result.kept is not None:
        discard(tools.sessions, tools.files, claim.media.id, result.kept.storage_path)
    error = result.error
    with tools.sessions.begin() as session:
        if not error.counted:
            return _give_back(session, claim, wait_for(error, tools.backoff_seconds, 1))
        if error.transient and claim.tries < MAX_TRIES:
            return _release(
                session, claim.media.id, claim.attempt, wait_for(error, tools.backoff_seconds, claim.tries)
            )
        return _fail(session, claim.media.id, claim.attempt, error)


def _known(tools: Tools, claim: Claim) -> Row | None:
    """The document that is there, unless another extractor made it: then an unchanged page is worth reading too."""
    extractor = tools.extractors.get(Kind(claim.media.kind))
    with tools.sessions.read() as session:
        known = documents.read(session, claim.media.id)
    return known if known and extractor and known.extractor == origin(extractor) else None


def _swap(tools: Tools, claim: Claim, found: Found) -> str:
    """Whichever of two files is not the media's afterwards goes: the old one, or the new one of a refused result."""
    ready = Readable.of(claim.media.id, claim.attempt, found.extraction, found.origin)
    outcome, unneeded = _exchange(tools, claim, ready)
    if unneeded is not None:
        discard(tools.sessions, tools.files, claim.media.id, unneeded)
    return outcome


def _exchange(tools: Tools, claim: Claim, ready: Readable) -> tuple[str, str | None]:
    """How it ended, and the path of the file that was or is not taken."""
    media_id = claim.media.id
    kept = None if ready.kept is None else ready.kept.storage_path
    with tools.sessions.begin() as session:
        if session.first(_AT_REST, media_id=media_id) is None:
            wait = backoff(tools.backoff_seconds, claim.tries)  # its vectors are being made just now
            return _release(session, media_id, claim.attempt, wait), kept
        if not _finish(session, claim):
            return "stale", kept
        session.run(_RENAME, media_id=media_id, title=ready.title, now=session.now)
        before = documents.file_of(session, media_id) if Kind(claim.media.kind) in URL_KINDS else None
        if before is not None:
            documents.drop_file(session, media_id)
        revision = documents.replace(session, ready)
    return f"revision {revision}", before and before.storage_path


def _finish(session: Session, claim: Claim) -> bool:
    """Nothing is left to do, unless somebody has asked again. False when the attempt is no longer the present one."""
    mine = {"row_id": claim.media.id, "fence": claim.attempt}
    return session.run(_DONE, **mine) > 0 or session.run(_ANOTHER, **mine) > 0


def _fail(session: Session, media_id: UUID, fence: int, error: WorkError) -> str:
    """The text that is there stays."""
    failed = session.run(_FAIL, row_id=media_id, fence=fence, code=error.code, message=error.message)
    return "failed" if failed else "stale"


def _give_back(session: Session, claim: Claim, wait: timedelta) -> str:
    """Nobody could begin with it: due again a little later, and no try is counted."""
    given = session.run(_GIVE_BACK, row_id=claim.media.id, fence=claim.attempt, run_after=session.now + wait)
    return "released" if given else "stale"


def _release(session: Session, media_id: UUID, fence: int, wait: timedelta) -> str:
    released = session.run(_RELEASE, row_id=media_id, fence=fence, run_after=session.now + wait)
    return "released" if released else "stale"
