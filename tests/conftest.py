"""Every test runs on real servers: started once per run, shared by the workers of pytest-xdist.

NEXUS_TEST_DATABASE_URL and NEXUS_TEST_REDIS_URL name servers to use instead.
"""

import gc
import importlib.util
import itertools
import logging
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
import structlog

from nexus.app import App, build
from nexus.app import sandbox as make_sandbox
from nexus.db import indexes, migrate  # noqa: F401 the indexes know every table
from nexus.db.tables import metadata
from nexus.extract import AVAILABLE_EXTRACTORS, Extractor
from nexus.extract.registry import load_installed
from nexus.extract.sandbox import Sandbox
from nexus.settings import Settings
from nexus.states.media import Kind
from tests.kit import run_storage, servers
from tests.kit.clock import SetClock
from tests.kit.databases import copied_postgres, empty_postgres, fresh_postgres
from tests.kit.http import Caller, Site, serve
from tests.kit.parsers import LentSandbox
from tests.kit.servers.openai_api import Model, model
from tests.kit.servers.web_pages import Pages
from tests.kit.settings import make_settings

DATABASE = "NEXUS_TEST_DATABASE_URL"
REDIS = "NEXUS_TEST_REDIS_URL"
#: Also those that only PostgreSQL has: otherwise words counted in one test rank what others find.
TABLES = [*(table.name for table in metadata.tables.values()), "word_counts", "word_totals"]
#: In one statement, so that no test sees half of it.
EMPTY_EVERY_TABLE = "DO $$ BEGIN {} ALTER SEQUENCE history_id_seq RESTART; END $$"
#: For a few rows, DELETE takes a thirtieth of the time of TRUNCATE. Their space stays, so now and then it is TRUNCATE.
DELETE_ALL = EMPTY_EVERY_TABLE.format(" ".join(f"DELETE FROM {name};" for name in TABLES))
TRUNCATE_ALL = EMPTY_EVERY_TABLE.format(f"TRUNCATE {', '.join(TABLES)};")
DELETES_PER_TRUNCATE = 200

started = pytest.StashKey[ExitStack]()

#: Tests of the local speech model are collected if the extra is installed: `make speech`. CI installs it.
HAS_SPEECH = importlib.util.find_spec("faster_whisper") is not None
collect_ignore = [] if HAS_SPEECH else ["speech"]


def pytest_report_header() -> str:
    how = (
        "installed, tests/speech runs"
        if HAS_SPEECH
        else "not installed, tests/speech is left out: make speech"
    )
    return f"speech model: {how}"


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Start the servers that the environment does not name, before xdist's workers inherit it.

    Not in pytest_configure, which also runs for --help and --markers.
    """
    config = session.config
    if hasattr(config, "workerinput") or only_looking(config):
        return
    config.stash[started] = stack = ExitStack()
    run_storage.run_prefix()
    try:
        provide(stack, DATABASE, servers.postgres)
        provide(stack, REDIS, servers.redis)
    except servers.ServerError as error:
        # Fails the run with this message alone, without a page of pytest's own frames.
        pytest.exit(str(error), returncode=pytest.ExitCode.INTERNAL_ERROR)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Thousands of collected tests stay until the end: no garbage collection looks at them again."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure(config: pytest.Config) -> None:
    if started in config.stash:
        config.stash[started].close()


def only_looking(config: pytest.Config) -> bool:
    """Whether this run lists tests or fixtures, and runs none."""
    looks = ("collectonly", "showfixtures", "show_fixtures_per_test", "setupplan", "cacheshow")
    return any(config.getoption(look, default=False) for look in looks)


def provide(stack: ExitStack, name: str, server: Callable[[], AbstractContextManager[str]]) -> None:
    if not os.environ.get(name):
        os.environ[name] = stack.enter_context(server())
        stack.callback(os.environ.pop, name, None)


def worker() -> str:
    """This test process among those of pytest-xdist: gw0, gw1, …; master when it is the only one."""
    return os.environ.get("PYTEST_XDIST_WORKER", "master")


@pytest.fixture(scope="session")
def postgres_server_url() -> str:
    """The URL of the PostgreSQL that all workers share, to make databases on."""
    return os.environ[DATABASE]


@pytest.fixture(scope="session")
def postgres_url(postgres_server_url: str) -> Iterator[str]:
    """The URL of an empty database that only this worker uses."""
    with empty_postgres(postgres_server_url) as url:
        yield url


@pytest.fixture(scope="session")
def redis_url() -> str:
    """The URL of a Redis database that only this worker uses: its number follows from the worker's.

    FLUSHDB stays within it; FLUSHALL and pub/sub channels reach the other workers too.
    """
    parts = urlsplit(os.environ[REDIS])
    first = int(parts.path.strip("/") or 0)
    own = int(worker().removeprefix("gw")) if worker() != "master" else 0
    return parts._replace(path=f"/{first + own}").geturl()


@pytest.fixture(scope="session")
def postgres_template(postgres_server_url: str) -> Iterator[str]:
    """The URL of a migrated database to copy, to which nobody connects.

    Its tables are never analyzed: a plan for tables that were empty at that moment takes ten times as long, and which
    tests get it would be a matter of chance.
    """
    with fresh_postgres(postgres_server_url) as url:
        with psycopg.connect(url.replace("+psycopg", "")) as connection:
            for name in TABLES:
                connection.execute(f"ALTER TABLE {name} SET (autovacuum_enabled = off)")
        yield url


@pytest.fixture(scope="session")
def migrated_postgres(postgres_template: str) -> Iterator[str]:
    with copied_postgres(postgres_template) as url:
        yield url


@pytest.fixture(scope="session")
def migrated_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "nexus.sqlite3"
    migrate.upgrade_schema(f"sqlite:///{path}")
    return path


@pytest.fixture
def sqlite_url(migrated_sqlite: Path, tmp_path: Path) -> str:
    """A migrated database file of this test's own."""
    path = tmp_path / "nexus.sqlite3"
    shutil.copy(migrated_sqlite, path)
    return f"sqlite:///{path}"


@pytest.fixture(scope="session")
def postgres_cleaner(migrated_postgres: str) -> Iterator[Callable[[], None]]:
    with psycopg.connect(migrated_postgres.replace("+psycopg", ""), autocommit=True) as connection:
        # Without the triggers that would go after the rows of other tables: all of them are emptied anyway.
        connection.execute("SET session_replication_role = replica")
        cleanings = itertools.count(1)
        yield lambda: connection.execute(
            DELETE_ALL if next(cleanings) % DELETES_PER_TRUNCATE else TRUNCATE_ALL
        )


@pytest.fixture
def clean_postgres(migrated_postgres: str, postgres_cleaner: Callable[[], None]) -> str:
    """The worker's migrated database, emptied."""
    postgres_cleaner()
    return migrated_postgres


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest) -> str:
    """Both databases: a test that asks for this runs on each."""
    url: str = request.getfixturevalue("sqlite_url" if request.param == "sqlite" else "clean_postgres")
    return url


@pytest.fixture(scope="session", autouse=True)
def only_below_the_runs_prefix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Local stores hold files only below the run's prefix; those are removed at its end."""
    yield
    stores = list(run_storage.stores(tmp_path_factory.getbasetemp()))
    wrong = [store for store in stores if not run_storage.is_run_scoped(store)]
    for store in stores:
        shutil.rmtree(store / run_storage.run_prefix(), ignore_errors=True)
    assert wrong == [], "files outside test_runs/: give these tests NEXUS_STORAGE_PREFIX=run_prefix()"


@pytest.fixture(autouse=True)
def no_extractors() -> Iterator[None]:
    """Whatever a test registers is gone afterwards."""
    before = dict(AVAILABLE_EXTRACTORS)
    AVAILABLE_EXTRACTORS.clear()
    yield
    AVAILABLE_EXTRACTORS.clear()
    AVAILABLE_EXTRACTORS.update(before)


@pytest.fixture(scope="session")
def found_extractors() -> dict[Kind, Extractor]:
    """The extractors that come with Nexus, looked for once: that reads the metadata of every installed package."""
    load_installed()
    found = dict(AVAILABLE_EXTRACTORS)
    AVAILABLE_EXTRACTORS.clear()
    return found


@pytest.fixture
def installed_extractors(found_extractors: dict[Kind, Extractor], no_extractors: None) -> None:
    """The extractors that come with Nexus are registered."""
    AVAILABLE_EXTRACTORS.update(found_extractors)


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def settings(database_url: str, redis_url: str, tmp_path: Path) -> Settings:
    return make_settings(database_url, tmp_path, redis_url=redis_url)


@pytest.fixture
def app(request: pytest.FixtureRequest, settings: Settings, clock: SetClock) -> Iterator[App]:
    """Nexus on the database of this test, at a time that the test sets, or with `wall_clock` at the true time."""
    is_timed = request.node.get_closest_marker("wall_clock") is None
    built = build(settings, clock) if is_timed else build(settings)
    yield built
    built.close()


@pytest.fixture
def site(app: App) -> Iterator[Site]:
    """A server in front of the app."""
    with serve(app) as running:
        yield running


@pytest.fixture
def me(site: Site) -> Caller:
    """Somebody new who is signed in at the site."""
    return site.caller()


@pytest.fixture
def you(site: Site) -> Caller:
    """Somebody else who is signed in at the site."""
    return site.caller()


@pytest.fixture
def pages() -> Iterator[Pages]:
    """A small site to fetch from, with no pages yet."""
    with Pages() as served:
        yield served


@pytest.fixture(scope="session")
def parsers() -> Iterator[Sandbox]:
    """Kept for the whole run: what they import takes a while."""
    with closing(Sandbox()) as made:
        yield made


@pytest.fixture(autouse=True)
def lent_parsers(parsers: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every app that a test builds reads with the same parsers. They start with the first document."""

    def lend(settings: Settings) -> Sandbox:
        own = make_sandbox(settings)
        return LentSandbox(parsers, own.limits, own.processes)

    monkeypatch.setattr("nexus.app.sandbox", lend)


@pytest.fixture
def llm() -> Iterator[Model]:
    """A server that speaks OpenAI's protocol and says what the test wants."""
    with model() as running:
        yield running


@pytest.fixture
def logging_as_before() -> Iterator[None]:
    """A test may configure logging; it is restored afterwards."""
    root = logging.getLogger()
    handlers, level, kept = root.handlers, root.level, structlog.get_config()
    named = {name: logging.getLogger(name).level for name in ("alembic", "uvicorn.error")}
    yield
    root.handlers, root.level = handlers, level
    structlog.configure(**kept)
    for name, before in named.items():
        logging.getLogger(name).setLevel(before)
    logging.getLogger("uvicorn.access").disabled = False
