"""`nexus db`: migrates the database by hand."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from nexus import logging
from nexus.cli.context import load_settings
from nexus.cli.failures import MISUSED, Refused
from nexus.command_line import again
from nexus.db import migrate
from nexus.settings import Settings
from nexus.upkeep.doctor import missing_file


def upgrade_database(data_dir: Path | None) -> None:
    chosen = _chosen(data_dir)
    migrate.upgrade_schema(chosen.database)
    typer.echo(f"The database is at revision {migrate.schema_version(chosen.database)}.")


def downgrade_database(data_dir: Path | None, revision: str, *, sure: bool) -> None:
    """Ask first: what later revisions added is lost. Raises Refused if nobody can answer."""
    chosen = _chosen(data_dir)
    if not sure:
        if not sys.stdin.isatty():
            raise Refused(
                f"Going back to {revision} deletes what later revisions added. To confirm, add --yes.",
                MISUSED,
            )
        typer.confirm(f"Going back to {revision} deletes what later revisions added. Continue?", abort=True)
    migrate.downgrade_schema(chosen.database, revision)
    typer.echo(f"The database is at revision {migrate.schema_version(chosen.database) or 'base'}.")


def show_revision(data_dir: Path | None) -> None:
    chosen = _chosen(data_dir)
    found = None if missing_file(chosen.database) else migrate.schema_version(chosen.database)
    if found == migrate.head():
        typer.echo(f"{found} (head)")
    else:
        typer.echo(f"{found or 'base'} (head is {migrate.head()}; run: {again(chosen, 'db upgrade')})")


def _chosen(data_dir: Path | None) -> Settings:
    chosen = load_settings(data_dir)
    logging.configure(json=chosen.json_logs, level="warning")
    return chosen
