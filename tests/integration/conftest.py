"""What integration tests share: servers to fetch from, crowds, lines and databases of a test's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from nexus.app import App, build
from nexus.fetch import Download, Fetcher, FetchLimits, NotModified, parse_host_ports
from nexus.web.api import events
from tests.kit import servers
from tests.kit.certificates import Authority
from tests.kit.clock import SetClock
from tests.kit.crowd import THREADS, Crowd
from tests.kit.databases import copied_postgres
from tests.kit.faults.network_lines import Lines
from tests.kit.http import Site, serve
from tests.kit.servers import Server
from tests.kit.servers.hostile_site import Hostile, hostile
from tests.kit.settings import make_settings
from tests.kit.uploads import Uploader


@pytest.fixture
def own_postgres_url(postgres_template: str) -> Iterator[str]:
    """A migrated PostgreSQL database of this test's own, for processes that it starts."""
    with copied_postgres(postgres_template) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def own_database_url(request: pytest.FixtureRequest) -> str:
    """A migrated database of this test's own: a test that asks for this runs on each kind."""
    url: str = request.getfixturevalue("sqlite_url" if request.param == "sqlite" else "own_postgres_url")
    return url


@pytest.fixture
def postgres_site(clean_postgres: str, tmp_path: Path) -> Iterator[Site]:
    """A server on PostgreSQL, for a promise that SQLite keeps by itself."""
    app = build(make_settings(clean_postgres, tmp_path))
    with serve(app) as running:
        yield running
    app.close()


@pytest.fixture
def broker() -> Iterator[Server]:
    """A Redis of this test's own, to be emptied, stopped and killed."""
    with servers.redis_server() as server:
        yield server


@pytest.fixture
def lines() -> Iterator[Lines]:
    """Lines between Nexus and a server, which the test can cut."""
    with Lines() as made:
        yield made


@pytest.fixture
def crowd() -> Iterator[Crowd]:
    """Threads that race."""
    made = Crowd(THREADS)
    yield made
    made.close()


@pytest.fixture
def uploader(app: App) -> Uploader:
    """Somebody new who uploads files."""
    return Uploader(app)


@pytest.fixture
def true_time(clock: SetClock) -> None:
    """Objects in a store have the time of the machine: so has the app."""
    clock.time = datetime.now(UTC)


@pytest.fixture
def frequent_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Polls and heartbeats are frequent, so that a heartbeat means: it has looked and found nothing."""
    monkeypatch.setattr(events, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(events, "HEARTBEAT_SECONDS", 0.1)


@pytest.fixture
def hostile_site() -> Iterator[Hostile]:
    """A site that answers as the test tells it to, byte by byte."""
    with hostile() as server:
        yield server


@pytest.fixture
def fetcher(hostile_site: Hostile) -> Fetcher:
    """With plenty of time: a fetch that fails has another reason."""
    return Fetcher(FetchLimits(allow=parse_host_ports([hostile_site.pair]), delay=0))


@pytest.fixture
def hasty_fetcher(hostile_site: Hostile) -> Fetcher:
    """With hardly any time."""
    return Fetcher(FetchLimits(allow=parse_host_ports([hostile_site.pair]), delay=0, seconds=0.2))


@pytest.fixture
def fetch(fetcher: Fetcher) -> Callable[..., Download | NotModified]:
    return fetcher.get


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority.make()
