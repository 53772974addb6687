"""Nexus in processes of its own, to be killed, frozen and started again.

Python takes seconds to import Nexus and its libraries, and the fault tests start a hundred processes. So one process
imports everything once (the nursery) and forks: each child is a process like any other, which then runs the command
with an environment, a folder and a log file of its own. Whatever happens to the tests, the children end with them.
"""

from __future__ import annotations

import atexit
import faulthandler
import functools
import importlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psycopg
from sqlalchemy import bindparam, func, make_url, select, update

from nexus.app import App, build
from nexus.db import migrate
from nexus.db.editorial import jobs
from nexus.db.session import Statement
from nexus.db.tables import media, refreshes
from nexus.media.add import add_url
from nexus.states.media import Status
from tests import plugins
from tests.support import make_settings, row_of
from tests.walks import Whole, status_of, whole

ROOT = Path(__file__).parents[1]
#: How long anything may take that a test waits for, in seconds. Generous: loaded CI machines are slow.
PATIENCE = 60.0
GLANCE = 0.02
FINAL = {Status.READY_FOR_READING, Status.FAILED}
KILLS = 20
IN_FLIGHT = 10
#: What the commands import when they run, and Celery only when its worker starts.
IMPORTED_ONCE = (
    "nexus.cli.server",
    "nexus.db.triggers",
    "nexus.worker.tasks",
    "alembic.ddl.postgresql",
    "billiard.pool",
    "celery.app.amqp",
    "celery.app.control",
    "celery.app.events",
    "celery.app.log",
    "celery.apps.worker",
    "celery.concurrency.thread",
    "celery.events.dispatcher",
    "celery.events.receiver",
    "celery.fixups.django",
    "celery.loaders.app",
    "celery.worker.autoscale",
    "celery.worker.components",
    "celery.worker.consumer.delayed_delivery",
    "celery.worker.strategy",
    "kombu.pidbox",
    "kombu.transport.redis",
    "sqlalchemy.dialects.postgresql.psycopg",
    "sqlalchemy.dialects.sqlite.pysqlite",
    "uvicorn.lifespan.on",
    "uvicorn.protocols.http.httptools_impl",
    "uvicorn.protocols.websockets.websockets_sansio_impl",
    "uvloop",
)
#: Everything is quick, so that a test that waits for a lease or a backoff is quick too.
QUICK: dict[str, Any] = {
    "lease_seconds": 1.0,
    "sweep_seconds": 0.2,
    "poll_seconds": 0.1,
    "backoff_seconds": 0.1,
    "worker_threads": 2,
    "plugins": ("tests.plugins",),
}

#: Of workers that are killed or must not lose what they hold, on a machine as slow as it likes.
LONG_LEASE = 60.0
_HELD = [
    Statement(select(table.c.lease_expires_at).where(table.c.lease_expires_at.is_not(None)))
    for table in (media, jobs, refreshes)
]
_END_LEASES = [
    Statement(
        update(table)
        .where(table.c.lease_expires_at.is_not(None))
        .values(lease_expires_at=bindparam("then", type_=table.c.lease_expires_at.type))
    )
    for table in (media, jobs, refreshes)
]
_COUNT = Statement(select(func.count().label("many")).where(media.c.processing_status == bindparam("status")))


def eventually(condition: Callable[[], Any], what: str, seconds: float = PATIENCE) -> Any:
    """What the condition gives as soon as it is true; the test fails when it does not become so in time."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"it did not happen in {seconds} seconds: {what}"
        time.sleep(GLANCE)
    return found


@dataclass
class Process:
    """One running command. Its end is learned from the nursery, whose child it is."""

    name: str
    pid: int
    log: Path
    code: int | None = None

    def lines(self) -> list[str]:
        return self.log.read_text(errors="replace").splitlines()

    def events(self, name: str = "") -> list[dict[str, Any]]:
        """Its own log lines, as JSON; all, or those of one event."""
        found = [json.loads(line) for line in self.lines() if line.startswith("{")]
        return [event for event in found if not name or event.get("event") == name]

    def wait_for(self, event: str) -> None:
        def logged() -> bool:
            assert self.running, f"{self.name} ended: {self.tail()}"
            return bool(self.events(event))

        eventually(logged, f"{self.name} logs {event}")

    @property
    def running(self) -> bool:
        if self.code is None:
            self.code = nursery().poll(self.pid)
        return self.code is None

    def send(self, sign: signal.Signals) -> None:
        if self.running:
            os.kill(self.pid, sign)

    def kill(self) -> None:
        """As a crash or the kernel does it. Returns when it is gone."""
        self.send(signal.SIGKILL)
        self.wait()

    def stop(self) -> int:
        """The way it is meant to be stopped. Its exit code."""
        self.send(signal.SIGTERM)
        return self.wait()

    def wait(self) -> int:
        try:
            eventually(lambda: not self.running, f"{self.name} ends, see {self.log}")
        except AssertionError:
            self.send(signal.SIGABRT)  # its log then says where each of its threads stood
            raise
        assert self.code is not None
        return self.code

    def tail(self) -> str:
        return "\n".join(self.lines()[-40:])


class Nursery:
    """The process that forks. Its end of the conversation is `_serve`, below."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.processes"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def start(self, arguments: list[str], environment: Mapping[str, str], folder: Path, log: Path) -> int:
        """The pid of the new process."""
        return int(
            self._ask(
                start=arguments, environment=dict(environment), folder=os.fspath(folder), log=os.fspath(log)
            )
        )

    def poll(self, pid: int) -> int | None:
        """Its exit code, or None while it runs."""
        code: int | None = self._ask(poll=pid)
        return code

    def close(self) -> None:
        """Kills what is still there."""
        with self._process:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait(PATIENCE)

    def _ask(self, **question: Any) -> Any:
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        with self._lock:
            process.stdin.write(json.dumps(question) + "\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())


@functools.cache
def nursery() -> Nursery:
    """The one of this test process."""
    made = Nursery()
    atexit.register(made.close)
    return made


class Nexus:
    """One installation: a database, a folder and settings, with as many processes as a test starts.

    `app` is the same installation in the test's own process, to submit and to look.
    """

    def __init__(self, stack: ExitStack, database: str, folder: Path, **more: Any) -> None:
        self.folder = folder
        self.database = database
        self._settings = {**QUICK, **more}
        self._stack = stack
        self._count = 0
        self.app = self.build()

    def build(self) -> App:
        app = build(make_settings(self.database, self.folder, **self._settings))
        self._stack.callback(app.close)
        return app

    def start(self, command: str, *arguments: str, **more: Any) -> Process:
        """A process, which is killed at the end of the test if it still runs."""
        self._count += 1
        log = self.folder / f"{command}-{self._count}.log"
        log.touch()
        pid = nursery().start([command, *arguments], self.environment(**more), self.folder, log)
        process = Process(f"{command} {self._count}", pid, log)
        self._stack.callback(process.kill)
        return process

    def worker(self, **more: Any) -> Process:
        return self.start("worker", **more)

    def environment(self, **more: Any) -> dict[str, str]:
        own = make_settings(self.database, self.folder, **{**self._settings, **more})
        given = own.model_dump(mode="json", exclude_defaults=True, exclude={"celery_always_eager"})
        mine = {
            f"NEXUS_{name.upper()}": ",".join(map(str, value)) if isinstance(value, list) else str(value)
            for name, value in given.items()
        }
        others = {name: value for name, value in os.environ.items() if not name.startswith("NEXUS_")}
        tests = {"NEXUS_LOG_FORMAT": "json", plugins.FOLDER: os.fspath(self.folder)}
        return {**others, **mine, **tests}

    def starts(self) -> list[plugins.Start]:
        return plugins.starts(self.folder)

    def open_gate(self) -> None:
        plugins.open_gate(self.folder)


@contextmanager
def installed(database: str, folder: Path, **more: Any) -> Iterator[Nexus]:
    """A Nexus on a migrated database; all its processes are gone afterwards."""
    with ExitStack() as stack:
        yield Nexus(stack, database, folder, **more)


@contextmanager
def fresh_postgres(server_url: str) -> Iterator[str]:
    """The URL of a migrated database of its own, on the server that all tests share."""
    base = make_url(server_url).set(drivername="postgresql")
    name = f"nexus_test_{uuid4().hex}"
    with psycopg.connect(base.render_as_string(hide_password=False), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        url = base.set(drivername="postgresql+psycopg", database=name).render_as_string(hide_password=False)
        try:
            migrate.upgrade(url)
            yield url
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def submitted(nexus: Nexus, *tales: str, user: UUID | None = None) -> list[UUID]:
    """A pending media for each, in one transaction; nobody is told."""
    owner = user or uuid4()
    with nexus.app.sessions.begin() as session:
        urls = [f"https://example.com/{tale}/{uuid4().hex}" for tale in tales]
        return [add_url(session, owner, "web_article", url, {}).media_id for url in urls]


def settled(nexus: Nexus, ids: Iterable[UUID]) -> bool:
    return {status_of(nexus.app.sessions, media_id) for media_id in ids} <= FINAL


def count(nexus: Nexus, status: Status) -> int:
    with nexus.app.sessions.read() as session:
        return int(session.first(_COUNT, status=status.value).many)


def end_leases(nexus: Nexus) -> None:
    """As if the time of all that is held were over. None of it is held for longer than a lease, whatever it is."""
    with nexus.app.sessions.begin() as session:
        held = [row.lease_expires_at for statement in _HELD for row in session.all(statement)]
        assert held
        assert max(held) <= session.now + timedelta(seconds=LONG_LEASE)
        for statement in _END_LEASES:
            session.run(statement, then=session.now - timedelta(seconds=1))


def kill_twenty_workers(nexus: Nexus) -> list[UUID]:
    """Each is killed while it works on something that can't end, among others that end at once."""
    ids: list[UUID] = []
    for _ in range(KILLS):
        missing = max(IN_FLIGHT - count(nexus, Status.PENDING), 0)
        ids += submitted(nexus, *["gated", "ok"] * (missing // 2 + 1))
        worker = nexus.worker()
        eventually(lambda pid=worker.pid: _holds_gated(nexus, pid), f"{worker.name} is at work")
        worker.kill()
    return ids


def _holds_gated(nexus: Nexus, pid: int) -> bool:
    begun = {start.media_id for start in nexus.starts() if start.pid == pid}
    return any("/gated/" in row_of(nexus.app.sessions, media_id).canonical_url for media_id in begun)


def check_only_the_killed_timed_out(found: list[Whole]) -> None:
    """The sweep took back what each killed worker held, and gave up only on what had been held three times."""
    timeouts = [entry for one in found for entry in one.history if entry.error_code == "E_JOB_TIMEOUT"]
    assert len(timeouts) >= KILLS
    assert {entry.actor for entry in timeouts} == {"sweep"}
    failed = [one.row for one in found if one.row.processing_status == Status.FAILED]
    assert {(row.last_error_code, row.tries) for row in failed} <= {("E_JOB_TIMEOUT", 3)}


def check_kept_promises(nexus: Nexus, ids: Iterable[UUID]) -> list[Whole]:
    """Whatever happened to the workers: every media is at an end, and no step of its way was taken twice."""
    started = nexus.starts()
    assert len({(start.media_id, start.attempt) for start in started}) == len(started), "started twice"
    found = [whole(nexus.app.sessions, media_id) for media_id in ids]
    for one in found:
        attempts = {start.attempt for start in started if start.media_id == one.row.id}
        _check_way(one, attempts)
    return found


def _check_way(one: Whole, started: set[int]) -> None:
    row, events = one.row, [entry.event for entry in one.history]
    attempts = [entry.attempt for entry in one.history if entry.event == "start"]
    assert attempts == list(range(1, row.processing_attempts + 1))
    assert started <= set(attempts), "an extractor began without a claim"
    ways = ["create"] + ["start", "release"] * (len(attempts) - 1) + ["start"]
    last = one.history[-1]
    if row.processing_status == Status.READY_FOR_READING:
        assert events == [*ways, "readable"]
        assert last.attempt in started
        assert one.texts == plugins.texts(last.attempt)
    else:
        assert row.processing_status == Status.FAILED
        assert events == [*ways, "fail"]
        assert one.texts == []
    assert row.lease_expires_at is None


def _serve() -> None:
    """The nursery's own life: one question per line, until the tests are gone."""
    for name in IMPORTED_ONCE:
        importlib.import_module(name)
    children: set[int] = set()
    for line in sys.stdin:
        question = json.loads(line)
        if "start" in question:
            pid = os.fork()
            if pid == 0:
                _become(question)
            children.add(pid)
            answer: int | None = pid
        else:
            answer = _exit_code(question["poll"], children)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    for pid in children:
        os.kill(pid, signal.SIGKILL)


def _exit_code(pid: int, children: set[int]) -> int | None:
    done, status = os.waitpid(pid, os.WNOHANG)
    if not done:
        return None
    children.discard(pid)
    return os.waitstatus_to_exitcode(status)


def _become(question: dict[str, Any]) -> None:
    """Run the command in this new process, and never come back."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    log = os.open(question["log"], os.O_WRONLY | os.O_APPEND)
    for source, target in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    os.environ.clear()
    os.environ.update(question["environment"])
    os.chdir(question["folder"])
    faulthandler.enable()
    sys.argv = ["nexus", *question["start"]]
    # A plugin registers itself when it is imported, which must happen in this process.
    for plugin in os.environ.get("NEXUS_PLUGINS", "").split(","):
        sys.modules.pop(plugin, None)
    code = 1
    try:
        from nexus.cli import main  # noqa: PLC0415

        main()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    _serve()
