"""What one person notes about an item: read, archived, favourite, a title of their own, and how far they have read.

A row is there only for those who have noted something, and nobody else ever sees it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import (
    Column,
    ColumnElement,
    Double,
    and_,
    bindparam,
    case,
    func,
    literal_column,
    null,
    or_,
    select,
)

from nexus.db.rows import IdRow
from nexus.db.session import Query, Session, Statement
from nexus.db.shelves import PLACE, shelf
from nexus.db.tables import UNSTORABLE, library_media, media, memberships
from nexus.db.upserts import upsert
from nexus.errors import InvalidRequest, NotFound
from nexus.libraries import access
from nexus.media.texts import title_key

#: A reader who has come this far in a text has read all that matters: it is marked as read.
FINISHED = 0.98
TITLE_LENGTH = 500


class Shelved(NamedTuple):
    """What somebody has noted about an item."""

    read_at: datetime | None
    archived_at: datetime | None
    favourite_at: datetime | None
    title: str | None
    fraction: float
    revision: int | None
    fragment: int | None
    block: int | None
    far: float | None
    progress_at: datetime | None

    def place_in(self, revision: int) -> ReadingPlace | None:
        """Return the place, if it is one in this revision: in any other, only the fraction means something."""
        if self.revision != revision or self.fragment is None or self.block is None or self.far is None:
            return None
        return ReadingPlace(self.fragment, self.block, self.far)


class ReadingPlace(NamedTuple):
    """A fragment by its position, a block in it, and how far down in that, from 0 to 1."""

    fragment: int
    block: int
    far: float


@dataclass(frozen=True)
class Marks:
    """What to change: None leaves it as it is, and an empty title brings back the original one."""

    is_read: bool | None = None
    is_archived: bool | None = None
    is_favourite: bool | None = None
    title: str | None = None

    @property
    def own_title(self) -> str | None:
        """As it is stored; None to bring back the original one. Raises InvalidRequest for one that is too long."""
        title = " ".join(UNSTORABLE.sub("", self.title or "").split())
        if len(title) > TITLE_LENGTH:
            raise InvalidRequest(f"A title has at most {TITLE_LENGTH:,} characters.")
        return title or None


@dataclass(frozen=True)
class ReadSoFar:
    """How far somebody has read which revision, and when they were there by their device's clock."""

    revision: int
    fraction: float
    place: ReadingPlace | None
    at: datetime


NOTHING = Shelved(None, None, None, None, 0.0, None, None, None, None, None)
_COLUMNS = [shelf.c[name] for name in Shelved._fields]
_OWN = and_(shelf.c.user_id == bindparam("viewer"), shelf.c.media_id == bindparam("media_id"))
_ONE = Query(select(*_COLUMNS).where(_OWN), Shelved)
#: The item, and then what lets the viewer read it, are locked: until this transaction ends, nobody takes it away from
#: them; who does so after that finds what is noted here, and removes it. Nor does the item get into another library of
#: theirs, whose copy of these marks would lack them.
_LOCK = Query(select(media.c.id).where(media.c.id == bindparam("media_id")).with_for_update(read=True), IdRow)
_KEEP = Query(
    select(library_media.c.library_id.label("id"))
    .join(memberships, memberships.c.library_id == library_media.c.library_id)
    .where(library_media.c.media_id == bindparam("media_id"), memberships.c.user_id == bindparam("viewer"))
    .with_for_update(read=True, key_share=True),
    IdRow,
)
_NOW = bindparam("now", type_=shelf.c.changed_at.type)
_ROW: dict[Column[Any], ColumnElement[Any]] = {
    shelf.c.user_id: bindparam("viewer", type_=shelf.c.user_id.type),
    shelf.c.media_id: bindparam("media_id", type_=shelf.c.media_id.type),
    shelf.c.changed_at: _NOW,
}
_KEY = [shelf.c.user_id, shelf.c.media_id]
#: A text that is to be read again starts at its beginning. A device that was elsewhere before does not bring it back.
_FROM_THE_START: dict[str, ColumnElement[Any]] = {
    "fraction": literal_column("0"),
    **{name: null() for name in PLACE},
    "progress_at": _NOW,
}


@lru_cache
def _marking(
    is_read: bool | None, is_archived: bool | None, is_favourite: bool | None, names: bool
) -> Statement:
    """An upsert of what is marked, and of nothing else. A mark that is set already keeps its time."""
    marks = {"read_at": is_read, "archived_at": is_archived, "favourite_at": is_favourite}
    first: dict[str, ColumnElement[Any]] = {name: _NOW for name, is_set in marks.items() if is_set}
    then = {name: func.coalesce(shelf.c[name], _NOW) for name in first}
    gone = {name: null() for name, is_set in marks.items() if is_set is False}
    titles = {name: bindparam(name, type_=shelf.c[name].type) for name in ("title", "title_key") if names}
    start = {} if is_read is not False else _FROM_THE_START
    return upsert(
        shelf,
        _ROW | {shelf.c[name]: value for name, value in {**first, **titles}.items()},
        lambda new: new.on_conflict_do_update(
            index_elements=_KEY, set_={**then, **gone, **titles, **start, "changed_at": _NOW}
        ),
    )


def _reading(new: Any) -> Any:
    given = new.excluded
    is_finished = and_(given.fraction >= _END, shelf.c.fraction < _END)
    return new.on_conflict_do_update(
        index_elements=_KEY,
        set_={
            **{name: given[name] for name in ("fraction", *PLACE, "progress_at", "changed_at")},
            "read_at": case((is_finished, func.coalesce(shelf.c.read_at, _NOW)), else_=shelf.c.read_at),
        },
        where=or_(shelf.c.progress_at.is_(None), shelf.c.progress_at <= given.progress_at),
    )


_END = literal_column(str(FINISHED), Double)
_READ = upsert(
    shelf,
    {
        **_ROW,
        shelf.c.read_at: bindparam("read_at", type_=shelf.c.read_at.type),
        **{shelf.c[name]: bindparam(name, type_=shelf.c[name].type) for name in ("fraction", *PLACE)},
        shelf.c.progress_at: bindparam("at", type_=shelf.c.progress_at.type),
    },
    _reading,
)


def read_shelf(session: Session, media_id: UUID, viewer: UUID) -> Shelved:
    """Return what the viewer has noted about an item. Raises NotFound if they can't read it."""
    access.require_readable(session, media_id, viewer)
    return session.first(_ONE, media_id=media_id, viewer=viewer) or NOTHING


def mark_item(session: Session, media_id: UUID, viewer: UUID, marks: Marks) -> Shelved:
    """Note something about an item; return all that is noted. Doing it again changes nothing.

    Raises NotFound if the viewer can't read it, InvalidRequest for a title that is too long.
    """
    title, names = marks.own_title, marks.title is not None
    statement = _marking(marks.is_read, marks.is_archived, marks.is_favourite, names)
    titles = {"title": title, "title_key": title_key(title) if title else None} if names else {}
    keep_readable(session, media_id, viewer)
    session.run(statement, media_id=media_id, viewer=viewer, now=session.now, **titles)
    return session.first(_ONE, media_id=media_id, viewer=viewer) or NOTHING


def report_progress(session: Session, media_id: UUID, viewer: UUID, progress: ReadSoFar) -> Shelved:
    """Note how far the viewer has read; return what is noted then. The device that was there last wins.

    Reaching the end marks the item as read. No device can be there in the future. Raises NotFound if the viewer can't
    read the item.
    """
    place = progress.place or (None, None, None)
    is_finished = progress.fraction >= FINISHED
    keep_readable(session, media_id, viewer)
    session.run(
        _READ,
        media_id=media_id,
        viewer=viewer,
        now=session.now,
        at=min(progress.at, session.now),
        read_at=session.now if is_finished else None,
        fraction=progress.fraction,
        **dict(zip(PLACE, (progress.revision if progress.place else None, *place), strict=True)),
    )
    return session.first(_ONE, media_id=media_id, viewer=viewer) or NOTHING


def keep_readable(session: Session, media_id: UUID, viewer: UUID) -> None:
    """Let nobody take the item away from the viewer until this transaction ends. Raises NotFound if somebody has."""
    if session.first(_LOCK, media_id=media_id) is None:
        raise NotFound
    if not session.all(_KEEP, media_id=media_id, viewer=viewer):
        raise NotFound
