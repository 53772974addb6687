# ruff: noqa: PLC0415
"""`nexus token`: what to send to the API, a link to sign in with, and personal tokens.

The database is imported by what needs it: a bearer token is made without it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

import typer

from nexus.cli import say
from nexus.cli.context import acting_user, connected, load_settings
from nexus.cli.failures import MISUSED, Refused
from nexus.settings import Settings

if TYPE_CHECKING:
    from nexus.db.session import Sessions
    from nexus.libraries.tokens import Token

#: Addresses that mean every address of the machine, and what to open in a browser instead.
ANY = {"0.0.0.0": "127.0.0.1", "::": "[::1]", "": "127.0.0.1"}  # noqa: S104


def print_link(
    data_dir: Path | None, user: UUID | None, host: str | None, port: int | None, *, as_json: bool
) -> None:
    """Print a new sign-in link. It works once, for ten minutes."""
    with connected(data_dir, host=host, port=port) as (chosen, sessions):
        made = sign_in_link(chosen, sessions, acting_user(chosen, user))
    say.as_json({"link": made}) if as_json else typer.echo(made)


def show_new_token(data_dir: Path | None, user: UUID | None, name: str, scope: str, *, as_json: bool) -> None:
    """Make a personal token and print it, alone, so that a script can keep it."""
    from nexus.libraries import tokens

    with connected(data_dir) as (chosen, sessions), sessions.begin() as session:
        made, secret = tokens.make(session, acting_user(chosen, user), name, scope)
    say.as_json({**_described(made), "token": secret}) if as_json else typer.echo(secret)


def show_tokens(data_dir: Path | None, user: UUID | None, *, as_json: bool) -> None:
    """List the personal tokens. The tokens themselves are not known."""
    from nexus.libraries import tokens

    with connected(data_dir) as (chosen, sessions), sessions.read() as session:
        found = tokens.list_tokens(session, acting_user(chosen, user))
    if as_json:
        say.as_json([_described(token) for token in found], indent=2)
        return
    for token in found:
        used = f"last used {token.used_at:%Y-%m-%d}" if token.used_at else "never used"
        say.line(token.id, token.scope, token.name, f"made {token.created_at:%Y-%m-%d}", used)
    if not found:
        say.hint("You have no personal tokens. Make one with: nexus token --new NAME")


def end_token(data_dir: Path | None, user: UUID | None, which: str) -> None:
    """Revoke the token with this id, or the one with this name."""
    from nexus.libraries import tokens

    with connected(data_dir) as (chosen, sessions), sessions.begin() as session:
        owner = acting_user(chosen, user)
        found = [one for one in tokens.list_tokens(session, owner) if which in {str(one.id), one.name}]
        if len(found) != 1:
            reason = "There are several tokens" if found else "There is no token"
            raise Refused(
                f"{reason} with the name or id {which}. See their ids with: nexus token --list", MISUSED
            )
        tokens.revoke_token(session, owner, found[0].id)
    typer.echo(f"{say.printable(found[0].name)} no longer works.")


def _described(token: Token) -> dict[str, str | None]:
    return {
        "id": str(token.id),
        "name": token.name,
        "scope": token.scope.value,
        "created_at": token.created_at.isoformat(),
        "last_used_at": token.used_at.isoformat() if token.used_at else None,
    }


def print_token(data_dir: Path | None, user: UUID | None, *, as_json: bool) -> None:
    """Print a bearer token of the configured secret."""
    from nexus.web.http import bearer

    chosen = load_settings(data_dir)
    owner = acting_user(chosen, user)
    if chosen.jwks_url:
        raise Refused(
            "Bearer tokens come from the service that publishes the keys at NEXUS_JWKS_URL. Get one there, make a "
            "personal token with: nexus token --new NAME, or sign in to the pages with: nexus token --link",
            MISUSED,
        )
    token = bearer.issue_token(chosen, owner)
    headers = {"Authorization": f"Bearer {token}", "X-Nexus-Internal": chosen.internal_secret}
    say.as_json(headers) if as_json else typer.echo(token)


def local_address(chosen: Settings, port: int | None = None) -> str:
    """Return the address of the server for a browser on this machine."""
    host = ANY.get(chosen.host) or (f"[{chosen.host}]" if ":" in chosen.host else chosen.host)
    return f"http://{host}:{port or chosen.port}"


def sign_in_link(chosen: Settings, sessions: Sessions, user: UUID, port: int | None = None) -> str:
    """Make a link that signs in as the user: at the public address if there is one."""
    from nexus.libraries import sign_ins

    site = chosen.public_url.rstrip("/") or local_address(chosen, port)
    with sessions.begin() as session:
        return f"{site}/sign-in?token={sign_ins.make_link(session, user)}"
