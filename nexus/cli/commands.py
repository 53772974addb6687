"""Every command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated
from uuid import UUID

import typer

from nexus import app as nexus_app
from nexus import logging, settings
from nexus.app import App
from nexus.cli import server
from nexus.web import auth

app = typer.Typer(no_args_is_help=True, add_completion=False)

DataDir = Annotated[Path | None, typer.Option(help="The folder of the database and the local secrets.")]


def open_app(data_dir: Path | None, **overrides: object) -> App:
    chosen = settings.load(data_dir, **overrides)
    logging.configure(json=chosen.json_logs, level=chosen.log_level)
    return nexus_app.build(chosen)


@app.command()
def serve(data_dir: DataDir = None, host: str | None = None, port: int | None = None) -> None:
    """Start Nexus."""
    built = open_app(data_dir, host=host, port=port)
    chosen = built.settings
    token = auth.sign_in_token(chosen, chosen.local_owner)
    typer.echo(f"http://{chosen.host}:{chosen.port}/sign-in?token={token}")
    server.serve(built)


@app.command()
def worker(data_dir: DataDir = None) -> None:
    """Start a worker."""
    server.work(open_app(data_dir))


@app.command()
def token(
    data_dir: DataDir = None,
    user: UUID | None = None,
    as_json: Annotated[bool, typer.Option("--json")] = False,
) -> None:
    """Print a bearer token."""
    chosen = settings.load(data_dir)
    bearer = auth.issue_token(chosen, user or chosen.local_owner)
    headers = {"Authorization": f"Bearer {bearer}", "X-Nexus-Internal": chosen.internal_secret}
    typer.echo(json.dumps(headers) if as_json else bearer)
