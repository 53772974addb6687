# ruff: noqa: PLC0415
"""Migrations: up, down, and the revision of a database.

Alembic is slow to import and nearly every start has nothing to migrate, so it is imported only when needed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import Engine, inspect, make_url, text

from nexus.db.drivers import driver_of

FOLDER = Path(__file__).parent / "migrations"


def upgrade_schema(url: str, revision: str = "head") -> None:
    """Migrate up to a revision. Does nothing if the database is at the newest one."""
    if revision == "head" and schema_version(url) == head():
        return
    from alembic import command

    command.upgrade(_config(url), revision)


def downgrade_schema(url: str, revision: str) -> None:
    from alembic import command

    command.downgrade(_config(url), revision)


def schema_version(url: str) -> str | None:
    """Return the revision of a database, or None if it has no tables yet."""
    engine = engine_for(url)
    try:
        with engine.connect() as connection:
            if not inspect(connection).has_table("alembic_version"):
                return None
            found: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
            return found
    finally:
        engine.dispose()


def head() -> str:
    """Return the newest revision. The migrations' files are named by number."""
    return max(path.name for path in (FOLDER / "versions").glob("v[0-9]*.py"))[1:5]


def engine_for(url: str) -> Engine:
    """Return an engine for schema work, with ordinary transactions and no pool."""
    parsed = make_url(url)
    return driver_of(parsed).for_migrations(parsed)


def _config(url: str) -> Any:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    config.attributes["url"] = url
    return config
