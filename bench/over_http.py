"""What GET /media/{id} costs compared with a bare endpoint that reads one row, each in one server process."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from uuid import UUID

from bench.client import burst
from bench.places import Place, add_pending
from bench.table import Line, Rounds, interleaved, ratio
from nexus.db.session import connect
from nexus.settings import load
from tests.kit.servers import free_port

CONNECTIONS = 8
REQUESTS = 800
ROUNDS = 9
LEAST, SLOWEST = 0.65, 5.0
PATIENCE = 60.0


@dataclass(frozen=True)
class Running:
    """A running Nexus server."""

    port: int
    pid: int
    headers: dict[str, str]


def ask(place: Place) -> list[Line]:
    return [line for backend in ("sqlite", "postgres") for line in _compare(place, backend)]


def _compare(place: Place, backend: str) -> list[Line]:
    url, folder = place.migrated(backend), place.folder / f"http-{backend}"
    media_id = _one_media(url, folder)
    slow: Rounds = {"nexus": [], "bare": []}
    with nexus_server(url, folder) as nexus, _bare(url) as bare:
        measure = partial(_measure, f"/media/{media_id}", nexus.headers)
        speed = interleaved(
            ROUNDS,
            {
                "nexus": partial(measure, nexus.port, slow["nexus"]),
                "bare": partial(measure, bare, slow["bare"]),
            },
        )
    return [
        Line(
            f"GET /media/{{id}}, {backend}, bare endpoint",
            f"{median(speed['nexus']):,.0f}/s",
            f"{median(speed['bare']):,.0f}/s",
            ratio(speed, "nexus", "bare"),
            at_least=LEAST,
        ),
        Line(
            f"GET /media/{{id}}, {backend}, p99",
            f"{median(slow['nexus']) * 1000:.1f} ms",
            f"{median(slow['bare']) * 1000:.1f} ms",
            ratio(slow, "nexus", "bare"),
            at_most=SLOWEST,
        ),
    ]


def _measure(target: str, headers: dict[str, str], port: int, slow: list[float]) -> float:
    result = burst(port, target, headers, CONNECTIONS, REQUESTS)
    slow.append(result.p99)
    return result.per_second


def _one_media(url: str, folder: Path) -> UUID:
    """A media of the local owner, whose token is used."""
    owner = load(folder).local_owner
    assert owner is not None
    sessions = connect(url)
    media_id = add_pending(sessions, owner, 1)[0]
    sessions.dispose()
    return media_id


@contextmanager
def nexus_server(url: str, folder: Path, **settings: str) -> Iterator[Running]:
    """Run `nexus serve`, and send the headers that `nexus token` prints."""
    port, program = free_port(), [sys.executable, "-m", "nexus"]
    own = {"NEXUS_DATABASE_URL": url, "NEXUS_DATA_DIR": str(folder), "NEXUS_LOG_LEVEL": "warning"}
    # A model would take its part of the processor: what it costs is measured on its own.
    environment = os.environ | own | {"NEXUS_EMBED": "off"} | settings
    token = subprocess.run([*program, "token", "--json"], env=environment, check=True, capture_output=True)
    with _serving([*program, "serve", "--port", str(port)], port, environment) as pid:
        yield Running(port, pid, json.loads(token.stdout))


@contextmanager
def _bare(url: str) -> Iterator[int]:
    port = free_port()
    with _serving([sys.executable, "-m", "bench.bare", url, str(port)], port, dict(os.environ)):
        yield port


@contextmanager
def _serving(command: list[str], port: int, environment: dict[str, str]) -> Iterator[int]:
    server = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    try:
        _wait_for(server, port)
        yield server.pid
    finally:
        server.terminate()
        server.wait()


def _wait_for(server: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and server.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise RuntimeError(f"no server on port {port}: {server.args}")
