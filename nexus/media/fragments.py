"""The fragments of a text, a page at a time. A page ends after some number of them or of bytes, and a fragment that is
larger than a page is read in parts: chapters of books are long."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from sqlalchemy import BigInteger, Integer, LargeBinary, Select, Text, bindparam, cast, func, select
from sqlalchemy.engine import Dialect

from nexus.db.recordings import timings
from nexus.db.session import Query, Session, Sessions
from nexus.db.tables import fragments
from nexus.errors import NotFound
from nexus.extract import TimeSpan
from nexus.media.illustrations import Illustrations, has_images, illustrations_of, name_images
from nexus.media.queries import PAGE, ItemPage, View, cursor_after, number_in
from nexus.media.recordings.spoken import read_spans
from nexus.states.capabilities import PLAYABLE

#: How much a page holds of text and html together, in bytes.
PAGE_BYTES = 256 * 1024
#: How much of a larger fragment is read at a time, in characters.
SLICE = 128 * 1024
R = TypeVar("R")


class FragmentRow(NamedTuple):
    id: UUID
    position: int
    text: str
    html: str | None


class TimedFragmentRow(NamedTuple):
    """A fragment of a transcript, and when its sentences are spoken."""

    id: UUID
    position: int
    text: str
    html: str | None
    times: tuple[TimeSpan, ...]


class _Spans(NamedTuple):
    position: int
    spans: str


class _Size(NamedTuple):
    position: int
    size: int


class _Slice(NamedTuple):
    piece: str | None


class _Outline(NamedTuple):
    id: UUID
    has_html: bool


_OF_TEXT = (fragments.c.media_id == bindparam("media_id"), fragments.c.revision == bindparam("number"))
_PLACE = bindparam("place", type_=BigInteger)


def _sizes(dialect: Dialect) -> Select[Any]:
    """How large the fragments after a place are. PostgreSQL knows that without reading them."""

    def octets(column: Any) -> Any:
        if dialect.name == "sqlite":
            return func.length(cast(column, LargeBinary), type_=Integer)
        return func.octet_length(column, type_=Integer)

    size = octets(fragments.c.text) + func.coalesce(octets(fragments.c.html), 0)
    return (
        select(fragments.c.position, size.label("size"))
        .where(*_OF_TEXT, fragments.c.position > _PLACE)
        .order_by(fragments.c.position)
        .limit(bindparam("most"))
    )


def _slice(column: Any) -> Query[_Slice]:
    part = func.substr(
        column, bindparam("start", type_=Integer), bindparam("length", type_=Integer), type_=Text
    )
    return Query(select(part.label("piece")).where(*_OF_TEXT, fragments.c.position == _PLACE), _Slice)


_SIZES = Query(_sizes, _Size)
_UP_TO = Query(
    select(fragments.c.id, fragments.c.position, fragments.c.text, fragments.c.html)
    .where(
        *_OF_TEXT,
        fragments.c.position > _PLACE,
        fragments.c.position <= bindparam("last", type_=BigInteger),
    )
    .order_by(fragments.c.position),
    FragmentRow,
)
_TIMES = Query(
    select(timings.c.position, timings.c.spans).where(
        timings.c.media_id == bindparam("media_id"),
        timings.c.revision == bindparam("number"),
        timings.c.position > _PLACE,
        timings.c.position <= bindparam("last", type_=BigInteger),
    ),
    _Spans,
)
_ABOUT = Query(
    select(fragments.c.id, fragments.c.html.is_not(None).label("has_html")).where(
        *_OF_TEXT, fragments.c.position == _PLACE
    ),
    _Outline,
)
_SLICES = {"text": _slice(fragments.c.text), "html": _slice(fragments.c.html)}


@dataclass(frozen=True)
class LargeFragment:
    """A fragment that is larger than a page, for callers who may read that page."""

    media_id: UUID
    revision: int
    id: UUID
    position: int
    has_html: bool
    #: The pictures of the text.
    known: Illustrations

    def text_slices(self, sessions: Sessions) -> Iterator[str]:
        """Read its text in parts, each in a session of its own: the reader may be slow.

        Raises NotFound if it is deleted meanwhile.
        """
        return self._slices(sessions, "text")

    def html_slices(self, sessions: Sessions) -> Iterator[str]:
        """Read its html in the same way, with the names of its pictures. A tag is never cut in two."""
        rest = ""
        for piece in self._slices(sessions, "html"):
            whole = rest + piece
            end = whole.rfind("<") if whole.rfind("<") > whole.rfind(">") else len(whole)
            yield name_images(whole[:end], self.known)
            rest = whole[end:]
        yield rest

    def _slices(self, sessions: Sessions, column: str) -> Iterator[str]:
        start, statement = 1, _SLICES[column]
        place = {"media_id": self.media_id, "number": self.revision, "place": self.position}
        while True:
            with sessions.read() as session:
                found = session.first(statement, start=start, length=SLICE, **place)
            if found is None or found.piece is None:
                raise NotFound
            yield found.piece
            if len(found.piece) < SLICE:
                return
            start += SLICE


@dataclass(frozen=True)
class TextPage(ItemPage[FragmentRow | TimedFragmentRow]):
    """A page of a text. If `large` is there, it is the only fragment of the page, and `items` is empty."""

    large: LargeFragment | None = None


def read_text_page(session: Session, found: View, cursor: str | None = None, most: int = PAGE) -> TextPage:
    """List the fragments of the revision that a view shows, in reading order."""
    of = {"media_id": found.row.id, "number": found.row.revision}
    after = number_in(cursor, -1)
    sizes = session.all(_SIZES, place=after, most=most + 1, **of)
    chosen = first_within(sizes[:most], (row.size for row in sizes), PAGE_BYTES)
    if not chosen:
        return TextPage([], None, found.capabilities)
    last = chosen[-1].position
    following = cursor_after(last) if len(chosen) < len(sizes) else None
    if chosen[0].size > PAGE_BYTES:
        (about,) = session.all(_ABOUT, place=last, **of)
        known = illustrations_of(session, found.row.id, found.row.revision)
        large = LargeFragment(found.row.id, found.row.revision, about.id, last, about.has_html, known)
        return TextPage([], following, found.capabilities, large)
    rows = session.all(_UP_TO, place=after, last=last, **of)
    shown = _with_pictures(session, found, rows)
    if found.row.kind in PLAYABLE:
        times = {row.position: row.spans for row in session.all(_TIMES, place=after, last=last, **of)}
        timed = [
            TimedFragmentRow(*row, read_spans(times[row.position])) if row.position in times else row
            for row in shown
        ]
        return TextPage(timed, following, found.capabilities)
    return TextPage([*shown], following, found.capabilities)


def _with_pictures(session: Session, found: View, rows: list[FragmentRow]) -> list[FragmentRow]:
    """Return fragments whose html names the pictures that are there."""
    if not any(has_images(row.html) for row in rows):
        return rows
    known = illustrations_of(session, found.row.id, found.row.revision)
    return [row if row.html is None else row._replace(html=name_images(row.html, known)) for row in rows]


def first_within(rows: list[R], sizes: Iterable[int], most: int) -> list[R]:
    """Return as many of the first rows as are no larger than `most` together, and at least one if there is one."""
    count = sum(total <= most for total in accumulate(sizes))
    return rows[: max(count, 1)]
