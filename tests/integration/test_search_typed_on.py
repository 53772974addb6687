"""Somebody who types on cancels the question before: it must not hold up the next."""

from __future__ import annotations

import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import pytest

from nexus.media.searching.finding import SearchPage
from nexus.web.api import search
from nexus.web.http.threads import SEARCHES_PER_USER
from tests.kit.http import Caller, Site, data

PATIENCE = 30.0


class HeldSearches:
    """Searches that wait until they are let go, and what they were asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.go = threading.Event()

    def __call__(self, tools: Any, viewer: Any, asked: Any, *rest: Any) -> SearchPage:
        self.asked.append(asked.text)
        assert self.go.wait(PATIENCE)
        return SearchPage()


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> HeldSearches:
    made = HeldSearches()
    monkeypatch.setattr(search, "search_items", made)
    return made


def wait_until(what: Any) -> None:
    deadline = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_a_cancelled_question_that_waits_is_never_looked_for(
    site: Site, me: Caller, held: HeldSearches
) -> None:
    state = site.server.server_state
    first = [f"first {number}" for number in range(SEARCHES_PER_USER)]
    with ThreadPoolExecutor(SEARCHES_PER_USER + 1) as clients:
        begun = [clients.submit(me.get, "/search", params={"q": one}) for one in first]
        wait_until(lambda: len(held.asked) == len(first))
        connections = len(state.connections)
        with socket.create_connection((urlsplit(site.url).hostname, urlsplit(site.url).port)) as line:
            headers = "".join(f"{name}: {value}\r\n" for name, value in me.headers.items())
            line.sendall(
                f"GET /search?q=cancelled HTTP/1.1\r\nhost: {urlsplit(site.url).netloc}\r\n{headers}\r\n".encode()
            )
            wait_until(lambda: len(state.tasks) > len(first))
        wait_until(lambda: len(state.connections) <= connections)
        last = clients.submit(me.get, "/search", params={"q": "last"})
        held.go.set()
        assert [data(one.result())["items"] for one in [*begun, last]] == [[]] * (len(first) + 1)
    assert sorted(held.asked) == sorted([*first, "last"])
