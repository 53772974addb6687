"""Nexus as editors use it: with pages to draft stories from, and each step taken when the test asks for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from nexus.app import App
from nexus.queue.local import LocalQueue
from nexus.settings import Settings
from tests.kit.articles import ARTICLE
from tests.kit.servers.web_pages import Answer, Pages
from tests.kit.settings import make_settings


@pytest.fixture
def pages(pages: Pages) -> Pages:
    pages["/boats"] = Answer(ARTICLE.encode())
    return pages


@pytest.fixture
def settings(database_url: str, tmp_path: Path, pages: Pages) -> Settings:
    return make_settings(
        database_url, tmp_path, fetch_allow=(pages.place,), fetch_delay_seconds=0, fetch_per_host=64
    )


@pytest.fixture
def app(app: App, installed_extractors: None) -> App:
    """With the built-in extractors, and without workers: each step runs when the test asks for it."""
    return replace(app, queue=LocalQueue())
