"""Refreshing an item: its source is read again, and only the libraries of the user who asked move to the new text.

The item keeps its status, and every text that it had stays as it was. Each user's request waits in a row of its own,
which a worker claims. If the same user asks again meanwhile, it is due again at once.
"""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID, uuid4

from sqlalchemy import (
    and_,
    bindparam,
    literal_column,
    null,
    select,
)

from nexus.db.rows import IdRow, MediaRow, RefreshRow, RevisionRow
from nexus.db.session import Query, Session, Sessions
from nexus.db.tables import REFRESH_WAITING, library_media, media, memberships, one_of, refreshes
from nexus.db.tables import revisions as revision_table
from nexus.db.upserts import upsert_returning
from nexus.errors import ExtractorNotImplemented, InvalidState, WorkError
from nexus.extract.registry import extractor_origin
from nexus.libraries import access
from nexus.libraries.access import Role
from nexus.media import extraction, revisions, versions
from nexus.media.addresses import record_addresses
from nexus.media.extraction import Nothing
from nexus.media.files import discard_object
from nexus.media.texts import Found, Readable
from nexus.media.workbench import Bench, Tools, Unchanged
from nexus.queue import Queue, Work
from nexus.states.media import MediaStatus
from nexus.work.backlog import Backlog
from nexus.work.errands import ErrandHandler, Errands, held_by
from nexus.work.handler import WORKER, Claim, Hold
from nexus.work.retry import Again, backoff, decide

REFRESH = "refresh"
BACKLOG = Backlog(
    refreshes,
    key=refreshes.c.id,
    fence=refreshes.c.attempt,
    user=refreshes.c.requested_by,
    waiting=REFRESH_WAITING,
)
ERRANDS = Errands(BACKLOG, RefreshRow)
#: Readable, and no worker is making vectors of the text.
AT_REST = frozenset({MediaStatus.READY_FOR_READING, MediaStatus.READY})

_NO_ERROR = {"error_code": null(), "error_message": null()}


class _Newest(NamedTuple):
    newest_revision: int


_AT_REST = Query(
    select(media.c.newest_revision)
    .where(media.c.id == bindparam("media_id"), one_of(media.c.processing_status, AT_REST))
    .with_for_update(key_share=True),
    _Newest,
)
_REQUEST = upsert_returning(
    IdRow,
    refreshes,
    {
        refreshes.c.id: bindparam("id"),
        refreshes.c.media_id: bindparam("media_id"),
        refreshes.c.requested_by: bindparam("user_id"),
        refreshes.c.requested_at: bindparam("now"),
        refreshes.c.run_after: bindparam("now"),
        refreshes.c.request_id: bindparam("request_id"),
    },
    lambda new: new.on_conflict_do_update(
        index_elements=[refreshes.c.media_id, refreshes.c.requested_by],
        set_={
            "requested_at": new.excluded.requested_at,
            "run_after": new.excluded.run_after,
            "request_id": new.excluded.request_id,
            "tries": literal_column("0"),
            **_NO_ERROR,
        },
    ).returning(refreshes.c.id),
)


_FAIL = ERRANDS.let_go(
    error_code=bindparam("code", type_=refreshes.c.error_code.type),
    error_message=bindparam("message", type_=refreshes.c.error_message.type),
)
_MEDIA = Query(select(media).where(media.c.id == bindparam("media_id")), MediaRow)
_PRESENT = Query(
    select(refreshes).where(
        refreshes.c.media_id == bindparam("media_id"), refreshes.c.requested_by == bindparam("user_id")
    ),
    RefreshRow,
)
_SHOWN = (
    select(media.c.id, access.shown_revision().label("number"))
    .join_from(library_media, memberships, memberships.c.library_id == library_media.c.library_id)
    .join(media, media.c.id == library_media.c.media_id)
    .where(
        memberships.c.user_id == bindparam("viewer"),
        memberships.c.role == Role.ADMIN.value,
        one_of(media.c.processing_status, AT_REST),
        media.c.kind == bindparam("kind"),
    )
    .group_by(media.c.id)
    .subquery("shown")
)
_OUTDATED = Query(
    select(_SHOWN.c.id)
    .join(
        revision_table,
        and_(revision_table.c.media_id == _SHOWN.c.id, revision_table.c.number == _SHOWN.c.number),
    )
    .where(revision_table.c.private_to.is_(None), revision_table.c.seen_by != bindparam("extractor"))
    .order_by(_SHOWN.c.id),
    IdRow,
)


class Due(NamedTuple):
    """An item that is to be refreshed, and for whom."""

    media: MediaRow
    user_id: UUID


def request(
    sessions: Sessions, queue: Queue, media_id: UUID, viewer: UUID, request_id: str | None
) -> tuple[UUID, bool]:
    """Ask for a refresh; return the id of the request, and whether a worker was told.

    Raises NotFound, Forbidden unless the viewer administers a library that holds the item, InvalidState if it is not
    readable.
    """
    with sessions.begin() as session:
        versions.require_holder(session, media_id, viewer)
        if session.first(_AT_REST, media_id=media_id) is None:
            raise InvalidState("Only items that are ready can be refreshed. Retry those that have failed.")
        (asked,) = session.all(
            _REQUEST,
            id=uuid4(),
            media_id=media_id,
            user_id=viewer,
            now=session.now,
            request_id=request_id,
        )
    return asked.id, queue.announce(Work(REFRESH, asked.id))


def outdated(session: Session, tools: Tools, viewer: UUID) -> list[UUID]:
    """List items of the viewer whose text was found by another extractor, or an older version of it."""
    return [
        row.id
        for kind, extractor in tools.extractors.items()
        for row in session.all(
            _OUTDATED, kind=kind.value, extractor=extractor_origin(extractor), viewer=viewer
        )
    ]


def present(session: Session, media_id: UUID, viewer: UUID) -> RefreshRow | None:
    """Return the refresh that the viewer asked for, if it is not done yet or has failed."""
    return session.first(_PRESENT, media_id=media_id, user_id=viewer)


class Refreshing(ErrandHandler[RefreshRow, Due, Found | Nothing | None]):
    """A result of None says that nothing has changed. How a refresh ended is a few words for a person."""

    kind = REFRESH
    backlog, errands = BACKLOG, ERRANDS
    log_event, log_id = "refresh", "refresh_id"
    repeats = True

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    def take(self, session: Session, row: RefreshRow) -> Claim[Due] | None:
        media = session.first(_MEDIA, media_id=row.media_id)
        hold = Hold(Work(REFRESH, row.id), row.attempt)
        return None if media is None else Claim(hold, row.tries, Due(media, row.requested_by), row.request_id)

    def do(self, claim: Claim[Due]) -> Found | Nothing | None:
        media = claim.subject.media
        try:
            bench = Bench(self._tools, media, self._known(media), reader=claim.subject.user_id)
            return extraction.attempt(self._tools, media, claim.hold.attempt, bench)
        except Unchanged:
            return None

    def give_up(self, session: Session, hold: Hold, error: WorkError) -> bool:
        """The text that is there stays, whatever becomes of the refresh."""
        return session.run(_FAIL, code=error.code, message=error.message, **held_by(hold)) > 0

    def _known(self, media: MediaRow) -> RevisionRow | None:
        """The newest text, unless another extractor found it: then even an unchanged page is worth reading."""
        extractor = self._tools.extractors.get(media.kind)
        with self._tools.sessions.read() as session:
            known = revisions.read_revision(session, media.id, media.newest_revision)
        return known if known and extractor and known.seen_by == extractor_origin(extractor) else None

    def settle_one(self, claim: Claim[Due], result: Found | Nothing | None) -> str:
        outcome = self._try_again(claim, result) if isinstance(result, Nothing) else self._move(claim, result)
        if result is not None and result.kept is not None:
            # Nobody needs the file if the result was refused, or if the same text was there.
            discard_object(
                self._tools.sessions, self._tools.files, claim.subject.media.id, result.kept.storage_path
            )
        if isinstance(result, Found) and result.sound is not None:
            discard_object(self._tools.sessions, self._tools.files, claim.subject.media.id, result.sound)
        return outcome

    def _try_again(self, claim: Claim[Due], nothing: Nothing) -> str:
        again = decide(nothing.error, claim.tries, self._tools.backoff_seconds)
        if isinstance(nothing.error, ExtractorNotImplemented):
            # Another worker may have it, or this one after its next start.
            again = Again(backoff(self._tools.backoff_seconds, claim.tries), counted=False)
        with self._tools.sessions.begin() as session:
            if not self.put_down(session, claim.hold, again, nothing.error, WORKER):
                return "stale"
        return "failed" if again is None else "released"

    def _move(self, claim: Claim[Due], found: Found | None) -> str:
        """Move the requester's libraries to the text that was found, or to the newest one if nothing has changed."""
        media, user_id = claim.subject
        media_id = media.id
        ready = found and Readable.of(media_id, claim.hold.attempt, found, address=media.canonical_url)
        with self._tools.sessions.begin() as session:
            present = session.first(_AT_REST, media_id=media_id)
            if present is None:
                # Its vectors are being made just now.
                again = Again(backoff(self._tools.backoff_seconds, claim.tries))
                return "released" if self.put_down(session, claim.hold, again, None, WORKER) else "stale"
            if not ERRANDS.finish(session, claim.hold):
                return "stale"
            number = revisions.add_revision(session, ready, user_id) if ready else present.newest_revision
            record_addresses(session, [ready] if ready else [])
            moved = versions.move_libraries(session, media_id, user_id, number)
        return f"revision {number}" if moved else "unchanged"
