"""What readers give back if it is not a text: each kind of result is a subclass of ParserResult.

A parser may have been taken over by its document, so results are decoded by position, with no unknown, missing or
repeated field. Lists have to be bounded (`Annotated[tuple[Item, ...], MANY]`), and whatever is html has to be cleaned
by the caller.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

#: Each item costs the worker a few hundred bytes, however short it is on the wire.
MOST_ITEMS = 100_000
MANY = msgspec.Meta(max_length=MOST_ITEMS)


class ParserResult(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    """Its fields are strings, numbers, bytes, None, other ParserResults, NamedTuples, and bounded tuples of those."""


P = TypeVar("P", bound=ParserResult)
