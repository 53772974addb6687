"""Where a search looks: the texts that a viewer may read, and of these the ones that the filters leave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time
from functools import lru_cache
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, FromClause, Select, and_, bindparam, exists, func, or_, select

from nexus.db.session import Session
from nexus.db.tables import UNSTORABLE, library_media, media, memberships, revisions
from nexus.db.value_lists import in_values, numbered_values, padded_values
from nexus.libraries import access, catalog
from nexus.media.items import HELD_BY_VIEWER
from nexus.media.list_filters import Wanted, holding_conditions, of_kinds
from nexus.media.queries import SHAPES
from nexus.search.questions import Filters
from nexus.search.scope import SearchScope
from nexus.states.media import Kind

#: What people call the kinds, besides the names that the API has for them.
KIND_WORDS = {
    "article": Kind.WEB_ARTICLE,
    "articles": Kind.WEB_ARTICLE,
    "web": Kind.WEB_ARTICLE,
    "videos": Kind.VIDEO,
    "podcast": Kind.PODCAST_EPISODE,
    "episode": Kind.PODCAST_EPISODE,
    "pdfs": Kind.PDF,
    "book": Kind.EPUB,
    "books": Kind.EPUB,
    "ebook": Kind.EPUB,
    "txt": Kind.TEXT,
    **{kind.value: kind for kind in Kind},
}
#: Everything that a viewer holds, also what they archived.
ALL_HELD = Wanted(is_archived=None)


@dataclass(frozen=True)
class _FilterShape:
    """What makes the conditions of filters: of most of them only how many values there are."""

    number: int
    kinds: frozenset[Kind]
    libraries: int
    sites: int
    bylines: int
    before: bool
    after: bool


@dataclass(frozen=True)
class _Filled:
    shape: _FilterShape
    values: dict[str, Any]


def search_scope(
    session: Session, viewer: UUID, wanted: Wanted, given: Sequence[Filters], items: Sequence[UUID] = ()
) -> SearchScope | None:
    """Return where to look: what is wanted and passes all filters; with items, only these.

    None if nothing can pass, because a filter names a kind or a library that does not exist. Raises NotFound for a
    wanted library that the viewer doesn't belong to.
    """
    if wanted.library_id is not None:
        access.require_member(session, wanted.library_id, viewer)
    filled = [_filled(session, viewer, number, filters) for number, filters in enumerate(given)]
    shapes = tuple(one.shape for one in filled if one is not None)
    if len(shapes) < len(given):
        return None
    values: dict[str, Any] = {"viewer": viewer, **wanted.values()}
    if wanted.library_id is not None:
        values["library_id"] = wanted.library_id
    for one in filled:
        values |= one.values if one else {}
    chosen = padded_values(items)
    values |= numbered_values("item", chosen)
    return SearchScope(_readable(wanted.masked(), shapes, len(chosen)), values)


def _filled(session: Session, viewer: UUID, number: int, filters: Filters) -> _Filled | None:
    kinds = frozenset(KIND_WORDS[word] for word in filters.kinds if word in KIND_WORDS)
    libraries = _named_libraries(session, viewer, filters.libraries)
    if (filters.kinds and not kinds) or (filters.libraries and not libraries):
        return None
    sites = [_host(site) for site in filters.sites]
    lists: dict[str, list[Any]] = {
        "held_in": padded_values(libraries),
        "host": padded_values(sites),
        "subdomain": [f"%.{_literal(host)}" for host in padded_values(sites)],
        "byline": [_loosely(byline) for byline in padded_values(filters.bylines)],
    }
    values = {
        name: value
        for kind, many in lists.items()
        for name, value in numbered_values(f"{kind}{number}", many).items()
    }
    for name, day in (("before", filters.before), ("after", filters.after)):
        if day is not None:
            values |= {
                f"{name}_day{number}": day.isoformat(),
                f"{name}{number}": datetime.combine(day, time(), UTC),
            }
    shape = _FilterShape(
        number,
        kinds,
        len(lists["held_in"]),
        len(lists["host"]),
        len(lists["byline"]),
        filters.before is not None,
        filters.after is not None,
    )
    return _Filled(shape, values)


def _named_libraries(session: Session, viewer: UUID, names: Sequence[str]) -> list[UUID]:
    """The viewer's libraries of these names, or else those whose names begin so."""
    if not names:
        return []
    known = [(one.name.casefold().strip(), one.id) for one in catalog.list_libraries(session, viewer)]
    found: list[UUID] = []
    for name in (name.casefold() for name in names):
        same = [library for own, library in known if own == name]
        found += same or [library for own, library in known if own.startswith(name)]
    return found


@lru_cache(SHAPES)
def _readable(wanted: Wanted, shapes: tuple[_FilterShape, ...], items: int) -> Select[Any]:
    """All holdings of an item say which revision the viewer sees; one of them has to pass the filters."""
    found = (
        select(library_media.c.media_id, access.shown_revision().label("revision"))
        .join(memberships, memberships.c.library_id == library_media.c.library_id)
        .join(media, media.c.id == library_media.c.media_id)
        .where(HELD_BY_VIEWER)
        .group_by(library_media.c.media_id)
    )
    if items:
        found = found.where(in_values(library_media.c.media_id, "item", items))
    held, member = library_media.alias("held"), memberships.alias("member")
    conditions = holding_conditions(wanted, held)
    if wanted.library_id is not None:
        conditions.append(held.c.library_id == bindparam("library_id", type_=held.c.library_id.type))
    for shape in shapes:
        conditions += _conditions(shape, held)
    if not conditions:
        return found
    passes = exists(
        select(held.c.media_id)
        .join(member, member.c.library_id == held.c.library_id)
        .where(
            held.c.media_id == library_media.c.media_id,
            member.c.user_id == bindparam("viewer"),
            *conditions,
        )
        .correlate(library_media)
    )
    return found.where(passes)


def _conditions(shape: _FilterShape, held: FromClause) -> list[ColumnElement[bool]]:
    number = shape.number
    conditions: list[ColumnElement[bool]] = []
    if shape.libraries:
        conditions.append(in_values(held.c.library_id, f"held_in{number}", shape.libraries))
    if shape.kinds:
        conditions.append(of_kinds(shape.kinds, held))
    if shape.sites:
        below = (
            held.c.host.like(bindparam(f"subdomain{number}_{n}"), escape="\\") for n in range(shape.sites)
        )
        conditions.append(or_(in_values(held.c.host, f"host{number}", shape.sites), *below))
    if shape.bylines:
        conditions.append(_written_by(held, [f"byline{number}_{n}" for n in range(shape.bylines)]))
    if shape.before:
        conditions.append(_dated(held, f"before_day{number}", f"before{number}", is_before=True))
    if shape.after:
        conditions.append(_dated(held, f"after_day{number}", f"after{number}", is_before=False))
    return conditions


def _written_by(held: FromClause, names: list[str]) -> ColumnElement[bool]:
    text = revisions.alias("held_text")
    said = exists(
        select(text.c.number)
        .where(
            text.c.media_id == held.c.media_id,
            text.c.number == func.coalesce(held.c.revision, media.c.revision),
            or_(*(text.c.byline.ilike(bindparam(name), escape="\\") for name in names)),
        )
        .correlate(held, media)
    )
    return exists(select(media.c.id).where(media.c.id == held.c.media_id, said).correlate(held))


def _dated(held: FromClause, day: str, moment: str, *, is_before: bool) -> ColumnElement[bool]:
    """By the date on which it was published or, if it has none, the moment at which it was added."""
    published, added = held.c.published, held.c.added_at
    by_day: Any = bindparam(day, type_=published.type)
    by_moment: Any = bindparam(moment, type_=added.type)
    return or_(
        and_(published != "", published < by_day if is_before else published >= by_day),
        and_(published == "", added < by_moment if is_before else added >= by_moment),
    )


def _host(given: str) -> str:
    """The host of a site, also if it is given as an address."""
    bare = UNSTORABLE.sub("", given).strip().lower().partition("://")
    return (bare[2] or bare[0]).partition("/")[0].removeprefix("www.")


def _literal(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _loosely(text: str) -> str:
    """A pattern for part of a name. SQLite knows upper and lower case of ASCII only, so other letters match any."""
    letters = (
        "_" if not char.isascii() and char.lower() != char.upper() else _literal(char)
        for char in UNSTORABLE.sub("", text)
    )
    return f"%{''.join(letters)}%"
