"""The stage: real servers, connections to them that can be cut, a site to fetch from, and Nexus in its processes."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

import httpx2

from chaos import broken_disk
from chaos.plan import PROCESSES, REDIS, SERVERS, STORE, Scene
from chaos.site import Site
from tests.kit import servers
from tests.kit.databases import fresh_postgres
from tests.kit.faults.network_lines import Line, Lines
from tests.kit.http import headers_of
from tests.kit.processes import Process, nursery
from tests.kit.run_storage import run_prefix
from tests.kit.servers.object_store import ACCESS_KEY, BUCKET, SECRET_KEY, object_store
from tests.kit.settings import make_settings
from tests.kit.waiting import eventually

#: Short times, so that a run of minutes sees many expired leases and retries.
QUICK = {
    "ENV": "test",
    "JWT_SECRET": "a-secret-of-the-run-that-is-long-enough",
    "INTERNAL_SECRET": "internal-secret-of-the-run",
    "SESSION_SECRET": "session-secret-of-the-run-that-is-long",
    "LOG_FORMAT": "json",
    "LEASE_SECONDS": "2",
    "WORK_SECONDS": "20",
    "SWEEP_SECONDS": "0.3",
    "POLL_SECONDS": "0.2",
    "BACKOFF_SECONDS": "0.3",
    "WORKER_THREADS": "4",
    "PARSER_PROCESSES": "1",
    "FETCH_DELAY_SECONDS": "0",
    "FETCH_PER_HOST": "16",
    "PLUGINS": "chaos.broken_disk",
    "UPKEEP_HOURS": "0.0003",  # about a second
}
#: How long one answer may take in calm times, in seconds. Generous: machines are busy.
PATIENCE = 60.0


@dataclass
class Stage:
    scene: Scene
    folder: Path
    site: Site
    #: The database's own address, past the line, for checks.
    database: str
    lines: dict[str, Line] = field(default_factory=dict)
    ports: dict[str, int] = field(default_factory=dict)
    processes: dict[str, Process] = field(default_factory=dict)
    more: dict[str, str] = field(default_factory=dict)
    #: Exit codes of processes that ended by themselves.
    ended: list[str] = field(default_factory=list)
    _starts: int = 0

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def store(self) -> Path:
        """Where the local store keeps its files."""
        return self.data / "storage"

    @property
    def urls(self) -> list[str]:
        return [f"http://127.0.0.1:{self.ports[name]}" for name in SERVERS]

    def headers(self, user: UUID) -> dict[str, str]:
        names = ("jwt_secret", "internal_secret", "session_secret")
        secrets = {name: QUICK[name.upper()] for name in names}
        return headers_of(make_settings(self.database, self.data, **secrets), user)

    def start(self, name: str) -> None:
        """Does not wait until the process is ready: clients have to cope with that."""
        self._starts += 1
        log = self.folder / f"{name}-{self._starts}.log"
        log.touch()
        command = "serve" if name in SERVERS else "worker"
        pid = nursery().start([command], self._environment(name), self.folder, log)
        self.processes[name] = Process(name, pid, log)

    def revive(self, name: str) -> None:
        """Start a process again if it is not running; record one that ended by itself."""
        process = self.processes[name]
        if process.running:
            return
        if process.code != -signal.SIGKILL:
            self.ended.append(f"{name} ended by itself with code {process.code}: {process.tail()[-600:]}")
        self.start(name)

    def wait_until_ready(self) -> None:
        for url in self.urls:
            eventually(lambda url=url: self._ready(url), f"{url} is ready", PATIENCE)

    def _ready(self, url: str) -> bool:
        for name in PROCESSES:
            self.revive(name)
        with suppress(httpx2.TransportError):
            return httpx2.get(f"{url}/readyz", timeout=PATIENCE).status_code == 200
        return False

    def run_command(self, *command: str) -> tuple[int, str]:
        """Run a command of the same installation, past all lines; return its exit code and output."""
        log = self.folder / "command.log"
        log.write_text("")
        environment = self._environment("command")
        process = Process(command[0], nursery().start(list(command), environment, self.folder, log), log)
        return process.wait(), process.tail()

    def _environment(self, name: str) -> dict[str, str]:
        own = {
            **QUICK,
            **self.more,
            "DATA_DIR": str(self.data),
            "DATABASE_URL": self._through(name),
            "QUEUE": self.scene.queue,
            "EMBED": "off",
            "STORAGE_PREFIX": run_prefix(),
            "FETCH_ALLOW": self.site.place,
            "PORT": str(self.ports.get(name, 0)),
        }
        given = {f"NEXUS_{key}": value for key, value in own.items()}
        outside = {key: value for key, value in os.environ.items() if not key.startswith("NEXUS_")}
        return {**outside, **given, broken_disk.FOLDER: str(self.data)}

    def _through(self, name: str) -> str:
        """Return the database's address on this process's line."""
        line = self.lines.get(name)
        return self.database if line is None else line.url


@contextmanager
def staged(scene: Scene) -> Iterator[Stage]:
    """Build everything that a run needs; remove all processes and files afterwards."""
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="nexus-chaos-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        site = stack.enter_context(Site())
        lines = stack.enter_context(Lines())
        stage = Stage(scene, folder, site, _database(stack, scene, folder))
        stage.data.mkdir()
        stage.ports = dict(zip(SERVERS, servers.free_ports(len(SERVERS)), strict=True))
        _connect(stack, stage, lines)
        stack.callback(_kill_all, stage.processes)
        yield stage


def _database(stack: ExitStack, scene: Scene, folder: Path) -> str:
    if scene.database == "sqlite":
        return f"sqlite:///{folder / 'data' / 'nexus.sqlite3'}"
    server = stack.enter_context(servers.postgres_server())
    return stack.enter_context(fresh_postgres(server.url))


def _connect(stack: ExitStack, stage: Stage, lines: Lines) -> None:
    """Make a line from each process to PostgreSQL, one to Redis and one to the object store, if they are used."""
    if stage.scene.database == "postgres":
        stage.lines |= {name: lines.to(stage.database) for name in PROCESSES}
    if stage.scene.queue == "celery":
        broker = stack.enter_context(servers.redis_server())
        stage.lines[REDIS] = lines.to(broker.url)
        stage.more["REDIS_URL"] = stage.lines[REDIS].url
    if stage.scene.storage == "s3":
        store = stack.enter_context(object_store())
        stage.lines[STORE] = lines.to(store.url)
        stage.more |= {
            "STORAGE": "s3",
            "S3_BUCKET": BUCKET,
            "S3_ENDPOINT_URL": stage.lines[STORE].url,
            "S3_ACCESS_KEY": ACCESS_KEY,
            "S3_SECRET_KEY": SECRET_KEY,
        }


def _kill_all(processes: Mapping[str, Process]) -> None:
    for process in processes.values():
        process.kill()
