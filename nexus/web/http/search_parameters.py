"""What a request looks for: the parameters of a search, the same on pages and in the API."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Annotated, Any
from uuid import UUID

from fastapi import Depends, Query

from nexus.errors import InvalidRequest
from nexus.media.searching.finding import Asked
from nexus.media.searching.found_order import LONGEST_CURSOR
from nexus.media.searching.narrowing import ALL_HELD
from nexus.search.questions import Filters, parse_day
from nexus.states.media import Kind

FoundCursor = Annotated[
    str | None, Query(max_length=LONGEST_CURSOR, description="`next_cursor` of the previous page.")
]


def _days(description: str) -> Any:
    return Query(max_length=40, examples=["2026-01-31", "2026-01", "2026"], description=description)


async def _asked(
    q: Annotated[
        str,
        Query(
            examples=['harbour "at night" -fog', "boats kind:pdf after:2025"],
            description='Words; `"phrases"` that have to occur; `-words` that must not; and the filters `in:` (a '
            "library), `kind:`, `site:`, `by:`, `before:` and `after:`. Whatever is typed, nothing is an error.",
        ),
    ] = "",
    kind: Annotated[
        Kind | None, Query(examples=["pdf"], description="A PDF that an address answered with is one.")
    ] = None,
    library: Annotated[UUID | None, Query(description="Only what this library holds.")] = None,
    site: Annotated[
        str | None,
        Query(max_length=255, examples=["example.com"], description="The host, or one above it."),
    ] = None,
    by: Annotated[
        str | None, Query(max_length=255, examples=["Harbour"], description="A part of the author's name.")
    ] = None,
    after: Annotated[
        str | None,
        _days("Published on this day or later; what has no such date counts by when it was added."),
    ] = None,
    before: Annotated[str | None, _days("Published before this day.")] = None,
) -> Asked:
    """Raises InvalidRequest for a parameter that is not a day."""
    filters = Filters(
        kinds=(kind.value,) if kind else (),
        sites=(site,) if site else (),
        bylines=(by,) if by else (),
        before=_day_of(before),
        after=_day_of(after),
    )
    return Asked(q, filters, replace(ALL_HELD, library_id=library))


def _day_of(text: str | None) -> date | None:
    if not text:
        return None
    found = parse_day(text.strip()[:10])
    if found is None:
        raise InvalidRequest("This is not a date. Write it like 2026-01-31, 2026-01 or 2026.")
    return found


#: `async`, so that FastAPI calls it in place.
AskedItems = Annotated[Asked, Depends(_asked)]
