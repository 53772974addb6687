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
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.kit.waiting import PATIENCE, eventually
from tools.shipped.modules import OF_CELERY

ROOT = Path(__file__).parents[2]
#: What the commands import when they run.
IMPORTED_ONCE = (
    "nexus.cli.server",
    "nexus.db.triggers",
    "nexus.worker.tasks",
    "alembic.ddl.postgresql",
    "billiard.pool",
    "celery.fixups.django",
    *OF_CELERY,
    "psycopg",
    "sqlalchemy.dialects.postgresql.psycopg",
    "sqlalchemy.dialects.sqlite.pysqlite",
    "uvicorn.lifespan.on",
    "uvicorn.protocols.http.httptools_impl",
    "uvloop",
)


@dataclass
class Process:
    """One running command: a child of the nursery, which knows its exit code."""

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
        """Kill it with SIGKILL, and wait until it is gone."""
        self.send(signal.SIGKILL)
        self.wait()

    def stop(self) -> int:
        """Stop it with SIGTERM. Returns its exit code."""
        self.send(signal.SIGTERM)
        return self.wait()

    def wait(self) -> int:
        try:
            eventually(lambda: not self.running, f"{self.name} ends, see {self.log}")
        except AssertionError:
            self.send(signal.SIGABRT)  # its log then shows where each thread was
            raise
        assert self.code is not None
        return self.code

    def tail(self) -> str:
        return "\n".join(self.lines()[-40:])


class Nursery:
    """The process that forks; it runs `_serve`, below."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.kit.processes"],
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
        """End the nursery and every child that still runs."""
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
    """The nursery of this test process."""
    made = Nursery()
    atexit.register(made.close)
    return made


def _serve() -> None:
    """The nursery's main loop: one request per line, until the tests are gone."""
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
