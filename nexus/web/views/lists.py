"""A list of items: what it shows, in every address of it, and the menu of libraries beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from urllib.parse import parse_qsl, urlencode
from uuid import UUID

from nexus.db.tables import UNSTORABLE
from nexus.errors import NotFound
from nexus.libraries.access import Role
from nexus.libraries.catalog import MyLibrary
from nexus.libraries.sizes import LibrarySize
from nexus.media.list_filters import EVERYTHING, Sort, Wanted
from nexus.media.queries import View
from nexus.search.questions import LONGEST_QUESTION
from nexus.states.media import PUBLISHED, Kind, MediaStatus
from nexus.web.views.items import KINDS

_IN_PROGRESS = frozenset({MediaStatus.PENDING, MediaStatus.EXTRACTING, MediaStatus.EMBEDDING})
#: The links above the list. An item being indexed is both in progress and ready.
TABS: dict[str, tuple[str, Wanted]] = {
    "all": ("All", EVERYTHING),
    "unread": ("Unread", Wanted(is_read=False)),
    "favourites": ("Favourites", Wanted(is_favourite=True, is_archived=None)),
    "archive": ("Archive", Wanted(is_archived=True)),
    "working": ("In progress", Wanted(statuses=_IN_PROGRESS)),
    "failed": ("Failed", Wanted(statuses=frozenset({MediaStatus.FAILED}))),
    "ready": ("Ready", Wanted(statuses=PUBLISHED)),
}
SORTS: dict[str, tuple[str, Sort, bool]] = {
    "": ("Latest added", Sort.ADDED, False),
    "oldest": ("Oldest added", Sort.ADDED, True),
    "title": ("Title, A to Z", Sort.TITLE, False),
    "site": ("Site, A to Z", Sort.SITE, False),
    "published": ("Latest published", Sort.PUBLISHED, False),
    "shortest": ("Shortest to read", Sort.TIME, False),
    "longest": ("Longest to read", Sort.TIME, True),
}
#: The words of the drop-down for kinds.
KIND_NAMES = {kind.value: name for kind, name in KINDS.items()}
#: What can be done with selected items, in words.
DONE = {
    "retried": "retried",
    "removed": "removed",
    "copied": "copied",
    "moved": "moved",
    "read": "marked as read",
    "unread": "marked as unread",
    "archived": "archived",
    "unarchived": "moved out of the archive",
}
_SITE_LENGTH = 255


@dataclass(frozen=True)
class BulkDone:
    """How many of the selected items something was done with, and how many it was not done with."""

    verb: str
    count: int
    refused: int


@dataclass(frozen=True)
class LibraryMenu:
    """The viewer's libraries, and the one that is open."""

    libraries: list[MyLibrary]
    sizes: Mapping[UUID, LibrarySize]
    #: None if all are.
    current: MyLibrary | None

    @property
    def title(self) -> str:
        if self.current is not None:
            return self.current.name
        return "All libraries" if len(self.libraries) > 1 else "Library"

    @property
    def own(self) -> bool:
        """Whether the viewer can change what is in the library that is open."""
        return self.current is not None and self.current.role is Role.ADMIN

    @property
    def targets(self) -> list[MyLibrary]:
        """Where items of this list can be copied to. The only library holds them all."""
        if len(self.libraries) < 2:
            return []
        return [one for one in self.libraries if one.role is Role.ADMIN and one != self.current]


@dataclass(frozen=True)
class ItemList:
    """What a list of items shows. Its defaults are all items of all libraries, the latest added first."""

    library: UUID | None = None
    show: str = "all"
    #: Words that are searched for; the best match is first then.
    q: str = ""
    kind: str = ""
    site: str = ""
    #: The first and the last day on which they were added.
    since: date | None = None
    until: date | None = None
    sort: str = ""

    @classmethod
    def asked(cls, query: Mapping[str, str]) -> ItemList:
        """Read an address. Unknown choices are the default; raises NotFound for a library that can't exist."""
        show, kind, sort = (query.get(name, "") for name in ("show", "kind", "sort"))
        return cls(
            library=_id(query.get("library", "")),
            show=show if show in TABS else "all",
            q=query.get("q", "").strip()[:LONGEST_QUESTION],
            kind=kind if kind in KIND_NAMES else "",
            site=_host(query.get("site", "")),
            since=_day(query.get("since", "")),
            until=_day(query.get("until", "")),
            sort=sort if sort in SORTS else "",
        )

    @classmethod
    def typed(cls, query: str) -> ItemList:
        """Read the query of an address, which a form sends to come back to it."""
        return cls.asked(dict(parse_qsl(query, max_num_fields=50)))

    @property
    def query(self) -> str:
        chosen = {one.name: getattr(self, one.name) for one in fields(self)}
        defaults = {one.name: one.default for one in fields(self)}
        return urlencode({name: value for name, value in chosen.items() if value != defaults[name]})

    @property
    def is_narrowed(self) -> bool:
        """Whether it is filtered by more than a library and a tab."""
        return bool(self.q or self.kind or self.site or self.since or self.until)

    def address(self, **more: str | int) -> str:
        query = "&".join(filter(None, (self.query, urlencode(more))))
        return f"/?{query}" if query else "/"

    def but(self, **changes: Any) -> ItemList:
        return replace(self, **changes)

    def wanted(self) -> Wanted:
        _, sort, is_reversed = SORTS[self.sort]
        return replace(
            TABS[self.show][1],
            library_id=self.library,
            kind=Kind(self.kind) if self.kind else None,
            site=self.site or None,
            added_from=_midnight(self.since),
            added_until=_midnight(self.until, 1),
            sort=sort,
            is_reversed=is_reversed,
        )

    def fits(self, view: View, libraries: set[UUID]) -> bool:
        """Whether an item that these libraries hold is in the list."""
        wanted, row = self.wanted(), view.row
        marks = (
            (wanted.is_read, row.read_at),
            (wanted.is_archived, row.archived_at),
            (wanted.is_favourite, row.favourite_at),
        )
        return (
            (wanted.library_id is None or wanted.library_id in libraries)
            and (not wanted.statuses or row.processing_status in wanted.statuses)
            and (wanted.kind is None or view.shown_kind is wanted.kind)
            and (wanted.site is None or row.host == wanted.site)
            and (wanted.added_from is None or row.added_at >= wanted.added_from)
            and (wanted.added_until is None or row.added_at < wanted.added_until)
            and all(asked is None or asked == (at is not None) for asked, at in marks)
        )


def show_menu(libraries: list[MyLibrary], sizes: Mapping[UUID, LibrarySize], shown: ItemList) -> LibraryMenu:
    return LibraryMenu(libraries, sizes, next((one for one in libraries if one.id == shown.library), None))


def _id(given: str) -> UUID | None:
    try:
        return UUID(given) if given else None
    except ValueError:
        raise NotFound from None


def _host(given: str) -> str:
    return UNSTORABLE.sub("", given).strip().lower().removeprefix("www.")[:_SITE_LENGTH]


def _day(given: str) -> date | None:
    try:
        found = date.fromisoformat(given)
    except ValueError:
        return None
    return found if date.min < found < date.max else None


def _midnight(day: date | None, later: int = 0) -> datetime | None:
    return None if day is None else datetime.combine(day + timedelta(days=later), time(), UTC)
