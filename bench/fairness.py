"""What one user can do to another: reads while somebody takes all that they can get."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from uuid import UUID, uuid4

import httpx2

from bench.attacker import STAGED_BYTES, STAGED_FILES, STREAMS, UPLOADS
from bench.client import burst
from bench.over_http import CONNECTIONS, Running, nexus_server
from bench.places import Place, add_pending
from bench.table import Line, interleaved, ratio
from nexus.db.session import connect
from nexus.settings import load
from nexus.web.http.bearer import issue_token
from tests.kit.servers.web_pages import Pages

FETCHES = 66
REQUESTS = 2000
ROUNDS = 5
LIMIT = 3.0


def ask(place: Place) -> list[Line]:
    return [_beside_attacker(place, backend) for backend in ("sqlite", "postgres")]


def _beside_attacker(place: Place, backend: str) -> Line:
    url, folder = place.migrated(backend), place.folder / f"fairness-{backend}"
    owner = load(folder).local_owner
    assert owner is not None
    sessions = connect(url)
    media_id = add_pending(sessions, owner, 1)[0]
    sessions.dispose()
    with ExitStack() as stack:
        pages = stack.enter_context(Pages())
        more = {
            "NEXUS_EXTRACTION": "off",
            "NEXUS_FETCH_ALLOW": pages.place,
            "NEXUS_FETCH_PER_HOST": str(FETCHES),
            "NEXUS_FETCH_SECONDS": "600",
        }
        busy = stack.enter_context(nexus_server(url, folder, **more))
        calm = stack.enter_context(nexus_server(url, folder, **more))
        attacker = stack.enter_context(_attacker(busy, folder, pages))
        slow = interleaved(
            ROUNDS,
            {"attacked": partial(_attacked, attacker, busy, media_id), "calm": partial(_p99, calm, media_id)},
        )
    taken = (
        f"{FETCHES} fetches, {STREAMS} streams, {UPLOADS} uploads, {STAGED_FILES * STAGED_BYTES >> 20} MiB"
    )
    return Line(
        f"p99 of GET /media/{{id}}, {backend}, beside {taken} of another",
        f"{median(slow['attacked']) * 1000:.1f} ms",
        f"{median(slow['calm']) * 1000:.1f} ms",
        ratio(slow, "attacked", "calm"),
        at_most=LIMIT,
    )


def _p99(server: Running, media_id: UUID) -> float:
    return burst(server.port, f"/media/{media_id}", server.headers, CONNECTIONS, REQUESTS).p99


def _attacked(attacker: subprocess.Popen[str], server: Running, media_id: UUID) -> float:
    assert attacker.stdin is not None
    assert attacker.stdout is not None
    attacker.stdin.write("\n")
    attacker.stdin.flush()
    figure = _p99(server, media_id)
    if attacker.stdout.readline() != "done\n":
        raise RuntimeError("the attacker gave up")
    return figure


@contextmanager
def _attacker(server: Running, folder: Path, pages: Pages) -> Iterator[subprocess.Popen[str]]:
    """A process of one user, whose fetches wait for their site already."""
    headers = {**server.headers, "Authorization": f"Bearer {issue_token(load(folder), uuid4())}"}
    with httpx2.Client(base_url=f"http://127.0.0.1:{server.port}", headers=headers) as client:
        jobs = [
            client.post("/api/ingestion-jobs", json={"url": pages.url(f"/held/{number}")}).json()["job"]["id"]
            for number in range(FETCHES)
        ]
    command = [sys.executable, "-m", "bench.attacker", str(server.port), *jobs]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    process.stdin.write(json.dumps(headers) + "\n")
    process.stdin.flush()
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        pages.gate.set()  # a server that stops waits for its fetches
