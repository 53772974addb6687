"""What a personal API token must be allowed to do, for each endpoint. The gate asks; endpoints only declare."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from nexus.libraries.tokens import Scope

E = TypeVar("E", bound=Callable[..., Any])

READING = frozenset({"GET", "HEAD"})
_DECLARED: dict[Callable[..., Any], Scope | None] = {}


def adds(endpoint: E) -> E:
    """Declare that an endpoint adds items, so that a token that can only add opens it."""
    _DECLARED[endpoint] = Scope.ADD
    return endpoint


def is_for_people(endpoint: E) -> E:
    """Declare that no personal token opens an endpoint: a stolen one must not make others or take them back."""
    _DECLARED[endpoint] = None
    return endpoint


def needed_for(endpoint: Callable[..., Any], methods: Iterable[str]) -> Scope | None:
    """Return what was declared. By default, what only reads needs `read` and everything else `all`."""
    if endpoint in _DECLARED:
        return _DECLARED[endpoint]
    return Scope.READ if READING.issuperset(methods) else Scope.ALL
