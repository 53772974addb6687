"""The threads that endpoints run in. Users take turns, and what waits for something slow has threads of its own."""

from __future__ import annotations

import asyncio
import inspect
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, Protocol, TypeVar, cast
from uuid import UUID

from anyio import CapacityLimiter, to_thread
from fastapi import Request, Response

from nexus.settings import Settings

T = TypeVar("T")
E = TypeVar("E", bound=Callable[..., Response])
#: Whose turn it is; None stands for everybody who is not signed in.
User = UUID | None

#: How many calls run at once that only need the database, and how many that wait for a site, or for a store.
QUICK_THREADS = 40
PATIENT_THREADS = 64
#: Searches keep a processor busy, each for longer than a read.
SEARCH_THREADS = 8
#: While somebody types, one that they no longer want may still run.
SEARCHES_PER_USER = 2
#: What a client that has gone would be told.
GONE = 499
_WAITS_FOR: dict[Callable[..., Any], str] = {}


class RunInTurn(Protocol):
    """Runs a call in a thread when it is the turn of one user."""

    def __call__(self, call: Callable[[], T], /) -> Awaitable[T]: ...


class Lane:
    """Some threads, of which no user takes more than a share. Users who wait are served in turn."""

    def __init__(self, threads: int, per_user: int) -> None:
        self._limiter = CapacityLimiter(threads)
        self._free = threads
        self._per_user = per_user
        self._running: Counter[User] = Counter()
        #: In the order of their turns.
        self._waiting: dict[User, deque[asyncio.Future[None]]] = {}

    def of(self, user: User) -> RunInTurn:
        """Return `run` for one user, for callers with several things to run."""
        return partial(self.run, user)

    async def run(self, user: User, call: Callable[[], T]) -> T:
        """Run a call in a thread when it is the user's turn."""
        async with self.turn(user) as run:
            return await run(call)

    @asynccontextmanager
    async def turn(self, user: User) -> AsyncIterator[RunInTurn]:
        """Wait for the user's turn, and lend a thread until it ends."""
        await self._begin(user)
        try:
            yield partial(to_thread.run_sync, limiter=self._limiter)
        finally:
            self._end(user)

    async def _begin(self, user: User) -> None:
        # If threads are free, everybody who waits has a whole share.
        if self._free and self._running[user] < self._per_user:
            self._take(user)
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(user, deque()).append(turn)
        try:
            await turn
        except BaseException:
            if turn.done() and not turn.cancelled():
                self._end(user)
            raise

    def _take(self, user: User) -> None:
        self._free -= 1
        self._running[user] += 1

    def _end(self, user: User) -> None:
        self._free += 1
        self._running[user] -= 1
        if not self._running[user]:
            del self._running[user]
        while self._free and self._let_next():
            pass

    def _let_next(self) -> bool:
        """Let the next user go on, who is then last in line. Return whether one could."""
        ready = [user for user in self._waiting if self._running[user] < self._per_user][:1]
        if not ready:
            return False
        user = ready[0]
        line = self._waiting.pop(user)
        turn = line.popleft()
        if line:
            self._waiting[user] = line
        if not turn.done():  # nobody has given up waiting
            self._take(user)
            turn.set_result(None)
        return True


@dataclass(frozen=True)
class Threads:
    """The lanes of one server."""

    quick: Lane
    #: Fetches wait long, and a user's own files must not wait for them.
    site: Lane
    store: Lane
    search: Lane

    @classmethod
    def of(cls, settings: Settings) -> Threads:
        return cls(
            quick=Lane(QUICK_THREADS, settings.threads_per_user),
            site=Lane(PATIENT_THREADS, settings.slow_calls_per_user),
            store=Lane(PATIENT_THREADS, settings.slow_calls_per_user),
            search=Lane(SEARCH_THREADS, min(SEARCHES_PER_USER, settings.threads_per_user)),
        )


def threads_of(request: Request) -> Threads:
    found: Threads = request.app.state.threads
    return found


async def taken_in_turn(run: RunInTurn, pieces: Iterator[T]) -> AsyncIterator[T]:
    """Pass on pieces that take time to get. While one is passed on, no thread waits for its reader."""
    end = object()
    while (piece := await run(partial(next, pieces, end))) is not end:
        yield cast(T, piece)


def waits_for_site(endpoint: E) -> E:
    """Declare that an endpoint waits for a site, a parser or a model: it holds no thread that a read needs."""
    _WAITS_FOR[endpoint] = "site"
    return endpoint


def waits_for_store(endpoint: E) -> E:
    """Declare the same of an endpoint that waits for the file store, or reads whole texts."""
    _WAITS_FOR[endpoint] = "store"
    return endpoint


def searches(endpoint: E) -> E:
    """Declare that an endpoint searches in everything that its caller may read."""
    _WAITS_FOR[endpoint] = "search"
    return endpoint


def in_turn(endpoint: Callable[..., Any]) -> Callable[..., Any]:
    """Have an endpoint run in a thread when it is its caller's turn. One that is `async` runs in place."""
    if inspect.iscoroutinefunction(endpoint):
        return endpoint
    plain = inspect.signature(endpoint)
    asks_for_request = "request" in plain.parameters
    name = _WAITS_FOR.get(endpoint, "quick")

    @wraps(endpoint)
    async def answer(request: Request, **given: Any) -> Any:
        if asks_for_request:
            given["request"] = request
        lane: Lane = getattr(threads_of(request), name)
        async with lane.turn(request.scope.get("nexus.viewer")) as run:
            # Typing on has cancelled the earlier question.
            if name == "search" and await request.is_disconnected():
                return Response(status_code=GONE)
            return await run(partial(endpoint, **given))

    if not asks_for_request:
        hidden = inspect.Parameter("request", inspect.Parameter.KEYWORD_ONLY, annotation=Request)
        answer.__signature__ = plain.replace(parameters=[*plain.parameters.values(), hidden])  # type: ignore[attr-defined]
    return answer
