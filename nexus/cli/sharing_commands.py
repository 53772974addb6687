# ruff: noqa: PLC0415
"""The commands about people: names, invitations and the audit log. commands.py has the others, and says why there is no
`from __future__ import annotations`."""

from typing import Annotated
from uuid import UUID

import typer

from nexus.cli.options import AsJson, DataDir, User


def profile(
    name: Annotated[
        str | None,
        typer.Option(help="What people who share a library with you call you.", show_default=False),
    ] = None,
    email: Annotated[
        str | None,
        typer.Option(help="Where invitations reach you. It is not verified.", show_default=False),
    ] = None,
    user: User = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Show or change your name and email."""
    from nexus.cli import people

    people.show_profile(data_dir, user, name, email, as_json=as_json)


def invite(
    whom: Annotated[str, typer.Argument(help="An email or a user id.", show_default=False)],
    library: Annotated[str, typer.Option(help="The library to share.", show_default=False)],
    as_admin: Annotated[
        bool, typer.Option("--admin", help="Let them change the library and its members.")
    ] = False,
    user: User = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Invite someone to a library of yours."""
    from nexus.cli import people

    people.invite_person(data_dir, user, whom, library, as_admin=as_admin, as_json=as_json)


def invitations(
    accept: Annotated[UUID | None, typer.Option(help="Join this library.", show_default=False)] = None,
    decline: Annotated[UUID | None, typer.Option(help="Decline this invitation.", show_default=False)] = None,
    revoke: Annotated[UUID | None, typer.Option(help="Revoke one that was sent.", show_default=False)] = None,
    user: User = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """List open invitations, to you and to your libraries, or answer one by its id."""
    from nexus.cli import people

    people.answer_invitations(data_dir, user, accept, decline, revoke, as_json=as_json)


def sign_out(
    user: Annotated[UUID, typer.Argument(help="Whom to sign out, by id.", show_default=False)],
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Sign a user out everywhere: end their sessions and revoke their personal tokens and feed addresses."""
    from nexus.cli import people

    people.sign_out_user(data_dir, user, as_json=as_json)


def audit(
    library: Annotated[str | None, typer.Option(help="Only this library.", show_default=False)] = None,
    event: Annotated[str | None, typer.Option(help="Only this event.", show_default=False)] = None,
    limit: Annotated[int, typer.Option(min=1, help="The most entries to list.")] = 50,
    user: User = None,
    data_dir: DataDir = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per entry.")] = False,
) -> None:
    """Show who did what, when and from where, the latest last."""
    from nexus.cli.audit import show_audit_log

    show_audit_log(data_dir, user, library, event, limit, as_json=as_json)
