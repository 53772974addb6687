"""Nexus as it is installed: with the extractors that it brings, and pages that it may fetch."""

from __future__ import annotations

from pathlib import Path

import pytest

from nexus.app import App
from nexus.settings import Settings
from tests.kit.servers.web_pages import Pages
from tests.kit.settings import make_settings


@pytest.fixture
def settings(database_url: str, tmp_path: Path, pages: Pages) -> Settings:
    return make_settings(database_url, tmp_path, fetch_allow=(pages.place,), fetch_delay_seconds=0)


@pytest.fixture
def app(app: App, installed_extractors: None) -> App:
    return app
