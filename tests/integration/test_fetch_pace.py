"""How often a site is asked: two requests at once, a pause between them, and longer ones on request."""

import os
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from nexus.errors import FetchBusy, FetchFailed, FetchHttp5xx, FetchRateLimited
from nexus.fetch import Download, Fetcher, FetchLimits, System, parse_host_ports
from nexus.fetch.guard import Guard, Target
from nexus.fetch.limits import FetchDeadline
from nexus.fetch.pace import MemoryBook, SitePace
from tests.kit.servers.hostile_site import Hostile, Talk, answer, redirect


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
def hostile_site(hostile_site: Hostile) -> Hostile:
    hostile_site.on(answer())
    return hostile_site


@pytest.fixture
def time() -> SetTime:
    return SetTime()


def loopback(host: bytes, port: int, **_: object) -> list[object]:
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]


@pytest.fixture
def make(hostile_site: Hostile, time: SetTime) -> Callable[..., Fetcher]:
    """A fetcher in a time of its own, for a site under three names."""

    def build(**limits: float) -> Fetcher:
        allow = parse_host_ports(
            [hostile_site.pair, f"a.test:{hostile_site.port}", f"b.test:{hostile_site.port}"]
        )
        system = System(resolve=loopback, clock=time, sleep=time.sleep)
        return Fetcher(FetchLimits(allow=allow, **limits), system)  # type: ignore[arg-type]

    return build


def test_requests_to_one_site_keep_a_distance(
    hostile_site: Hostile, time: SetTime, make: Callable[..., Fetcher]
) -> None:
    fetcher = make(delay=0.25)
    for _ in range(3):
        fetcher.get(hostile_site.url())
    assert time.slept == [0.0, 0.25, 0.25]


def test_the_distance_between_requests_includes_time_that_has_passed(
    hostile_site: Hostile, time: SetTime, make: Callable[..., Fetcher]
) -> None:
    fetcher = make(delay=1.0)
    fetcher.get(hostile_site.url())
    time.time += 0.75
    fetcher.get(hostile_site.url())
    time.time += 5
    fetcher.get(hostile_site.url())
    assert time.slept == [0.0, 0.25, 0.0]


def test_requests_to_different_sites_do_not_wait_for_each_other(
    hostile_site: Hostile, time: SetTime, make: Callable[..., Fetcher]
) -> None:
    fetcher = make(delay=60)
    for host in ("127.0.0.1", "a.test", "b.test"):
        fetcher.get(f"http://{host}:{hostile_site.port}/")
    assert time.slept == [0.0, 0.0, 0.0]


def test_a_redirect_keeps_the_distance_too(
    hostile_site: Hostile, time: SetTime, make: Callable[..., Fetcher]
) -> None:
    hostile_site.on(redirect("/"), "/old")
    make(delay=0.5, at_once=1).get(hostile_site.url("/old"))
    assert time.slept == [0.0, 0.5]


def test_waiting_for_a_turn_does_not_use_up_the_deadline(
    hostile_site: Hostile, time: SetTime, make: Callable[..., Fetcher]
) -> None:
    fetcher = make(delay=60, seconds=5, wait_seconds=60)
    assert isinstance(fetcher.get(hostile_site.url()), Download)
    assert isinstance(fetcher.get(hostile_site.url()), Download)
    assert time.slept == [0.0, 60.0]


def test_a_fetch_does_not_wait_for_a_turn_that_comes_too_late(
    hostile_site: Hostile, time: SetTime, make: Callable[..., Fetcher]
) -> None:
    fetcher = make(delay=60, wait_seconds=59)
    fetcher.get(hostile_site.url())
    for _ in range(3):  # asking again does not put the turn off
        with pytest.raises(FetchBusy) as refused:
            fetcher.get(hostile_site.url())
        assert refused.value.retry_after == 60.0
    assert time.slept == [0.0]
    assert len(hostile_site.requests) == 1


def test_all_waits_of_one_fetch_together_are_bounded(
    hostile_site: Hostile, time: SetTime, make: Callable[..., Fetcher]
) -> None:
    hostile_site.on(redirect("/loop"), "/loop")
    with pytest.raises(FetchBusy):
        make(delay=40, wait_seconds=100).get(hostile_site.url("/loop"))
    assert time.slept == [0.0, 40.0, 40.0]


# two at once


def test_a_site_gets_two_requests_at_once_and_no_third(hostile_site: Hostile) -> None:
    begun, go_on = threading.Semaphore(0), threading.Event()

    def slow(talk: Talk) -> None:
        begun.release()
        go_on.wait(30)
        talk.say(answer())

    url = hostile_site.on(slow, "/slow")
    fetcher = Fetcher(FetchLimits(allow=parse_host_ports([hostile_site.pair]), delay=0, wait_seconds=0))
    threads = [threading.Thread(target=fetcher.get, args=(url,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        assert begun.acquire(timeout=30)
        assert begun.acquire(timeout=30)
        with pytest.raises(FetchBusy):
            fetcher.get(hostile_site.url())
        assert hostile_site.asked() == ["/slow", "/slow"]
    finally:
        go_on.set()
        for thread in threads:
            thread.join()
    assert isinstance(fetcher.get(hostile_site.url()), Download)


def target(host: str, port: int = 80) -> Target:
    return Guard(frozenset({port}), frozenset()).target(f"http://{host}:{port}/")


@dataclass
class Waiter:
    """Waits for a slot at a site in a thread; the result is in `outcome`."""

    pace: SitePace
    outcome: str = ""

    def start(self) -> None:
        """Returns once the thread waits."""
        self.thread = threading.Thread(target=self._wait, daemon=True)
        self.thread.start()
        while not self.pace.waiting:
            os.sched_yield()

    def end(self) -> str:
        self.thread.join(timeout=30)
        return self.outcome

    def _wait(self) -> None:
        try:
            with self.pace.place(target("a.test"), FetchDeadline(30, 3600, lambda: 0.0)):
                self.outcome = "entered"
        except FetchFailed as error:
            self.outcome = error.code


def test_a_waiting_request_gets_the_slot_that_comes_free() -> None:
    pace = SitePace(1, 0, System())
    waiter = Waiter(pace)
    with pace.place(target("a.test"), FetchDeadline(30, 30, lambda: 0.0)):
        waiter.start()
        assert waiter.outcome == ""
    assert waiter.end() == "entered"


@pytest.mark.parametrize("other", [target("a.test", 8080), target("a.test."), target("A.TEST")])
def test_all_ports_of_a_host_share_one_pace(other: Target) -> None:
    pace = SitePace(1, 0, System())
    deadline = FetchDeadline(30, 0, lambda: 0.0)
    with (
        pace.place(target("a.test"), deadline),
        pytest.raises(FetchBusy),
        pace.place(other, deadline),
    ):
        pass


def test_sites_are_forgotten_once_nobody_waits_for_them(time: SetTime) -> None:
    book = MemoryBook(time)
    pace = SitePace(2, 1.0, System(clock=time, sleep=time.sleep), book)
    for number in range(100):
        with pace.place(target(f"{number}.test"), FetchDeadline(30, 30, time)):
            time.time += 2
            pace.rest(target(f"{number}.test"), 1)
    assert len(book) < 4


# rest


def test_a_site_that_sends_retry_after_is_left_alone(
    hostile_site: Hostile, time: SetTime, make: Callable[..., Fetcher]
) -> None:
    fetcher = make(delay=0)
    hostile_site.on(answer(b"", "Retry-After: 60", status="429 Too Many Requests"), "/busy")
    with pytest.raises(FetchRateLimited):
        fetcher.get(hostile_site.url("/busy"))
    time.time += 20
    with pytest.raises(FetchBusy, match="asked Nexus to wait") as refused:
        fetcher.get(hostile_site.url())
    assert refused.value.retry_after == 40.0
    assert not refused.value.counted
    assert hostile_site.asked() == ["/busy"]
    time.time += 40
    assert isinstance(fetcher.get(hostile_site.url()), Download)


def test_a_site_is_left_alone_for_the_longest_of_what_it_has_asked_for(time: SetTime) -> None:
    pace = SitePace(2, 0, System(clock=time, sleep=time.sleep))
    deadline = FetchDeadline(30, 30, time)
    with pace.place(target("a.test"), deadline), pace.place(target("a.test"), deadline):
        pace.rest(target("a.test"), 60)
        pace.rest(target("a.test"), 5)
    time.time += 10
    with pytest.raises(FetchBusy, match="asked Nexus to wait"), pace.place(target("a.test"), deadline):
        pass


def test_retry_after_of_one_site_does_not_delay_another(
    hostile_site: Hostile, time: SetTime, make: Callable[..., Fetcher]
) -> None:
    fetcher = make(delay=0)
    hostile_site.on(answer(b"", "Retry-After: 60", status="503 Service Unavailable"), "/busy")
    with pytest.raises(FetchHttp5xx):
        fetcher.get(f"http://a.test:{hostile_site.port}/busy")
    assert isinstance(fetcher.get(f"http://b.test:{hostile_site.port}/"), Download)


def test_a_busy_site_without_retry_after_is_asked_again(
    hostile_site: Hostile, make: Callable[..., Fetcher]
) -> None:
    fetcher = make(delay=0)
    hostile_site.on(answer(b"", status="429 Too Many Requests"), "/busy")
    with pytest.raises(FetchRateLimited):
        fetcher.get(hostile_site.url("/busy"))
    assert isinstance(fetcher.get(hostile_site.url()), Download)


# the end


def test_a_closed_fetcher_starts_no_request(hostile_site: Hostile, make: Callable[..., Fetcher]) -> None:
    fetcher = make()
    fetcher.close()
    with pytest.raises(FetchFailed, match="stopping") as refused:
        fetcher.get(hostile_site.url())
    assert refused.value.transient
    assert hostile_site.requests == []


def test_requests_that_wait_for_a_turn_end_when_the_fetcher_closes() -> None:
    pace = SitePace(1, 0, System())
    waiter = Waiter(pace)
    with pace.place(target("a.test"), FetchDeadline(30, 30, lambda: 0.0)):
        waiter.start()
        pace.close()
        assert waiter.end() == "E_FETCH_FAILED"
