"""A database that goes away at any moment: callers are told, and no result is lost."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from sqlalchemy import bindparam, event, make_url, select, text
from sqlalchemy.exc import OperationalError, ProgrammingError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from structlog.testing import capture_logs

from nexus.app import App, build
from nexus.db.drivers import CommitUnanswered, driver_of, is_away
from nexus.db.session import Session, Sessions, Statement, connect
from nexus.db.tables import usage
from nexus.draft import Article, Draft
from nexus.editorial import drafts, requests, steps
from nexus.errors import FetchFailed
from nexus.extract import AVAILABLE_EXTRACTORS, Asset, Extraction, Fragment, Source
from nexus.media import refresh
from nexus.media.runner import Extracting, Outcome
from nexus.queue.local import LocalQueue
from nexus.settings import Settings
from nexus.states.job import JobStatus
from nexus.states.media import Kind
from nexus.worker.outbox import Outbox
from tests.kit.databases import copied_postgres
from tests.kit.faults.network_lines import BEGIN, COMMIT, Line, Lines, Moment, Trap
from tests.kit.http import Site, data, problem, serve
from tests.kit.job_calls import TEXT
from tests.kit.jobs import LEASE, PAGE, assert_job_replays, job_events, new_job, stories_of, walk_job_to
from tests.kit.media import TEXTS, events_of, everything_of, good_extractor, new_media
from tests.kit.settings import make_settings
from tests.kit.waiting import eventually
from tests.kit.work import extract_item, refresh_item, take_step

pytestmark = pytest.mark.wall_clock

CUT_AT = {"begin": BEGIN, "commit": COMMIT}
#: The connection ends before the server hears the word, or before its answer is back.
ENDS = (Moment.BEFORE, Moment.AFTER)
CUTS = {f"{moment}-{name}": Trap((word,), moment) for name, word in CUT_AT.items() for moment in ENDS}
#: The same around a statement that commits by itself: any word will do.
STATEMENTS = {f"{moment}-statement": Trap((b"",), moment) for moment in ENDS}
_KILL = Statement(text("SELECT pg_terminate_backend(pg_backend_pid())"))
_PID = Statement(text("SELECT pg_backend_pid() AS pid").columns(pid=usage.c.id.type))
_USED = Statement(select(usage.c.amount).where(usage.c.user_id == bindparam("user_id")))


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nexus.db.patience.PAUSES", (0.05,) * 100)


@pytest.fixture
def postgres_line(lines: Lines, clean_postgres: str) -> Line:
    return lines.to(clean_postgres)


@pytest.fixture
def settings(postgres_line: Line, tmp_path: Path) -> Settings:
    return make_settings(postgres_line.url, tmp_path)


@pytest.fixture
def app(app: App) -> App:
    """The test does what workers would do."""
    return replace(app, queue=LocalQueue())


# what callers are told


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
def test_a_request_whose_connection_ends_is_answered_with_503(
    app: App, postgres_line: Line, cut: Trap
) -> None:
    with serve(app) as site:
        me = site.caller()
        me.add()
        given = {"kind": "web_article", "url": f"https://example.com/{uuid4().hex}"}
        postgres_line.arm(cut)
        answer = me.post("/media/url", json=given)
        assert not postgres_line.armed
        assert problem(answer) == (503, "E_NOT_READY")
        assert ("may or may not be saved" in answer.json()["error"]["message"]) == (COMMIT in cut.words)
        again = data(me.post("/media/url", json=given))
        assert again["created"] == (cut != Trap((COMMIT,), Moment.AFTER))
        assert len(data(me.get("/media"))["items"]) == 2


def test_a_request_to_a_read_only_postgres_is_answered_with_503(
    postgres_template: str, tmp_path: Path
) -> None:
    with (
        copied_postgres(postgres_template) as url,
        closing(build(make_settings(url, tmp_path))) as app,
        serve(app) as site,
    ):
        assert_read_only(site, lambda: set_read_only(url, app.sessions, True))


def test_a_request_to_a_read_only_sqlite_is_answered_with_503(sqlite_url: str, tmp_path: Path) -> None:
    with closing(build(make_settings(sqlite_url, tmp_path))) as app, serve(app) as site:
        assert_read_only(site, lambda: open_read_only(app.sessions))


def assert_read_only(site: Site, make_it_so: Callable[[], None]) -> None:
    """Readers read on."""
    me = site.caller()
    me.add()
    make_it_so()
    given = {"kind": "web_article", "url": "https://example.com/other"}
    assert problem(me.post("/media/url", json=given)) == (503, "E_NOT_READY")
    assert len(data(me.get("/media"))["items"]) == 1


def set_read_only(url: str, sessions: Sessions, on: bool) -> None:
    """Make it read-only like a standby, for all connections opened from now on; there are no others."""
    name = make_url(url).database
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute("SET default_transaction_read_only = off")
        connection.execute(
            f"ALTER DATABASE {name} SET default_transaction_read_only = {'on' if on else 'off'}"
        )
    sessions.dispose()


def open_read_only(sessions: Sessions) -> None:
    path = sessions.engine.url.database

    def opened(*_: object) -> sqlite3.Connection:
        return sqlite3.connect(f"file:{path}?mode=ro", uri=True, check_same_thread=False)

    event.listen(sessions.engine, "do_connect", opened)
    sessions.dispose()


# What workers found


class Cutting:
    """Runs the hook before each call: the next thing that its caller sends is a result."""

    def __init__(self, line: Line, cut: Trap, does: Callable[..., Any]) -> None:
        self._line, self._cut, self._does = line, cut, does

    def __call__(self, *given: Any) -> Any:
        self._line.arm(self._cut)
        return self._does(*given)


def with_picture(source: Source) -> Extraction:
    """More than text, so that it is written in a named transaction."""
    picture = Asset("a.png", "image/png", b"png")
    return Extraction("A title", (Fragment("text"),), assets=(picture,))


def cannot(source: Source) -> Extraction:
    raise FetchFailed


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
@pytest.mark.parametrize("outbox", [False, True], ids=["celery", "threads"])
@pytest.mark.parametrize(
    ("extract", "outcome", "ends"),
    [(with_picture, Outcome.READABLE, "readable"), (cannot, Outcome.RELEASED, "release")],
)
def test_the_result_of_an_item_is_written_once_whatever_happens_to_the_connection(
    app: App,
    postgres_line: Line,
    cut: Trap,
    outbox: bool,
    extract: Callable[[Source], Extraction],
    outcome: Outcome,
    ends: str,
) -> None:
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = Cutting(postgres_line, cut, extract)
    media_id = new_media(app)
    with capture_logs() as logs:
        if outbox:
            through_the_outbox(app, media_id, lambda: postgres_line.arm(cut))
        else:
            assert extract_item(app.tools, media_id) is outcome
    assert not postgres_line.armed
    assert events_of(app.sessions, media_id) == ["create", "start", ends]
    assert {entry["outcome"] for entry in logs if entry["event"] == "ingest_ended"} == {outcome.value}
    assert not [entry for entry in logs if entry["log_level"] == "error"]


def through_the_outbox(app: App, media_id: UUID, cut_again: Callable[[], object]) -> None:
    """Once with its batch, once alone."""
    with app.sessions.begin() as session:
        claim = Extracting(app.tools).claim(session, media_id, app.tools.leases.length)
    assert claim is not None
    box = Outbox(app.kernel)
    box.put(app.kernel.attempt(claim))
    cut_again()
    box.start()
    box.close(60)


@pytest.mark.parametrize("cut", STATEMENTS.values(), ids=STATEMENTS)
def test_a_text_is_written_once_whatever_happens_to_its_statement(
    app: App, postgres_line: Line, cut: Trap
) -> None:
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = Cutting(postgres_line, cut, good_extractor)
    media_id = new_media(app)
    assert extract_item(app.tools, media_id) is Outcome.READABLE
    assert not postgres_line.armed
    assert events_of(app.sessions, media_id) == ["create", "start", "readable"]
    assert everything_of(app.sessions, media_id).texts == list(TEXTS)


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
def test_a_refresh_is_written_once_whatever_happens_to_the_connection(
    app: App, postgres_line: Line, cut: Trap
) -> None:
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = good_extractor
    user = uuid4()
    media_id = new_media(app, user)
    assert extract_item(app.tools, media_id) is Outcome.READABLE
    refresh.request(app.sessions, LocalQueue(), media_id, user, None)
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = Cutting(
        postgres_line, cut, lambda _: Extraction.plain("New", "new")
    )
    assert refresh_item(app.tools, media_id)
    assert not postgres_line.armed
    assert everything_of(app.sessions, media_id).texts == [*TEXTS, "new"]
    with app.sessions.read() as session:
        assert refresh.present(session, media_id, user) is None


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
def test_a_jobs_steps_are_written_once_whatever_happens_to_the_connection(
    app: App, postgres_line: Line, cut: Trap, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its fetch and its reading, each of them cut."""
    monkeypatch.setattr(
        app.tools.fetcher, "get", Cutting(postgres_line, cut, lambda url: replace(PAGE, url=url))
    )
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = Cutting(
        postgres_line, cut, lambda _: Extraction.plain("Boats", TEXT)
    )
    job_id = new_job(app, uuid4())
    steps.leave_fetch(app.tools, job_id, "test")
    assert take_step(app.tools, job_id)
    assert not postgres_line.armed
    job = assert_job_replays(app, job_id)
    assert job_events(app, job_id)[-4:] == ["fetch", "fetched", "claim_extraction", "extracted"]
    assert events_of(app.sessions, job.media_id) == ["create", "start", "readable"]


class Drafts:
    """A model that is paid for."""

    costs_tokens = True

    def __init__(self, app: App, line: Line, cut: Trap) -> None:
        self._draft = Cutting(line, cut, app.tools.drafter.draft)

    def draft(self, article: Article, seconds: float) -> Draft:
        made: Draft = self._draft(article, seconds)
        return replace(made, tokens_used=7)


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
def test_a_draft_is_saved_and_paid_for_once_whatever_happens_to_the_connection(
    app: App, postgres_line: Line, cut: Trap
) -> None:
    user = uuid4()
    job_id = new_job(app, user)
    walk_job_to(app, job_id, user, JobStatus.READY_TO_GENERATE)
    tools = replace(app.tools, drafter=Drafts(app, postgres_line, cut))
    requests.finish_draft(tools, drafts.begin_draft(tools, job_id, user, lease=LEASE), "test")
    assert not postgres_line.armed
    assert assert_job_replays(app, job_id).status == JobStatus.SAVED
    assert len(stories_of(app, job_id)) == 1
    with app.sessions.read() as session:
        assert [row.amount for row in session.all(_USED, user_id=user)] == [1, 7]  # its address, its tokens


def test_a_result_waits_until_a_read_only_database_can_be_written(
    postgres_template: str, tmp_path: Path
) -> None:
    with copied_postgres(postgres_template) as url, closing(build(make_settings(url, tmp_path))) as app:

        def extract(source: Source) -> Extraction:
            set_read_only(url, app.sessions, True)
            return good_extractor(source)

        AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = extract
        media_id = new_media(app)
        with capture_logs() as logs:
            worker = threading.Thread(target=extract_item, args=(app.tools, media_id))
            worker.start()
            eventually(lambda: any(line["event"] == "result_waits" for line in logs), "it can't be written")
            set_read_only(url, app.sessions, False)
            worker.join(60)
        assert events_of(app.sessions, media_id) == ["create", "start", "readable"]


# What is away, and what is not


@pytest.fixture
def sessions(clean_postgres: str) -> Iterator[Sessions]:
    made = connect(clean_postgres)
    yield made
    made.dispose()


def test_a_terminated_connection_counts_as_an_absent_database(
    clean_postgres: str, sessions: Sessions
) -> None:
    with pytest.raises(psycopg.Error) as raised, sessions.begin() as session:
        session.run(_KILL)
    assert is_away(raised.value)
    with pytest.raises(CommitUnanswered) as unanswered, sessions.begin() as session:
        terminate(clean_postgres, session)
    assert is_away(unanswered.value)
    with sessions.begin() as session:
        assert session.first(_PID).pid


def terminate(url: str, session: Session) -> None:
    pid = session.first(_PID).pid
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 60000)", (pid,))


def test_a_full_sqlite_counts_as_an_absent_database(sqlite_url: str) -> None:
    sessions = connect(sqlite_url)
    event.listen(sessions.engine, "connect", lambda opened, _: opened.execute("PRAGMA max_page_count = 1"))
    with pytest.raises(sqlite3.OperationalError) as raised, sessions.begin() as session:
        session.run(Statement(text("CREATE TABLE filled AS SELECT zeroblob(1000000)")))
    assert is_away(raised.value)
    sessions.dispose()


def of_sqlite(code: int) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError()
    error.sqlite_errorcode = code
    return error


AWAY = [
    psycopg.OperationalError("consuming input failed: server closed the connection unexpectedly"),
    psycopg.DatabaseError("server closed the connection unexpectedly"),
    psycopg.errors.AdminShutdown(),
    psycopg.errors.CrashShutdown(),
    psycopg.errors.CannotConnectNow(),
    psycopg.errors.TooManyConnections(),
    psycopg.errors.ConnectionFailure(),
    psycopg.errors.ConnectionTimeout(),
    psycopg.errors.IdleSessionTimeout(),
    psycopg.errors.IdleInTransactionSessionTimeout(),
    psycopg.errors.ReadOnlySqlTransaction(),
    psycopg.errors.DiskFull(),
    psycopg.errors.OutOfMemory(),
    psycopg.errors.IoError(),
    psycopg.errors.QueryCanceled(),
    psycopg.errors.DeadlockDetected(),
    OperationalError("connect", None, psycopg.OperationalError("connection refused")),
    OperationalError("connect", None, of_sqlite(sqlite3.SQLITE_CANTOPEN)),
    PoolTimeout(),
    of_sqlite(sqlite3.SQLITE_IOERR_WRITE),
    of_sqlite(sqlite3.SQLITE_READONLY_DBMOVED),
    of_sqlite(sqlite3.SQLITE_FULL),
    of_sqlite(sqlite3.SQLITE_BUSY_SNAPSHOT),
]
NOT_AWAY = [
    psycopg.errors.UniqueViolation(),
    psycopg.errors.CheckViolation(),
    psycopg.errors.RaiseException(),
    psycopg.errors.UndefinedTable(),
    psycopg.errors.ProgramLimitExceeded(),
    psycopg.errors.InFailedSqlTransaction(),
    psycopg.errors.InternalError_(),
    psycopg.ProgrammingError("the query has 2 placeholders but 1 parameters were passed"),
    psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes"),
    ProgrammingError("connect", None, psycopg.errors.UndefinedTable()),
    of_sqlite(sqlite3.SQLITE_ERROR),
    sqlite3.IntegrityError(),
    sqlite3.DatabaseError(),
    ConnectionError(),
    ValueError(),
]


@pytest.fixture(scope="module")
def both_drivers() -> None:
    """Load both drivers, as in a process that may see their errors."""
    for url in ("sqlite://", "postgresql://"):
        driver_of(make_url(url))


@pytest.mark.usefixtures("both_drivers")
@pytest.mark.parametrize("error", AWAY, ids=lambda error: f"{type(error).__name__}")
def test_errors_that_may_pass_count_as_an_absent_database(error: Exception) -> None:
    assert is_away(error)


@pytest.mark.usefixtures("both_drivers")
@pytest.mark.parametrize("error", NOT_AWAY, ids=lambda error: f"{type(error).__name__}")
def test_errors_that_would_recur_do_not_count_as_an_absent_database(error: Exception) -> None:
    assert not is_away(error)
