"""Migrations: up, down, and where a database stands."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, create_engine, make_url
from sqlalchemy.pool import NullPool

from nexus.db.session import BUSY_SECONDS, POSTGRES_PATIENCE

FOLDER = Path(__file__).parent / "migrations"


def upgrade(url: str, revision: str = "head") -> None:
    command.upgrade(_config(url), revision)


def downgrade(url: str, revision: str) -> None:
    command.downgrade(_config(url), revision)


def current(url: str) -> str | None:
    engine = engine_for(url)
    try:
        with engine.connect() as connection:
            return MigrationContext.configure(connection).get_current_revision()
    finally:
        engine.dispose()


def head() -> str | None:
    return ScriptDirectory(str(FOLDER)).get_current_head()


def engine_for(url: str) -> Engine:
    """An engine for schema work: ordinary transactions, nothing pooled."""
    parsed = make_url(url)
    if parsed.get_backend_name() == "sqlite":
        if parsed.database:
            Path(parsed.database).parent.mkdir(parents=True, exist_ok=True)
        return create_engine(parsed, poolclass=NullPool, connect_args={"timeout": BUSY_SECONDS})
    return create_engine(
        parsed.set(drivername="postgresql+psycopg"),
        poolclass=NullPool,
        connect_args={"connect_timeout": POSTGRES_PATIENCE["connect_timeout"]},
    )


def _config(url: str) -> Config:
    config = Config()
    config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    config.attributes["url"] = url
    return config
