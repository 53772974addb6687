"""What a request wants to see of the list of items: the same parameters on pages and in the API."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import Depends, Query

from nexus.db.tables import UNSTORABLE
from nexus.errors import InvalidRequest
from nexus.media.list_filters import Sort, Wanted
from nexus.states.media import Kind, MediaStatus

_ARCHIVED = {"false": False, "true": True, "any": None}


def _moment(description: str) -> Any:
    return Query(max_length=40, examples=["2026-01-31", "2026-01-31T12:00:00Z"], description=description)


async def _wanted(
    library_id: UUID | None = None,
    status: Annotated[str | None, Query(examples=["failed"])] = None,
    kind: Annotated[
        Kind | None, Query(examples=["pdf"], description="A PDF that an address answered with is one.")
    ] = None,
    site: Annotated[
        str | None,
        Query(
            max_length=255, examples=["example.com"], description="The host of the address, without `www.`."
        ),
    ] = None,
    added_after: Annotated[
        str | None, _moment("The first moment or day, in UTC unless it says otherwise.")
    ] = None,
    added_before: Annotated[str | None, _moment("The first moment or day that is too late.")] = None,
    read: Annotated[
        bool | None, Query(description="Only what you have read, or only what you have not.")
    ] = None,
    archived: Annotated[
        Literal["false", "true", "any"], Query(description="`true` for archived items alone, `any` for all.")
    ] = "false",
    favourite: bool | None = None,
    sort: Annotated[
        Sort,
        Query(
            description="`added` and `published`: the latest first; `title` and `site`: from A to Z; `time`: the "
            "shortest to read first. Without a text an item has no title, date or length."
        ),
    ] = Sort.ADDED,
    reverse: Annotated[bool, Query(description="Reverses the order.")] = False,
) -> Wanted:
    """Raises InvalidRequest for a status or a moment that does not exist."""
    if status is not None and status not in set(MediaStatus):
        raise InvalidRequest(f"There is no status of that name. Choose one of {', '.join(MediaStatus)}.")
    return Wanted(
        library_id=library_id,
        statuses=frozenset() if status is None else frozenset({MediaStatus(status)}),
        kind=kind,
        site=None if site is None else UNSTORABLE.sub("", site).strip().lower().removeprefix("www."),
        added_from=_in_utc(added_after),
        added_until=_in_utc(added_before),
        is_read=read,
        is_archived=_ARCHIVED[archived],
        is_favourite=favourite,
        sort=sort,
        is_reversed=reverse,
    )


def _in_utc(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise InvalidRequest(
            "This is not a date. Write it like 2026-01-31 or 2026-01-31T12:00:00Z."
        ) from error


#: `async`, so that FastAPI calls it in place.
WantedItems = Annotated[Wanted, Depends(_wanted)]
