"""Refreshing a readable item: the new text takes the old one's place in one transaction, or nothing changes.

The item keeps its status: it is readable all the while. The request waits in a row of its own, which a worker claims
with an attempt number as fence and a lease that it renews. A request that comes while a worker is at it asks for
another refresh: `tries` is 0 then, and whatever becomes of the older one, the row is due again at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import cache
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    bindparam,
    case,
    delete,
    func,
    literal_column,
    null,
    or_,
    select,
    text,
    update,
)

from nexus.db.rows import DocumentRow, IdRow, MediaRow, RefreshRow
from nexus.db.session import Query, Session, Sessions, Statement
from nexus.db.tables import REFRESH_WAITING, media, one_of, refreshes
from nexus.db.tables import documents as documents_table
from nexus.db.upserts import upsert
from nexus.errors import InvalidState, JobTimeout, WorkError
from nexus.extract.registry import extractor_origin
from nexus.libraries import access
from nexus.media import documents, extraction
from nexus.media.documents import Found, Readable
from nexus.media.extraction import Nothing
from nexus.media.files import discard
from nexus.media.workbench import Bench, Tools, Unchanged
from nexus.queue import Queue, Work
from nexus.states.media import URL_KINDS, Status
from nexus.work.backlog import Backlog
from nexus.work.handler import WORKER, Claim, Ended, Handler, Hold
from nexus.work.retry import Again, backoff, decide

REFRESH = "refresh"
BACKLOG = Backlog(
    refreshes,
    key=refreshes.c.media_id,
    fence=refreshes.c.attempt,
    user=refreshes.c.requested_by,
    waiting=REFRESH_WAITING,
)
#: Readable, and nobody is making vectors of the present text.
AT_REST = frozenset({Status.READY_FOR_READING, Status.READY})

_NO_ERROR = {"error_code": null(), "error_message": null()}
_ONE = refreshes.c.media_id == bindparam("row_id")
_MINE = (_ONE, refreshes.c.attempt == bindparam("fence"), refreshes.c.lease_expires_at.is_not(None))
_DUE = refreshes.c.run_after <= bindparam("now", type_=refreshes.c.run_after.type)
_UNTIL = bindparam("until", type_=refreshes.c.lease_expires_at.type)
_RUN_AFTER = bindparam("run_after", type_=refreshes.c.run_after.type)
#: Of a row that is held: nobody has asked again since it was claimed.
_IS_LATEST = refreshes.c.tries > literal_column("0")

_AT_REST = Query(
    select(media.c.id)
    .where(media.c.id == bindparam("media_id"), one_of(media.c.processing_status, AT_REST))
    .with_for_update(key_share=True),
    IdRow,
)
_REQUEST = upsert(
    refreshes,
    {
        refreshes.c.media_id: bindparam("media_id"),
        refreshes.c.requested_by: bindparam("user_id"),
        refreshes.c.requested_at: bindparam("now"),
        refreshes.c.run_after: bindparam("now"),
        refreshes.c.request_id: bindparam("request_id"),
    },
    lambda new: new.on_conflict_do_update(
        index_elements=[refreshes.c.media_id],
        set_={
            "requested_by": new.excluded.requested_by,
            "requested_at": new.excluded.requested_at,
            "run_after": new.excluded.run_after,
            "request_id": new.excluded.request_id,
            "tries": literal_column("0"),
            **_NO_ERROR,
        },
    ),
)


def _claim(which: ColumnElement[bool]) -> Query[RefreshRow]:
    return Query(
        update(refreshes)
        .where(which, text(REFRESH_WAITING), _DUE)
        .values(
            attempt=refreshes.c.attempt + literal_column("1"),
            tries=refreshes.c.tries + literal_column("1"),
            lease_expires_at=_UNTIL,
        )
        .returning(*refreshes.c),
        RefreshRow,
    )


_CLAIM_ONE = _claim(_ONE)


@cache
def _claim_due(most: int) -> Query[RefreshRow]:
    picked = BACKLOG.pick(most).cte("picked")
    return _claim(refreshes.c.media_id.in_(select(picked.c.id)))


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
_RELEASE = _let_go(
    run_after=_RUN_AFTER,
    tries=refreshes.c.tries - bindparam("uncounted", type_=refreshes.c.tries.type),
)
_MEDIA = Query(select(media).where(media.c.id == bindparam("media_id")), MediaRow)
_RENAME = Statement(
    update(media)
    .where(media.c.id == bindparam("media_id"))
    .values(
        title=func.coalesce(bindparam("title", type_=media.c.title.type), media.c.title),
        updated_at=bindparam("now"),
    )
)
_PRESENT = Query(select(refreshes).where(refreshes.c.media_id == bindparam("media_id")), RefreshRow)
_OUTDATED = Query(
    select(media.c.id)
    .outerjoin(documents_table, documents_table.c.media_id == media.c.id)
    .where(
        one_of(media.c.processing_status, AT_REST),
        media.c.kind == bindparam("kind"),
        or_(documents_table.c.extractor.is_(None), documents_table.c.extractor != bindparam("extractor")),
        access.READABLE,
        access.MANAGED,
    )
    .order_by(media.c.id),
    IdRow,
)


def request(sessions: Sessions, queue: Queue, media_id: UUID, viewer: UUID, request_id: str | None) -> bool:
    """Ask for a refresh; whether a worker was told. Raises NotFound, Forbidden, or InvalidState for what is not
    readable."""
    with sessions.begin() as session:
        access.require_manager(session, media_id, viewer)
        if session.first(_AT_REST, media_id=media_id) is None:
            raise InvalidState("Only what is readable can be refreshed. Retry what has failed.")
        session.run(_REQUEST, media_id=media_id, user_id=viewer, now=session.now, request_id=request_id)
    return queue.announce(Work(REFRESH, media_id))


def outdated(session: Session, tools: Tools, viewer: UUID) -> list[UUID]:
    """What the viewer may change and another extractor, or an older version, has read."""
    return [
        row.id
        for kind, extractor in tools.extractors.items()
        for row in session.all(
            _OUTDATED, kind=kind.value, extractor=extractor_origin(extractor), viewer=viewer
        )
    ]


def present(session: Session, media_id: UUID) -> RefreshRow | None:
    """What is asked for and not done, or has failed."""
    return session.first(_PRESENT, media_id=media_id)


class Refreshing(Handler[MediaRow, Found | Nothing | None]):
    """A result of None says that nothing has changed. How a refresh ended is a few words for a person."""

    kind = REFRESH
    backlog = BACKLOG
    log_event, log_id = "refresh", "media_id"
    repeats = True

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    def claim(self, session: Session, row_id: UUID, lease: timedelta) -> Claim[MediaRow] | None:
        now = session.now
        row = session.first(_CLAIM_ONE, row_id=row_id, now=now, until=now + lease)
        return None if row is None else self._claimed(session, row)

    def claim_due(
        self, session: Session, lane: str | None, user_id: UUID, most: int, lease: timedelta
    ) -> list[Claim[MediaRow]]:
        now = session.now
        rows = session.all(_claim_due(most), lane=lane, user_id=user_id, now=now, until=now + lease)
        return [claim for row in rows if (claim := self._claimed(session, row)) is not None]

    def do(self, claim: Claim[MediaRow]) -> Found | Nothing | None:
        try:
            bench = Bench(self._tools, claim.subject, self._known(claim.subject))
            return extraction.attempt(self._tools, claim.subject, claim.hold.attempt, bench)
        except Unchanged:
            return None

    def settle(self, ended: Sequence[Ended[MediaRow, Found | Nothing | None]]) -> list[str]:
        return [self._settled(one.claim, one.result) for one in ended]

    def put_down(
        self,
        session: Session,
        hold: Hold,
        again: Again | None,
        error: WorkError | None,
        actor: str,  # noqa: ARG002
    ) -> bool:
        """The text that is there stays, whatever becomes of the refresh."""
        mine = {"row_id": hold.work.id, "fence": hold.attempt}
        if again is None:
            error = error or JobTimeout()
            return session.run(_FAIL, code=error.code, message=error.message, **mine) > 0
        uncounted, run_after = 0 if again.counted else 1, session.now + again.wait
        return session.run(_RELEASE, run_after=run_after, uncounted=uncounted, **mine) > 0

    def _claimed(self, session: Session, row: RefreshRow) -> Claim[MediaRow] | None:
        subject = session.first(_MEDIA, media_id=row.media_id)
        hold = Hold(Work(REFRESH, row.media_id), row.attempt)
        return None if subject is None else Claim(hold, row.tries, subject, row.request_id)

    def _known(self, row: MediaRow) -> DocumentRow | None:
        """The document that is there, unless another extractor made it: then an unchanged page is worth reading too."""
        extractor = self._tools.extractors.get(row.kind)
        with self._tools.sessions.read() as session:
            known = documents.read(session, row.id)
        return known if known and extractor and known.extractor == extractor_origin(extractor) else None

    def _settled(self, claim: Claim[MediaRow], result: Found | Nothing | None) -> str:
        if result is None:
            with self._tools.sessions.begin() as session:
                return "unchanged" if _finish(session, claim.hold) else "stale"
        if isinstance(result, Found):
            return self._swap(claim, result)
        if result.kept is not None:
            discard(self._tools.sessions, self._tools.files, claim.subject.id, result.kept.storage_path)
        again = decide(result.error, claim.tries, self._tools.backoff_seconds)
        with self._tools.sessions.begin() as session:
            if not self.put_down(session, claim.hold, again, result.error, WORKER):
                return "stale"
        return "failed" if again is None else "released"

    def _swap(self, claim: Claim[MediaRow], found: Found) -> str:
        """Whichever of two files is not the item's afterwards goes: the old one, or the new one of a refused result."""
        ready = Readable.of(claim.subject.id, claim.hold.attempt, found)
        outcome, unneeded = self._exchange(claim, ready)
        if unneeded is not None:
            discard(self._tools.sessions, self._tools.files, claim.subject.id, unneeded)
        return outcome

    def _exchange(self, claim: Claim[MediaRow], ready: Readable) -> tuple[str, str | None]:
        """How it ended, and the path of the file that is not needed any more."""
        media_id = claim.subject.id
        kept = None if ready.kept is None else ready.kept.storage_path
        with self._tools.sessions.begin() as session:
            if session.first(_AT_REST, media_id=media_id) is None:
                # Its vectors are being made just now.
                again = Again(backoff(self._tools.backoff_seconds, claim.tries))
                released = self.put_down(session, claim.hold, again, None, WORKER)
                return "released" if released else "stale", kept
            if not _finish(session, claim.hold):
                return "stale", kept
            session.run(_RENAME, media_id=media_id, title=ready.title, now=session.now)
            before = documents.file_of(session, media_id) if claim.subject.kind in URL_KINDS else None
            if before is not None:
                documents.drop_file(session, media_id)
            revision = documents.replace(session, ready)
        return f"revision {revision}", before and before.storage_path


def _finish(session: Session, hold: Hold) -> bool:
    """Nothing is left to do, unless somebody has asked again. False when the attempt is no longer the present one."""
    mine = {"row_id": hold.work.id, "fence": hold.attempt}
    return session.run(_DONE, **mine) > 0 or session.run(_ANOTHER, **mine) > 0
