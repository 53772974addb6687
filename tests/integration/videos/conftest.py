"""Videos are read from sites on loopback, by the extractors that come with Nexus."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from nexus.app import App
from nexus.fetch.pace import MemoryBook
from nexus.media.workbench import Tools
from nexus.settings import Settings
from tests.kit.certificates import NOW, Authority
from tests.kit.servers.video_sites import HOSTS, VideoSites
from tests.kit.settings import make_settings


@pytest.fixture
def video_sites(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[VideoSites]:
    """The sites of videos, with no answers yet. Fetchers trust their certificate."""
    path = tmp_path / "authority.pem"
    path.write_bytes(authority.certificate.public_bytes(serialization.Encoding.PEM))
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    names = [x509.DNSName(host) for host in HOSTS]
    with VideoSites(authority.context(tmp_path, *names, until=NOW + timedelta(days=1))) as sites:
        yield sites


@pytest.fixture
def settings(sqlite_url: str, tmp_path: Path) -> Settings:
    """Nothing here depends on the database."""
    return make_settings(sqlite_url, tmp_path)


@pytest.fixture
def tools(app: App, video_sites: VideoSites, installed_extractors: None) -> Tools:
    book = MemoryBook(lambda: app.sessions.clock().timestamp())
    return replace(app.tools, fetcher=video_sites.fetcher(book))
