"""The orders that a list can have, and how a cursor remembers where a page of it ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from nexus.errors import InvalidRequest
from nexus.media.items import ItemRow
from nexus.media.list_filters import Sort, Wanted
from nexus.media.queries import NOT_OURS, cursor_after, cursor_parts, moment_in


class _ByMoment(NamedTuple):
    item: ItemRow
    key: datetime


class _ByText(NamedTuple):
    item: ItemRow
    key: str


class _ByNumber(NamedTuple):
    item: ItemRow
    key: int


class _BySite(NamedTuple):
    item: ItemRow
    key: str
    at: datetime


OrderedRow = _ByMoment | _ByText | _ByNumber | _BySite


def _text_in(text: Any) -> str:
    if not isinstance(text, str) or "\0" in text:
        raise ValueError(text)
    text.encode()
    return text


def _number_in(number: Any) -> int:
    if not isinstance(number, int) or not 0 <= number < 2**31:
        raise ValueError(number)
    return number


@dataclass(frozen=True)
class HoldingOrder:
    """The columns of a holding that an order goes by, before the item's id, and whether the greatest is first."""

    #: Each with a function that finds its value in a cursor.
    columns: Mapping[str, Callable[[Any], Any]]
    row: type[OrderedRow]
    descends: bool = False


_ORDERS = {
    Sort.ADDED: HoldingOrder({"added_at": moment_in}, _ByMoment, descends=True),
    Sort.TITLE: HoldingOrder({"title_key": _text_in}, _ByText),
    Sort.SITE: HoldingOrder({"host": _text_in, "added_at": moment_in}, _BySite),
    Sort.PUBLISHED: HoldingOrder({"published": _text_in}, _ByText, descends=True),
    Sort.TIME: HoldingOrder({"words": _number_in}, _ByNumber),
}


def order_of(wanted: Wanted) -> HoldingOrder:
    order = _ORDERS[wanted.sort]
    return replace(order, descends=not order.descends) if wanted.is_reversed else order


def cursor_behind(wanted: Wanted, row: OrderedRow) -> str:
    """Return the cursor of a page that ends with a row."""
    keys = [key.isoformat() if isinstance(key, datetime) else key for key in row[1:]]
    return cursor_after(*_named(wanted), *keys, row.item.id.hex)


def place_in(wanted: Wanted, cursor: str) -> dict[str, Any]:
    """Return where the page before ended, as parameters. Raises InvalidRequest for a cursor of another list."""
    named = _named(wanted)
    columns = _ORDERS[wanted.sort].columns.values()
    try:
        given = cursor_parts(cursor)
        if given[: len(named)] != named:
            raise ValueError(given)
        *keys, last_id = given[len(named) :]
        place = [find(key) for find, key in zip(columns, keys, strict=True)]
        return {"last_id": UUID(hex=last_id)} | {f"place_{n}": key for n, key in enumerate(place)}
    except (ValueError, TypeError, AttributeError, OverflowError) as error:
        raise InvalidRequest(NOT_OURS) from error


def _named(wanted: Wanted) -> list[str]:
    """What a cursor begins with, so that it is used for its own order only."""
    if wanted.sort is Sort.ADDED and not wanted.is_reversed:
        return []
    return [f"-{wanted.sort}" if wanted.is_reversed else str(wanted.sort)]
