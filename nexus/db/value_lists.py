"""Conditions on a list of values. Both databases compile them once for each of a few lengths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, bindparam

T = TypeVar("T")

#: Lists are filled up to one of these lengths, so that there are few statements.
LENGTHS = (1, 4, 16, 64, 256)


def padded_values(values: Sequence[T]) -> list[T]:
    """Return the values with the last one repeated, up to one of a few lengths. More than the longest are left out."""
    if not values:
        return []
    length = next((length for length in LENGTHS if length >= len(values)), LENGTHS[-1])
    return [*values[:length], *[values[-1]] * (length - len(values))]


def in_values(column: ColumnElement[Any], name: str, count: int) -> ColumnElement[bool]:
    """Whether a column has one of so many values, which are the parameters `name_0`, `name_1`, …"""
    return column.in_([bindparam(f"{name}_{place}", type_=column.type) for place in range(count)])


def numbered_values(name: str, values: Sequence[Any]) -> dict[str, Any]:
    """Return the parameters of `in_values`."""
    return {f"{name}_{place}": value for place, value in enumerate(values)}
