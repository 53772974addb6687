"""Who gets a thread next, and who has asked too often."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from uuid import uuid4

import pytest

from nexus.errors import RateLimited
from nexus.web.http.request_shares import MINUTE, REMEMBERED, Shares
from nexus.web.http.threads import Lane, taken_in_turn

ME, YOU, THIRD = uuid4(), uuid4(), uuid4()
PATIENCE = 60.0


class Desk:
    """Calls that wait in threads until they are let go, and the order in which they began."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self._gates: dict[str, threading.Event] = {}

    def call(self, name: str) -> Callable[[], str]:
        gate = self._gates[name] = threading.Event()

        def wait() -> str:
            self.begun.append(name)
            assert gate.wait(PATIENCE)
            return name

        return wait

    def let_go(self, *names: str) -> None:
        for name in names:
            self._gates[name].set()


@contextmanager
def desk() -> Iterator[Desk]:
    made = Desk()
    try:
        yield made
    finally:
        made.let_go(*made._gates)


async def begun(made: Desk, *names: str) -> None:
    """Wait until exactly these have begun, in any order: each says so in a thread of its own."""
    async with asyncio.timeout(PATIENCE):
        while len(made.begun) < len(names):
            await asyncio.sleep(0.001)
    assert sorted(made.begun) == sorted(names)


def run(main: Callable[[Desk], Awaitable[None]]) -> None:
    async def with_desk() -> None:
        with desk() as made:
            await main(made)

    asyncio.run(with_desk())


def test_slow_calls_of_one_user_leave_threads_to_others() -> None:
    async def main(made: Desk) -> None:
        lane = Lane(3, per_user=2)
        mine = [asyncio.create_task(lane.run(ME, made.call(f"my {n}"))) for n in range(66)]
        await begun(made, "my 0", "my 1")
        yours = asyncio.create_task(lane.run(YOU, made.call("yours")))
        await begun(made, "my 0", "my 1", "yours")
        made.let_go("yours")
        assert await yours == "yours"
        made.let_go(*(f"my {n}" for n in range(66)))
        assert await asyncio.gather(*mine) == [f"my {n}" for n in range(66)]

    run(main)


def test_a_thread_that_others_free_is_not_for_somebody_who_has_a_whole_share() -> None:
    async def main(made: Desk) -> None:
        lane = Lane(3, per_user=2)
        names = ["my 0", "my 1", "my 2"]
        mine = [asyncio.create_task(lane.run(ME, made.call(name))) for name in names]
        await begun(made, "my 0", "my 1")
        yours = asyncio.create_task(lane.run(YOU, made.call("yours")))
        await begun(made, "my 0", "my 1", "yours")
        made.let_go("yours")
        await yours
        third = asyncio.create_task(lane.run(THIRD, made.call("third")))
        await begun(made, "my 0", "my 1", "yours", "third")
        made.let_go("third", *names)
        await asyncio.gather(third, *mine)

    run(main)


def test_users_who_wait_are_served_in_turn() -> None:
    async def main(made: Desk) -> None:
        lane = Lane(1, per_user=1)
        calls = [
            (ME, "my 0"),
            (ME, "my 1"),
            (ME, "my 2"),
            (YOU, "your 0"),
            (YOU, "your 1"),
            (None, "a stranger"),
        ]
        tasks = []
        for user, name in calls:
            tasks.append(asyncio.create_task(lane.run(user, made.call(name))))
            await asyncio.sleep(0)  # it stands in line now
        made.let_go(*(name for _, name in calls))
        await asyncio.gather(*tasks)
        assert made.begun == ["my 0", "my 1", "your 0", "a stranger", "my 2", "your 1"]

    run(main)


def test_a_call_that_is_given_up_frees_its_turn() -> None:
    async def main(made: Desk) -> None:
        lane = Lane(1, per_user=1)
        first = asyncio.create_task(lane.run(ME, made.call("first")))
        await begun(made, "first")
        given_up = asyncio.create_task(lane.run(YOU, made.call("given up")))
        later = asyncio.create_task(lane.run(THIRD, made.call("later")))
        await asyncio.sleep(0)
        given_up.cancel()
        made.let_go("first", "later")
        assert await asyncio.gather(first, later) == ["first", "later"]
        again = asyncio.create_task(lane.run(YOU, made.call("again")))
        made.let_go("again")
        assert await again == "again"
        assert made.begun == ["first", "later", "again"]

    run(main)


def test_a_call_that_is_given_up_as_its_turn_comes_frees_it() -> None:
    async def main(made: Desk) -> None:
        lane = Lane(1, per_user=1)

        async def give_up_after_the_first() -> None:
            await lane.run(ME, made.call("first"))
            given_up.cancel()  # its turn has come, and it does not know yet

        first = asyncio.create_task(give_up_after_the_first())
        await begun(made, "first")
        given_up = asyncio.create_task(lane.run(YOU, made.call("given up")))
        await asyncio.sleep(0)
        made.let_go("first")
        await first
        with pytest.raises(asyncio.CancelledError):
            await given_up
        async with asyncio.timeout(PATIENCE):
            assert await lane.run(THIRD, lambda: 1) == 1
        assert made.begun == ["first"]

    run(main)


def test_a_call_that_fails_frees_its_thread() -> None:
    async def main(made: Desk) -> None:
        lane = Lane(1, per_user=1)
        with pytest.raises(ZeroDivisionError):
            await lane.run(ME, lambda: 1 // 0)
        assert await lane.run(ME, lambda: 1) == 1

    run(main)


def test_no_thread_waits_for_the_reader_of_a_stream() -> None:
    async def main(_: Desk) -> None:
        lane = Lane(1, per_user=1)

        async def in_turn(call: Callable[[], object]) -> object:
            return await lane.run(ME, call)

        pieces = taken_in_turn(in_turn, iter([b"one", b"two"]))  # type: ignore[arg-type]
        assert await anext(pieces) == b"one"
        assert await lane.run(YOU, lambda: "a thread is free") == "a thread is free"
        assert [piece async for piece in pieces] == [b"two"]

    run(main)


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def made_in_a_row(shares: Shares, user: object = ME) -> int:
    """How many requests are let through until one is refused."""
    for count in range(10_000):
        try:
            shares.enter(user)  # type: ignore[arg-type]
        except RateLimited:
            return count
        shares.leave(user)  # type: ignore[arg-type]
    raise AssertionError("nothing is refused")


def test_requests_per_minute_are_limited_for_each_user() -> None:
    clock = Clock()
    shares = Shares(per_minute=60, at_once=5, clock=clock)
    assert made_in_a_row(shares) == 60
    assert made_in_a_row(shares, YOU) == 60
    clock.now += 10
    assert made_in_a_row(shares) == 10
    clock.now += 10 * MINUTE
    assert made_in_a_row(shares) == 60


def test_a_refusal_says_when_to_ask_again() -> None:
    clock = Clock()
    shares = Shares(per_minute=6, at_once=5, clock=clock)
    made_in_a_row(shares)
    with pytest.raises(RateLimited) as refused:
        shares.enter(ME)
    assert refused.value.retry_after == 10
    clock.now += 10
    shares.enter(ME)


def test_requests_at_once_are_limited_for_each_user() -> None:
    shares = Shares(per_minute=1000, at_once=2)
    shares.enter(ME)
    shares.enter(ME)
    with pytest.raises(RateLimited) as refused:
        shares.enter(ME)
    assert refused.value.retry_after == 1
    shares.enter(YOU)
    shares.leave(ME)
    shares.enter(ME)


def test_the_local_owner_is_never_refused() -> None:
    shares = Shares(per_minute=1, at_once=1, owner=ME)
    for _ in range(1000):
        shares.enter(ME)
    assert made_in_a_row(shares, YOU) == 1


def test_many_users_are_forgotten_when_they_are_quiet() -> None:
    clock = Clock()
    shares = Shares(per_minute=60, at_once=1, clock=clock)
    for _ in range(REMEMBERED):
        shares.enter(uuid4())
    clock.now += MINUTE
    shares.enter(ME)
    assert shares._paced_until.keys() == {ME}
