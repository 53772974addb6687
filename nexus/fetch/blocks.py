"""Which providers block this address. Asking them more often would only prolong that.

While a provider blocks it, nobody asks. Then one request finds out whether that is over; the others wait for what
comes of it. This is kept in the book of sites, so it holds for all processes of a Nexus together.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from math import floor
from typing import TypeVar

from nexus import logging
from nexus.errors import FetchBusy, ProviderBlocked, WorkError
from nexus.fetch.pace import SiteBook, SiteState
from nexus.retry_after import LONGEST_BLOCK

log = logging.get_logger(__name__)
T = TypeVar("T")

#: How long others wait for one who finds out, who may have died.
PROBE_SECONDS = 60.0


class ProviderBlocks:
    """Shared by all threads of a process."""

    def __init__(self, book: SiteBook) -> None:
        self._book = book

    @contextmanager
    def asking(self, provider: str) -> Iterator[None]:
        """Ask a provider. Raises ProviderBlocked, before anything is asked, while it blocks this address.

        One that is raised inside begins a wait for everybody, longer than the one before, and says how long it is.
        """
        name = f"provider:{provider}"  # no host has such a name
        known = self._begin(name)
        try:
            yield
        except ProviderBlocked as error:
            asked = error.retry_after or 0.0
            error.retry_after = self._tell_others(name, partial(_block, known=known, asked=asked)) or asked
            raise
        except WorkError as error:
            if known:
                self._tell_others(name, partial(_end_probe, known=known, is_open=not error.transient))
            raise
        if known:
            self._tell_others(name, partial(_end_probe, known=known, is_open=True))

    def _begin(self, name: str) -> int:
        """Return how many blocks in a row are known; if there are any, this is the one who finds out."""

        def act(state: SiteState, now: float) -> int:
            if state.blocked_until > now:
                blocked = ProviderBlocked()
                blocked.retry_after = _left(state, now)
                raise blocked
            if state.blocks:
                state.blocked_until = now + PROBE_SECONDS
            return state.blocks

        try:
            return self._book.change(name, act)
        except ProviderBlocked:
            raise
        except Exception as error:  # nobody knows whether anything may be asked
            log.warning("provider_book_failed", reason=type(error).__name__)
            raise FetchBusy from error

    def _tell_others(self, name: str, act: Callable[[SiteState, float], T]) -> T | None:
        """None if they can't be told. What was asked has its answer all the same."""
        try:
            return self._book.change(name, act)
        except Exception as error:
            log.warning("provider_book_failed", reason=type(error).__name__)
            return None


def _block(state: SiteState, now: float, known: int, asked: float) -> float:
    """Write that the provider blocks this address, and return for how long nobody asks it.

    Of several who asked at the same time, one counts.
    """
    if state.blocks == known:
        grown = timedelta(seconds=asked) * (1 << min(known, 10))
        state.blocks = known + 1
        state.blocked_until = now + min(grown, LONGEST_BLOCK).total_seconds() * random.uniform(0.875, 1.0)  # noqa: S311
    return _left(state, now)


def _left(state: SiteState, now: float) -> float:
    """Return after how many seconds the provider may be asked: whole ones, so that nobody comes a moment too early."""
    return floor(max(state.blocked_until - now, 0.0)) + 1.0


def _end_probe(state: SiteState, now: float, known: int, *, is_open: bool) -> None:
    """Let others ask: because the block is over, or because this one could not find out."""
    if state.blocks == known:
        state.blocked_until = now
        state.blocks = 0 if is_open else known
