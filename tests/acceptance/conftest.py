"""A browser, a fresh profile in it, a running Nexus, and its library as a signed-in person sees it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, sync_playwright

from tests.kit.browser import LiveSite, launch, serving, signed_in, without_complaints
from tests.kit.commands import Terminal


@pytest.fixture(scope="package")
def playwright() -> Iterator[Playwright]:
    """Not for the session: while it runs, no other test of this worker can run an event loop."""
    with sync_playwright() as running:
        yield running


@pytest.fixture(scope="package")
def browser(playwright: Playwright) -> Iterator[Browser]:
    opened = launch(playwright)
    yield opened
    opened.close()


@pytest.fixture(scope="package")
def live_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveSite]:
    """Not for the session: its workers look for work several times a second, also while other tests run."""
    with serving(tmp_path_factory.mktemp("site")) as running:
        yield running


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A fresh profile: no cookies, no cache."""
    made = browser.new_context()
    yield made
    made.close()


@pytest.fixture
def page(context: BrowserContext, live_site: LiveSite) -> Iterator[Page]:
    """The empty library of a new user."""
    opened = signed_in(context, live_site, live_site.link_of_someone_new())
    with without_complaints(opened):
        yield opened


@pytest.fixture
def terminal(tmp_path: Path, migrated_sqlite: Path) -> Terminal:
    """The commands of one person, in a data folder with a migrated database."""
    data = tmp_path / "data"
    data.mkdir()
    (data / "nexus.sqlite3").write_bytes(migrated_sqlite.read_bytes())
    return Terminal(tmp_path, {"NEXUS_DATA_DIR": str(data)})
