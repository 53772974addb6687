"""A team's Nexus on this machine: real stores, and the README's commands as processes that can be killed."""

from __future__ import annotations

import os
import re
import secrets
import shlex
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from itertools import count
from pathlib import Path

import httpx2
import psycopg
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from tests.kit import servers
from tests.kit.certificates import Authority
from tests.kit.servers import Server, ServerError, object_store
from tests.kit.servers.web_pages import Pages
from tools.shipped.recipe import Recipe, fill

#: Not in the recipe: so that what a killed worker held waits seconds, and not a minute.
HASTE = {"NEXUS_LEASE_SECONDS": "10", "NEXUS_SWEEP_SECONDS": "1"}
SECRETS = ("NEXUS_INTERNAL_SECRET", "NEXUS_SESSION_SECRET", "NEXUS_OIDC_CLIENT_SECRET")
READY = re.compile(r"celery@\S+ ready")


class Process(Server):
    """One of the README's commands. A start that fails is not repeated, as that of a store is."""

    def start(self) -> None:
        self._launch(self.command(self.port))
        if not self._answered():
            raise ServerError(f"{self.name} ended instead of starting. Its log:\n{self.tail()}")

    def end(self) -> None:
        """By SIGTERM. Raises ServerError when it does not end well."""
        self.stop()
        code = self._watcher.returncode if self._watcher else None
        if code:
            raise ServerError(f"{self.name} ended with {code}. Its log:\n{self.tail()}")

    def tail(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-30:])


@dataclass(frozen=True)
class Stores:
    database: Server
    redis: Server
    objects: Server


@contextmanager
def stores() -> Iterator[Stores]:
    """Started fresh, with what an operator makes by hand before Nexus: a database with its user, and a bucket."""
    with ExitStack() as stack:
        database = stack.enter_context(servers.postgres_server(durable=True))
        redis = stack.enter_context(servers.redis_server())
        objects = stack.enter_context(object_store.object_store())
        with psycopg.connect(database.url.replace("+psycopg", ""), autocommit=True) as connection:
            connection.execute("CREATE ROLE nexus LOGIN")
            connection.execute("CREATE DATABASE nexus OWNER nexus")
        object_store.client(objects.url).create_bucket(Bucket="nexus")
        yield Stores(database, redis, objects.server)


@dataclass
class Team:
    """Everything that runs, by name."""

    recipe: Recipe
    programs: Path
    folder: Path
    stores: Stores
    #: The article's site.
    site: Pages
    #: The identity provider, where it publishes its keys.
    provider: Pages
    #: The certificate that Nexus must trust to believe it.
    authority: Path
    ports: list[int] = field(default_factory=lambda: servers.free_ports(2))
    processes: list[Process] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        for name in ("home", "logs"):
            (self.folder / name).mkdir()
        self.settings = fill(self.recipe.settings, self._values())

    @property
    def urls(self) -> list[str]:
        return [f"http://127.0.0.1:{port}" for port in self.ports]

    def setting(self, name: str) -> str:
        """A value as the recipe exports it."""
        found = re.search(rf"\b{name}=(\S+)", self.settings)
        return found[1] if found else ""

    def run(self, command: str) -> str:
        """To its end: what it prints. Raises ServerError when it fails."""
        shell = self._shell(command, {})
        ran = subprocess.run(shell, capture_output=True, text=True, cwd=self.folder, check=False)
        if ran.returncode:
            raise ServerError(f"{command} ended with {ran.returncode}:\n{ran.stdout}{ran.stderr}")
        return ran.stdout

    def serve(self, index: int) -> Process:
        """Listens on loopback instead of on every address of this machine."""
        command = fill(self.recipe.command("nexus serve"), {"0.0.0.0": "127.0.0.1"})
        port = self.ports[index]
        return self._started(command, {"NEXUS_PORT": str(port)}, _is_ready, port)

    def work(self, *, fetches: bool) -> Process:
        """In prod only public addresses are fetched, and the site is on loopback: so a worker that is to fetch
        from it, and nothing else of the team, does not run in prod."""
        local = {"NEXUS_ENV": "local", "NEXUS_FETCH_ALLOW": self.site.place} if fetches else {}
        return self._started(self.recipe.command("nexus worker"), local, _takes_work, servers.free_port())

    def _started(
        self, command: str, more: dict[str, str], answers: Callable[[Server], bool], port: int
    ) -> Process:
        name = f"{command.split()[1]}-{next(self._numbers)}"
        folder = self.folder / "logs" / name
        folder.mkdir()
        process = Process(
            name=name,
            folder=folder,
            command=lambda _: self._shell(command, more),
            address=lambda port: f"http://127.0.0.1:{port}",
            answers=answers,
            ending=signal.SIGTERM,
            port=port,
        )
        self.processes.append(process)
        process.start()
        return process

    def _shell(self, command: str, more: dict[str, str]) -> list[str]:
        """In the environment of a new user: what is installed beside Nexus, or set here, can't help it."""
        given = {
            "PATH": f"{self.programs}:{os.defpath}",
            "HOME": str(self.folder / "home"),
            "SSL_CERT_FILE": str(self.authority),
            "LANG": "C.UTF-8",
        }
        changed = [f"export {name}={shlex.quote(value)}" for name, value in more.items()]
        script = "\n".join([self.settings, *changed, f"exec {command}"])
        outside = [f"{name}={value}" for name, value in {**given, **HASTE}.items()]
        return ["env", "-i", *outside, "bash", "-euc", script]

    def _values(self) -> dict[str, str]:
        keys = {
            "NEXUS_S3_ACCESS_KEY": object_store.ACCESS_KEY,
            "NEXUS_S3_SECRET_KEY": object_store.SECRET_KEY,
            **{name: secrets.token_urlsafe(48) for name in SECRETS},
        }
        return {
            "https://nexus.example.com": self.urls[0],
            "db.internal": f"127.0.0.1:{self.stores.database.port}",
            "redis.internal": f"127.0.0.1:{self.stores.redis.port}",
            "https://s3.internal": self.stores.objects.url,
            "https://id.example.com": self.provider.url(""),
            **{f"{name}=…": f"{name}={value}" for name, value in keys.items()},
        }


@contextmanager
def team(recipe: Recipe, programs: Path, folder: Path) -> Iterator[Team]:
    """With its stores and its site, and without any process yet. All of it is gone afterwards."""
    authority = Authority.make()
    trusted = folder / "authority.pem"
    trusted.write_bytes(authority.certificate.public_bytes(Encoding.PEM))
    address = x509.IPAddress(IPv4Address("127.0.0.1"))
    tls = authority.context(folder, address, until=datetime.now(UTC) + timedelta(days=1))
    with stores() as started, Pages() as site, Pages(tls) as provider:
        made = Team(recipe, programs, folder, started, site, provider, trusted)
        try:
            yield made
        finally:
            for process in made.processes:
                process.kill()


def _is_ready(process: Server) -> bool:
    try:
        return httpx2.get(f"{process.url}/readyz", trust_env=False).status_code == 200
    except httpx2.HTTPError:
        return False


def _takes_work(process: Server) -> bool:
    return bool(READY.search(process.log.read_text(errors="replace")))
