"""One pace for all processes of a Nexus: what is promised to a site holds however many workers there are."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from nexus.db.session import connect
from nexus.errors import FetchBusy, FetchRateLimited
from nexus.fetch.guard import Guard, Target
from nexus.fetch.limits import FetchDeadline, System
from nexus.fetch.pace import MemoryBook, SiteBook, SitePace, SiteState
from nexus.fetch.shared import BUCKETS, FileBook, bucket_of, change_page
from nexus.work.sites import DatabaseBook
from tests.kit.commands import FORKS
from tests.kit.fetching import fetch_at_once, fetching_app
from tests.kit.servers.hostile_site import Hostile, Talk, answer
from tests.kit.waiting import PATIENCE, eventually

PROCESSES, EACH, DELAY = 3, 4, 0.25


class Busy:
    """A slow page that counts how many ask for it at once, and when each came."""

    def __init__(self, seconds: float = 0.6) -> None:
        self.seconds = seconds
        self.lock = threading.Lock()
        self.now = self.most = 0
        self.came: list[float] = []
        self.hold = threading.Event()

    def __call__(self, talk: Talk) -> None:
        with self.lock:
            self.came.append(time.monotonic())
            self.now += 1
            self.most = max(self.most, self.now)
        self.hold.wait(self.seconds)
        with self.lock:
            self.now -= 1
        talk.say(answer())


def start(url: str, times: int, database_url: str, folder: Path, seconds: float = 30) -> BaseProcess:
    process = FORKS.Process(target=fetch_at_once, args=(url, times, database_url, folder, seconds))
    process.start()
    return process


def target(url: str = "http://a.test/") -> Target:
    return Guard(frozenset({80, 443}), frozenset()).target(url)


def test_several_processes_keep_the_pace_that_one_promises(
    hostile_site: Hostile, database_url: str, tmp_path: Path
) -> None:
    page = Busy()
    url = hostile_site.on(page, "/slow")
    running = [start(url, EACH, database_url, tmp_path) for _ in range(PROCESSES)]
    for process in running:
        process.join(PATIENCE * 4)
    assert [process.exitcode for process in running] == [0] * PROCESSES
    assert len(page.came) == PROCESSES * EACH
    assert page.most == 2
    # A request may arrive late, which makes the way to the next one shorter, but not all of them together.
    assert page.came[-1] - page.came[0] > DELAY * (len(page.came) - 1) * 0.5


def test_a_killed_process_gives_its_places_back(
    hostile_site: Hostile, database_url: str, tmp_path: Path
) -> None:
    page = Busy(PATIENCE)
    url = hostile_site.on(page, "/slow")
    doomed = start(url, 2, database_url, tmp_path, seconds=0.5)
    eventually(lambda: page.now >= 2, "both places are taken")
    doomed.kill()
    doomed.join(PATIENCE)
    page.hold.set()
    with closing(fetching_app(url, database_url, tmp_path)) as other:
        eventually(lambda: other.tools.fetcher.get(url), "a place gets free")


def test_a_request_to_wait_is_heard_by_every_process(
    hostile_site: Hostile, database_url: str, tmp_path: Path
) -> None:
    hostile_site.on(answer(b"", "Retry-After: 60", status="429 Too Many Requests"), "/busy")
    url = hostile_site.on(answer(), "/page")
    with (
        closing(fetching_app(url, database_url, tmp_path)) as one,
        closing(fetching_app(url, database_url, tmp_path)) as other,
    ):
        with pytest.raises(FetchRateLimited):
            one.tools.fetcher.get(hostile_site.url("/busy"))
        with pytest.raises(FetchBusy, match="asked Nexus to wait") as refused:
            other.tools.fetcher.get(url)
    assert refused.value.retry_after == pytest.approx(60, abs=30)
    assert hostile_site.asked() == ["/busy"]


# The books


@pytest.fixture(params=["memory", "files", "database"])
def book(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SiteBook]:
    if request.param == "memory":
        yield MemoryBook(time.time)
    elif request.param == "files":
        yield FileBook(tmp_path / "not" / "there" / "yet")
    else:
        sessions = connect(request.getfixturevalue("clean_postgres"))
        yield DatabaseBook(sessions)
        sessions.dispose()


def test_a_book_remembers_a_change_until_it_is_over(book: SiteBook) -> None:
    def rest(state: SiteState, now: float) -> None:
        state.rests = {"80": now + 60, "443": now - 1}
        state.places = {"ours": now + 60, "lost": now - 1}

    book.change("a.test", rest)
    assert book.change("a.test", lambda state, _: (set(state.rests), set(state.places))) == ({"80"}, {"ours"})
    assert book.change("b.test", lambda state, _: state) == SiteState()


def test_a_refused_change_leaves_no_trace_in_a_book(book: SiteBook) -> None:
    def refuse(state: SiteState, now: float) -> None:
        raise FetchBusy

    book.change("a.test", lambda state, now: state.places.update(ours=now + 60))
    with pytest.raises(FetchBusy):
        book.change("a.test", refuse)
    assert book.change("a.test", lambda state, _: len(state.places)) == 1


def test_changes_to_one_site_follow_one_another(book: SiteBook) -> None:
    """Many threads take and leave the two places of a site; never is a third taken."""
    pace = SitePace(2, 0, System(), book)
    inside, most, lock = [0], [0], threading.Lock()

    def visit() -> None:
        for _ in range(10):
            with pace.place(target(), FetchDeadline(30, PATIENCE, time.monotonic)):
                with lock:
                    inside[0] += 1
                    most[0] = max(most[0], inside[0])
                os.sched_yield()
                with lock:
                    inside[0] -= 1

    threads = [threading.Thread(target=visit) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 1 <= most[0] <= 2
    assert book.change("a.test", lambda state, _: state.places) == {}


def test_a_page_holds_only_sites_in_use() -> None:
    page = "{}"
    for number in range(1000):
        page, _ = change_page(page, f"{number}.test", _pass_by, now=float(number))
    assert len(page) < 500


def _pass_by(state: SiteState, now: float) -> None:
    state.next_start = now + 1


@pytest.mark.parametrize("page", ["", "{", "[]", "null", '{"a.test": {"unknown": 1}}', '{"a.test": 3}'])
def test_a_page_that_can_not_be_read_counts_as_empty(page: str) -> None:
    changed, found = change_page(page, "a.test", lambda state, now: state.is_idle(now), 5.0)
    assert (changed, found) == ("{}", True)


def test_sites_spread_over_all_pages() -> None:
    assert {bucket_of(f"{number}.test") for number in range(2000)} == set(range(BUCKETS))


class _Broken:
    def change(self, site: str, act: Callable[[SiteState, float], object]) -> object:
        raise OSError("no such book")


def test_a_fetch_waits_if_nobody_knows_who_else_is_fetching() -> None:
    """Waiting is not trying: a database that is away fails no item."""
    pace = SitePace(2, 0, System(), _Broken())  # type: ignore[arg-type]
    with pytest.raises(FetchBusy), pace.place(target(), FetchDeadline(30, 5, time.monotonic)):
        pass


def test_a_place_that_can_not_be_given_back_fails_no_fetch() -> None:
    book = MemoryBook(time.monotonic)
    pace = SitePace(2, 0, System(), book)
    with pace.place(target(), FetchDeadline(30, 5, time.monotonic)):
        pace._book = _Broken()  # type: ignore[assignment]
