"""The pictures of texts, as work: each is fetched once, checked and kept in the store, after its text is readable.

A text never waits for its pictures and never fails with them. They belong to its revision: another revision of the same
item has its own.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import (
    BigInteger,
    and_,
    bindparam,
    cast,
    func,
    literal_column,
    select,
)

from nexus.db.pictures import KEPT, PICTURE_WAITING, pictures
from nexus.db.rows import PictureRow
from nexus.db.session import Query, Session
from nexus.errors import (
    FileUnreachable,
    PictureNoRoom,
    PicturesTooMany,
    PictureTooLarge,
    PictureWrongType,
    WorkError,
)
from nexus.extract.pictures import TYPES, read_picture_head
from nexus.media.files import discard_object
from nexus.media.storage_shares import has_room
from nexus.media.workbench import Tools
from nexus.queue import Work
from nexus.storage import StorageError
from nexus.storage.names import picture_path
from nexus.work.backlog import Backlog
from nexus.work.errands import ErrandHandler, Errands, held_by
from nexus.work.handler import WORKER, Claim, Hold
from nexus.work.retry import Again, decide

PICTURE = "picture"
BACKLOG = Backlog(
    pictures,
    key=pictures.c.id,
    fence=pictures.c.attempt,
    user=pictures.c.user_id,
    waiting=PICTURE_WAITING,
)
ERRANDS = Errands(BACKLOG, PictureRow)
NAME_LENGTH = 32


@dataclass(frozen=True)
class Taken:
    """A picture that was fetched and is in the store."""

    name: str
    storage_path: str
    sha256: str
    content_type: str
    size_bytes: int
    width: int
    height: int


class _UsedBytes(NamedTuple):
    total: int


class _Path(NamedTuple):
    storage_path: str


_OF_TEXT = and_(pictures.c.media_id == bindparam("media_id"), pictures.c.revision == bindparam("revision"))
_KEEP = ERRANDS.let_go(**{name: bindparam(name, type_=pictures.c[name].type) for name in KEPT})
_FAIL = ERRANDS.let_go(error_code=bindparam("code", type_=pictures.c.error_code.type))
_OBJECTS = select(pictures.c.storage_path, pictures.c.size_bytes).where(_OF_TEXT).distinct().subquery()
_USED = Query(
    select(
        cast(func.coalesce(func.sum(_OBJECTS.c.size_bytes), literal_column("0")), BigInteger).label("total")
    ),
    _UsedBytes,
)
_TWIN = Query(
    select(pictures.c.storage_path.label("storage_path"))
    .where(_OF_TEXT, pictures.c.sha256 == bindparam("sha256"))
    .limit(literal_column("1")),
    _Path,
)


class FetchingPictures(ErrandHandler[PictureRow, PictureRow, Taken | WorkError]):
    """Uses few threads: a site's pictures are asked for one after the other, and texts come first."""

    kind = PICTURE
    backlog, errands = BACKLOG, ERRANDS
    log_event, log_id = "picture", "picture_id"
    share = 0.25

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    def take(self, session: Session, row: PictureRow) -> Claim[PictureRow]:  # noqa: ARG002
        return Claim(Hold(Work(PICTURE, row.id), row.attempt), row.tries, row, None)

    def do(self, claim: Claim[PictureRow]) -> Taken | WorkError:
        try:
            return self._take(claim.subject)
        except WorkError as error:
            return error

    def give_up(self, session: Session, hold: Hold, error: WorkError) -> bool:
        return session.run(_FAIL, code=error.code, **held_by(hold)) > 0

    def _take(self, row: PictureRow) -> Taken:
        """Fetch a picture, and keep it if it is one and there is room for it. Raises WorkError."""
        limits = self._tools.pictures
        left = limits.bytes_per_text - self._used(row)
        if row.place >= limits.per_text or left <= 0:
            raise PicturesTooMany
        data = self._tools.fetcher.get_picture(row.source, limits.seconds, limits.most_bytes)
        head = read_picture_head(data)
        if head is None:
            raise PictureWrongType
        if head.pixels > limits.pixels:
            raise PictureTooLarge
        self._tools.files.scan_fetched(data)
        digest, content_type = hashlib.sha256(data).hexdigest(), TYPES[head.kind]
        path = self._twin(row, digest)
        if path is None:
            if len(data) > left:
                raise PicturesTooMany
            with self._tools.sessions.read() as session:
                if not has_room(session, self._tools.files.shares, row.user_id, len(data)):
                    raise PictureNoRoom
            path = self._store(row, data, head.kind)
        name = f"{digest[:NAME_LENGTH]}.{head.kind}"
        return Taken(name, path, digest, content_type, len(data), head.width, head.height)

    def _used(self, row: PictureRow) -> int:
        """How many bytes the other pictures of the text take."""
        with self._tools.sessions.read() as session:
            (used,) = session.all(_USED, media_id=row.media_id, revision=row.revision)
        return used.total

    def _twin(self, row: PictureRow, digest: str) -> str | None:
        """Where the same content is already, from another address in the same text."""
        with self._tools.sessions.read() as session:
            found = session.first(_TWIN, media_id=row.media_id, revision=row.revision, sha256=digest)
        return found and found.storage_path

    def _store(self, row: PictureRow, data: bytes, kind: str) -> str:
        """Each attempt has a path of its own, so that what a lost worker left behind can be removed at any time."""
        files = self._tools.files
        path = picture_path(row.media_id, row.revision, row.place, row.attempt, kind, files.prefix)
        try:
            files.storage.put(path, [data], TYPES[kind])
        except StorageError as error:
            raise FileUnreachable from error
        return path

    def settle_one(self, claim: Claim[PictureRow], result: Taken | WorkError) -> str:
        if isinstance(result, WorkError):
            return self._try_again(claim, result)
        with self._tools.sessions.begin() as session:
            if session.run(_KEEP, **held_by(claim.hold), **vars(result)) > 0:
                return "kept"
        # The attempt is no longer the present one, or its text is gone; or this was written before.
        discard_object(self._tools.sessions, self._tools.files, claim.subject.media_id, result.storage_path)
        return "stale"

    def _try_again(self, claim: Claim[PictureRow], error: WorkError) -> str:
        """Waiting for a site is not trying, but has an end, too."""
        again: Again | None = decide(error, claim.tries, self._tools.backoff_seconds)
        until = claim.subject.asked_at + self._tools.pictures.patience
        with self._tools.sessions.begin() as session:
            if again is not None and session.now + again.wait > until:
                again = None
            if not self.put_down(session, claim.hold, again, error, WORKER):
                return "stale"
        return f"given up: {error.code}" if again is None else "released"
