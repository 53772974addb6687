"""`nexus token`: prints a token for the API, or a sign-in link."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import typer

from nexus.cli import say
from nexus.cli.context import acting_user, load_settings
from nexus.cli.failures import MISUSED, Refused
from nexus.settings import Settings
from nexus.web.http import auth

#: Addresses that mean every address of the machine, and what to open in a browser instead.
ANY = {"0.0.0.0": "127.0.0.1", "::": "[::1]", "": "127.0.0.1"}  # noqa: S104


def print_token(
    data_dir: Path | None,
    user: UUID | None,
    host: str | None,
    port: int | None,
    *,
    as_json: bool,
    as_link: bool,
) -> None:
    chosen = load_settings(data_dir, host=host, port=port)
    owner = acting_user(chosen, user)
    if as_link:
        say.as_json({"link": sign_in_link(chosen, owner)}) if as_json else typer.echo(
            sign_in_link(chosen, owner)
        )
        return
    if chosen.jwks_url:
        raise Refused(
            "Bearer tokens come from the service that publishes the keys at NEXUS_JWKS_URL. Get one there, or sign in "
            "to the pages with: nexus token --link",
            MISUSED,
        )
    bearer = auth.issue_token(chosen, owner)
    headers = {"Authorization": f"Bearer {bearer}", "X-Nexus-Internal": chosen.internal_secret}
    say.as_json(headers) if as_json else typer.echo(bearer)


def local_address(chosen: Settings, port: int | None = None) -> str:
    """Return the address of the server for a browser on this machine."""
    host = ANY.get(chosen.host) or (f"[{chosen.host}]" if ":" in chosen.host else chosen.host)
    return f"http://{host}:{port or chosen.port}"


def sign_in_link(chosen: Settings, user: UUID, port: int | None = None) -> str:
    """Return a link that signs in as this user, at the public address if there is one."""
    site = chosen.public_url.rstrip("/") or local_address(chosen, port)
    return f"{site}/sign-in?token={auth.sign_in_token(chosen, user)}"
