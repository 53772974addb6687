"""What the measuring needs: a folder, a PostgreSQL, a Redis, and media."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from pathlib import Path
from uuid import UUID, uuid4

import psycopg
from sqlalchemy import Table, bindparam, insert, make_url

from nexus.db import migrate
from nexus.db.session import Sessions, Statement
from nexus.db.tables import library_media, media
from nexus.libraries import access
from tests.kit import servers

HERE = Path(__file__).parent.parent / ".cache"
_COLUMNS = ("id", "kind", "run_after", "requested_url", "canonical_url", "created_by_user_id")
_TIMES = ("created_at", "updated_at")


def _insert(table: Table, *names: str) -> Statement:
    return Statement(insert(table).values({table.c[name]: bindparam(name) for name in names}))


_ADD = _insert(media, *_COLUMNS, *_TIMES)
_HOLD = _insert(library_media, "library_id", "media_id", "added_at")


@dataclass(frozen=True)
class Place:
    folder: Path
    postgres: str
    redis: str
    numbers: Iterator[int] = field(default_factory=count)

    def empty(self, backend: str) -> str:
        """Return the SQLAlchemy URL of a new database without tables."""
        name = f"bench_{next(self.numbers)}"
        if backend == "sqlite":
            return f"sqlite:///{self.folder / name}.sqlite3"
        with psycopg.connect(dsn(self.postgres), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return make_url(self.postgres).set(database=name).render_as_string(hide_password=False)

    def migrated(self, backend: str) -> str:
        url = self.empty(backend)
        migrate.upgrade_schema(url)
        return url


@contextmanager
def places() -> Iterator[Place]:
    """Not among the system's temporary files: after thousands of them were removed, as tests do, ext4 takes many times
    longer to create a new one."""
    HERE.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="bench-", dir=HERE) as folder,
        servers.postgres() as postgres,
        servers.redis() as redis,
    ):
        yield Place(Path(folder), postgres, redis)


def dsn(url: str) -> str:
    """Return a URL in psycopg's form."""
    return make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)


def path(url: str) -> str:
    """Return the file of a SQLite URL."""
    return str(make_url(url).database)


def add_pending(sessions: Sessions, user: UUID, how_many: int) -> list[UUID]:
    """Create media in bulk, like those of `add_url`: pending, due, in the user's library, one second apart."""
    ids = [uuid4() for _ in range(how_many)]
    with sessions.begin() as session:
        library = access.ensure_user(session, user)
        times = [session.now - timedelta(seconds=how_many - place) for place in range(how_many)]
        rows = [_pending(user, media_id, at) for media_id, at in zip(ids, times, strict=True)]
        session.run_many(_ADD, rows)
        held = [
            {"library_id": library, "media_id": media_id, "added_at": at}
            for media_id, at in zip(ids, times, strict=True)
        ]
        session.run_many(_HOLD, held)
    return ids


def _pending(user: UUID, media_id: UUID, at: object) -> dict[str, object]:
    address = f"https://example.com/{media_id.hex}"
    return {
        "id": media_id,
        "kind": "web_article",
        "run_after": at,
        "requested_url": address,
        "canonical_url": address,
        "created_by_user_id": user,
        "created_at": at,
        "updated_at": at,
    }
