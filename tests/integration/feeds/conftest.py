"""A small site with feeds, and somebody who subscribes to them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nexus.app import App, build
from nexus.settings import Settings
from tests.kit.clock import SetClock
from tests.kit.feeds import Reader
from tests.kit.servers.web_pages import Pages
from tests.kit.settings import make_settings
from tests.kit.users import new_user


@pytest.fixture
def settings(database_url: str, redis_url: str, pages: Pages, tmp_path: Path) -> Settings:
    places = [pages.place, pages.place.replace("127.0.0.1", "localhost")]
    return make_settings(
        database_url, tmp_path, redis_url=redis_url, fetch_allow=places, fetch_delay_seconds=0
    )


@pytest.fixture
def app(settings: Settings, clock: SetClock) -> Iterator[App]:
    built = build(settings, clock)
    yield built
    built.close()


@pytest.fixture
def reader(app: App, pages: Pages) -> Reader:
    return Reader(app, pages, new_user(app))
