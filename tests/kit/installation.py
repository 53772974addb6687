"""An installation of Nexus that runs in processes of its own, and what tests ask of it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx2 as httpx
from sqlalchemy import bindparam, func, select, update

from nexus.app import App, build
from nexus.db.chunks import indexing
from nexus.db.editorial import jobs
from nexus.db.feeds import subscriptions
from nexus.db.session import Statement
from nexus.db.tables import media, refreshes
from nexus.media.add import add_url
from nexus.states.media import MediaStatus
from nexus.web.http.bearer import issue_token
from tests.kit.http import NO_CERTIFICATES
from tests.kit.media import status_of
from tests.kit.plugins import extract_by_url
from tests.kit.processes import Process, nursery
from tests.kit.settings import make_settings
from tests.kit.waiting import eventually

FINAL = {MediaStatus.READY_FOR_READING, MediaStatus.FAILED}
#: Everything is quick, so that a test that waits for a lease or a backoff is quick too.
QUICK: dict[str, Any] = {
    "lease_seconds": 1.0,
    "sweep_seconds": 0.2,
    "poll_seconds": 0.1,
    "backoff_seconds": 0.1,
    "worker_threads": 2,
    "plugins": ("tests.kit.plugins.extract_by_url",),
}
#: For workers that are killed, or must keep their leases on a slow machine.
LONG_LEASE = 60.0
_HELD = [
    Statement(select(table.c.lease_expires_at).where(table.c.lease_expires_at.is_not(None)))
    for table in (media, jobs, refreshes, indexing, subscriptions)
]
_END_LEASES = [
    Statement(
        update(table)
        .where(table.c.lease_expires_at.is_not(None))
        .values(lease_expires_at=bindparam("then", type_=table.c.lease_expires_at.type))
    )
    for table in (media, jobs, refreshes, indexing, subscriptions)
]
_COUNT = Statement(select(func.count().label("many")).where(media.c.processing_status == bindparam("status")))
OWNER = uuid4()


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
        tests = {"NEXUS_LOG_FORMAT": "json", extract_by_url.FOLDER: os.fspath(self.folder)}
        return {**others, **mine, **tests}

    def starts(self) -> list[extract_by_url.Start]:
        return extract_by_url.starts(self.folder)

    def open_gate(self) -> None:
        extract_by_url.open_gate(self.folder)


@contextmanager
def installed(database: str, folder: Path, **more: Any) -> Iterator[Nexus]:
    """A Nexus on a migrated database; all its processes are gone afterwards."""
    with ExitStack() as stack:
        yield Nexus(stack, database, folder, **more)


def submit_media(nexus: Nexus, *tales: str, user: UUID | None = None) -> list[UUID]:
    """Make a pending media for each of these paths in one transaction, and announce none."""
    owner = user or uuid4()
    with nexus.app.sessions.begin() as session:
        urls = [f"https://example.com/{tale}/{uuid4().hex}" for tale in tales]
        return [add_url(session, owner, "web_article", url, {}).media_id for url in urls]


def all_settled(nexus: Nexus, ids: Iterable[UUID]) -> bool:
    return {status_of(nexus.app.sessions, media_id) for media_id in ids} <= FINAL


def count_in_status(nexus: Nexus, status: MediaStatus) -> int:
    with nexus.app.sessions.read() as session:
        return int(session.first(_COUNT, status=status.value).many)


def end_leases(nexus: Nexus) -> None:
    """End every lease now, after checking that none is longer than LONG_LEASE."""
    with nexus.app.sessions.begin() as session:
        held = [row.lease_expires_at for statement in _HELD for row in session.all(statement)]
        assert held
        assert max(held) <= session.now + timedelta(seconds=LONG_LEASE)
        for statement in _END_LEASES:
            session.run(statement, then=session.now - timedelta(seconds=1))


def start_server(nexus: Nexus, port: int | None = None) -> Process:
    """`nexus serve`, once it answers; on the port of the settings unless another is given."""
    at = port or nexus.app.settings.port
    server = nexus.start("serve", port=at)

    def answers() -> bool:
        assert server.running, server.tail()
        try:
            return httpx.get(f"http://127.0.0.1:{at}/readyz", verify=NO_CERTIFICATES).status_code == 200
        except httpx.TransportError:
            return False

    eventually(answers, "the server answers")
    return server


def server_url(nexus: Nexus) -> str:
    return f"http://127.0.0.1:{nexus.app.settings.port}"


def post_url(nexus: Nexus, tale: str) -> UUID:
    chosen = nexus.app.settings
    headers = {
        "Authorization": f"Bearer {issue_token(chosen, OWNER)}",
        "X-Nexus-Internal": chosen.internal_secret,
    }
    body = {"kind": "web_article", "url": f"https://example.com/{tale}/{uuid4().hex}"}
    answer = httpx.post(f"{server_url(nexus)}/media/url", json=body, headers=headers, verify=NO_CERTIFICATES)
    assert answer.status_code == 200, answer.text
    assert answer.json()["data"]["enqueued"]
    return UUID(answer.json()["data"]["media_id"])
