"""Runs migrations, one process at a time: others wait for the lock and then find nothing to do."""

from alembic import context
from sqlalchemy import Connection, text

from nexus.db import indexes  # noqa: F401 part of the metadata
from nexus.db.migrate import engine_for
from nexus.db.tables import metadata

LOCK = 0x6E65787573  # "nexus"


def _lock(connection: Connection) -> None:
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    else:
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": LOCK})


def run() -> None:
    engine = engine_for(context.config.attributes["url"])
    with engine.connect() as connection:
        _lock(connection)
        context.configure(connection=connection, target_metadata=metadata, render_as_batch=True)
        with context.begin_transaction():
            context.run_migrations()
        connection.commit()
    engine.dispose()


run()
