"""Where a page has moved for good: the fetch says so, for permanent redirects that come before any other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nexus.fetch import Download, Fetcher, FetchLimits, NotModified, parse_host_ports
from tests.kit.servers.web_pages import Answer, Pages


@pytest.fixture
def moving(pages: Pages) -> Iterator[Fetcher]:
    made = Fetcher(FetchLimits(allow=parse_host_ports([pages.place]), delay=0))
    yield made
    made.close()


def chain(pages: Pages, *statuses: int) -> None:
    """/0 leads to /1, and so on, with these statuses; the last one is a page."""
    for number, status in enumerate(statuses):
        pages[f"/{number}"] = Answer(b"", status=status, headers={"Location": f"/{number + 1}"})
    pages[f"/{len(statuses)}"] = Answer(b"A page.", "text/plain", headers={"ETag": '"1"'})


@pytest.mark.parametrize(
    ("statuses", "moved_to"),
    [
        ((), None),
        ((301,), "/1"),
        ((308, 301), "/2"),
        ((302,), None),
        ((303, 301), None),
        ((307, 308), None),
        ((301, 302), "/1"),
        ((301, 302, 301), "/1"),
    ],
)
def test_a_fetch_says_where_a_page_has_moved_for_good(
    moving: Fetcher, pages: Pages, statuses: tuple[int, ...], moved_to: str | None
) -> None:
    chain(pages, *statuses)
    found = moving.get_data(pages.url("/0"), "*/*")
    assert isinstance(found, Download)
    assert found.url == pages.url(f"/{len(statuses)}")
    assert found.moved_to == (None if moved_to is None else pages.url(moved_to))


def test_an_unchanged_page_says_so_too(moving: Fetcher, pages: Pages) -> None:
    chain(pages, 301)
    found = moving.get_data(pages.url("/0"), "*/*", etag='"1"')
    assert found == NotModified(pages.url("/1"), pages.url("/1"))
