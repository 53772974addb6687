"""How often a site is asked: two requests at once, a pause between them, and rest when it asks for it."""

import os
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from nexus.errors import FetchBusy, FetchFailed, FetchHttp5xx, FetchRateLimited
from nexus.fetch import Fetcher, Limits, Response, System, pairs
from nexus.fetch.deadline import Deadline
from nexus.fetch.guard import Guard, Target
from nexus.fetch.pace import Pace
from tests.hostile_server import Hostile, Talk, answer, hostile, redirect


class SetTime:
    """A clock that goes on only while someone sleeps."""

    def __init__(self) -> None:
        self.time = 1000.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds


@pytest.fixture
def site() -> Iterator[Hostile]:
    with hostile() as server:
        server.on(answer())
        yield server


@pytest.fixture
def time() -> SetTime:
    return SetTime()


def loopback(host: bytes, port: int, **_: object) -> list[object]:
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]


@pytest.fixture
def make(site: Hostile, time: SetTime) -> Callable[..., Fetcher]:
    """A fetcher in a time of its own, for a site under three names."""

    def build(**limits: float) -> Fetcher:
        allow = pairs([site.pair, f"a.test:{site.port}", f"b.test:{site.port}"])
        system = System(resolve=loopback, clock=time, sleep=time.sleep)
        return Fetcher(Limits(allow=allow, **limits), system)  # type: ignore[arg-type]

    return build


def test_requests_to_one_site_keep_a_distance(
    site: Hostile, time: SetTime, make: Callable[..., Fetcher]
) -> None:
    fetcher = make(delay=0.25)
    for _ in range(3):
        fetcher.get(site.url())
    assert time.slept == [0.0, 0.25, 0.25]


def test_time_that_has_passed_is_not_waited_for_again(
    site: Hostile, time: SetTime, make: Callable[..., Fetcher]
) -> None:
    fetcher = make(delay=1.0)
    fetcher.get(site.url())
    time.time += 0.75
    fetcher.get(site.url())
    time.time += 5
    fetcher.get(site.url())
    assert time.slept == [0.0, 0.25, 0.0]


def test_requests_to_different_sites_do_not_wait_for_each_other(
    site: Hostile, time: SetTime, make: Callable[..., Fetcher]
) -> None:
    fetcher = make(delay=60)
    for host in ("127.0.0.1", "a.test", "b.test"):
        fetcher.get(f"http://{host}:{site.port}/")
    assert time.slept == [0.0, 0.0, 0.0]


def test_a_redirect_keeps_the_distance_too(
    site: Hostile, time: SetTime, make: Callable[..., Fetcher]
) -> None:
    site.on(redirect("/"), "/old")
    make(delay=0.5, at_once=1).get(site.url("/old"))
    assert time.slept == [0.0, 0.5]


def test_waiting_for_a_turn_is_not_time_of_the_fetch(
    site: Hostile, time: SetTime, make: Callable[..., Fetcher]
) -> None:
    fetcher = make(delay=60, seconds=5, wait_seconds=60)
    assert isinstance(fetcher.get(site.url()), Response)
    assert isinstance(fetcher.get(site.url()), Response)
    assert time.slept == [0.0, 60.0]


def test_a_turn_that_comes_too_late_is_not_waited_for(
    site: Hostile, time: SetTime, make: Callable[..., Fetcher]
) -> None:
    fetcher = make(delay=60, wait_seconds=59)
    fetcher.get(site.url())
    with pytest.raises(FetchBusy):
        fetcher.get(site.url())
    assert time.slept == [0.0]
    assert len(site.requests) == 1


def test_one_fetch_waits_no_longer_in_all_than_it_may(
    site: Hostile, time: SetTime, make: Callable[..., Fetcher]
) -> None:
    site.on(redirect("/loop"), "/loop")
    with pytest.raises(FetchBusy):
        make(delay=40, wait_seconds=100).get(site.url("/loop"))
    assert time.slept == [0.0, 40.0, 40.0]


# two at once


def test_a_site_gets_two_requests_at_once_and_no_third(site: Hostile) -> None:
    begun, go_on = threading.Semaphore(0), threading.Event()

    def slow(talk: Talk) -> None:
        begun.release()
        go_on.wait(30)
        talk.say(answer())

    url = site.on(slow, "/slow")
    fetcher = Fetcher(Limits(allow=pairs([site.pair]), delay=0, wait_seconds=0))
    threads = [threading.Thread(target=fetcher.get, args=(url,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        assert begun.acquire(timeout=30)
        assert begun.acquire(timeout=30)
        with pytest.raises(FetchBusy):
            fetcher.get(site.url())
        assert site.asked() == ["/slow", "/slow"]
    finally:
        go_on.set()
        for thread in threads:
            thread.join()
    assert isinstance(fetcher.get(site.url()), Response)


def target(host: str, port: int = 80) -> Target:
    return Guard(frozenset({port}), frozenset()).target(f"http://{host}:{port}/")


@dataclass
class Waiter:
    """Waits for a place at a site in a thread, for as long as it takes; what came of it is in `outcome`."""

    pace: Pace
    outcome: str = ""

    def start(self) -> None:
        """Comes back once it waits."""
        self.thread = threading.Thread(target=self._wait, daemon=True)
        self.thread.start()
        while not self.pace._sites["a.test"].waiting:
            os.sched_yield()

    def end(self) -> str:
        self.thread.join(timeout=30)
        return self.outcome

    def _wait(self) -> None:
        try:
            with self.pace.place(target("a.test"), Deadline(30, 3600, lambda: 0.0)):
                self.outcome = "entered"
        except FetchFailed as error:
            self.outcome = error.code


def test_who_waits_gets_the_place_that_comes_free() -> None:
    pace = Pace(1, 0, System())
    waiter = Waiter(pace)
    with pace.place(target("a.test"), Deadline(30, 30, lambda: 0.0)):
        waiter.start()
        assert waiter.outcome == ""
    assert waiter.end() == "entered"


@pytest.mark.parametrize("other", [target("a.test", 8080), target("a.test."), target("A.TEST")])
def test_a_site_is_a_host_on_whatever_port(other: Target) -> None:
    pace = Pace(1, 0, System())
    deadline = Deadline(30, 0, lambda: 0.0)
    with (
        pace.place(target("a.test"), deadline),
        pytest.raises(FetchBusy),
        pace.place(other, deadline),
    ):
        pass


def test_sites_are_forgotten_once_nobody_waits_for_them(time: SetTime) -> None:
    pace = Pace(2, 1.0, System(clock=time, sleep=time.sleep))
    for number in range(100):
        with pace.place(target(f"{number}.test"), Deadline(30, 30, time)):
            time.time += 2
            pace.rest(target(f"{number}.test"), 1)
    assert len(pace._sites) + len(pace._rests) < 4


# rest


def test_a_site_that_asks_for_rest_gets_it(
    site: Hostile, time: SetTime, make: Callable[..., Fetcher]
) -> None:
    fetcher = make(delay=0)
    site.on(answer(b"", "Retry-After: 60", status="429 Too Many Requests"), "/busy")
    with pytest.raises(FetchRateLimited):
        fetcher.get(site.url("/busy"))
    time.time += 20
    with pytest.raises(FetchRateLimited) as refused:
        fetcher.get(site.url())
    assert refused.value.retry_after == 40.0
    assert site.asked() == ["/busy"]
    time.time += 40
    assert isinstance(fetcher.get(site.url()), Response)


def test_the_rest_of_one_site_is_not_that_of_another(
    site: Hostile, time: SetTime, make: Callable[..., Fetcher]
) -> None:
    fetcher = make(delay=0)
    site.on(answer(b"", "Retry-After: 60", status="503 Service Unavailable"), "/busy")
    with pytest.raises(FetchHttp5xx):
        fetcher.get(f"http://a.test:{site.port}/busy")
    assert isinstance(fetcher.get(f"http://b.test:{site.port}/"), Response)


def test_a_site_that_names_no_time_is_asked_again(site: Hostile, make: Callable[..., Fetcher]) -> None:
    fetcher = make(delay=0)
    site.on(answer(b"", status="429 Too Many Requests"), "/busy")
    with pytest.raises(FetchRateLimited):
        fetcher.get(site.url("/busy"))
    assert isinstance(fetcher.get(site.url()), Response)


# the end


def test_a_closed_fetcher_begins_nothing(site: Hostile, make: Callable[..., Fetcher]) -> None:
    fetcher = make()
    fetcher.close()
    with pytest.raises(FetchFailed, match="stopping") as refused:
        fetcher.get(site.url())
    assert refused.value.transient
    assert site.requests == []


def test_who_waits_for_a_turn_is_sent_away_at_the_end() -> None:
    pace = Pace(1, 0, System())
    waiter = Waiter(pace)
    with pace.place(target("a.test"), Deadline(30, 30, lambda: 0.0)):
        waiter.start()
        pace.close()
        assert waiter.end() == "E_FETCH_FAILED"
