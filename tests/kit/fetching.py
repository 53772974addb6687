"""Fetches with a Nexus's own fetcher, for several processes."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

from nexus.app import App, build
from nexus.errors import FetchBusy, FetchTimeout
from tests.kit.settings import make_settings


def fetching_app(url: str, database_url: str, folder: Path, **more: object) -> App:
    """A Nexus that may fetch from this address."""
    return build(make_settings(database_url, folder, fetch_allow=[urlsplit(url).netloc], **more))


def fetch_until_answered(app: App, url: str) -> None:
    """Ask again while the site is busy or slow, as an item in the queue does."""
    while True:
        try:
            app.tools.fetcher.get(url)
        except (FetchBusy, FetchTimeout):
            continue
        return


def fetch_at_once(url: str, times: int, database_url: str, folder: Path, seconds: float) -> None:
    """Fetch it so often at the same time, and end the process."""
    app = fetching_app(url, database_url, folder, fetch_seconds=seconds)
    with ThreadPoolExecutor(times) as threads:
        for ended in [threads.submit(fetch_until_answered, app, url) for _ in range(times)]:
            ended.result()
    os._exit(0)
