"""`nexus profile`, `sign-out`, `invite` and `invitations`: who you are, and who shares a library with you."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from nexus.cli import say
from nexus.cli.context import acting_user, connected
from nexus.cli.failures import MISUSED, Refused
from nexus.db.session import Session
from nexus.errors import ApiError
from nexus.libraries import access, catalog, invitations, people, sign_ins, tokens
from nexus.libraries.access import Role
from nexus.libraries.invitations import Invitation, Invitee, Offer


def show_profile(
    data_dir: Path | None, user: UUID | None, name: str | None, email: str | None, *, as_json: bool
) -> None:
    """Change what is given, then show the profile."""
    with connected(data_dir) as (chosen, sessions):
        viewer = acting_user(chosen, user)
        with sessions.begin() as session:
            access.ensure_user(session, viewer)
            try:
                if name is not None:
                    people.set_name(session, viewer, name)
                if email is not None:
                    people.set_email(session, viewer, email)
            except ApiError as error:
                raise Refused(error.message, MISUSED) from error
            me = people.get_person(session, viewer)
    if as_json:
        say.as_json({"user_id": str(me.user_id), "name": me.name, "email": me.email})
    else:
        say.line(me.user_id, me.name or "no name", me.email or "no email")


def sign_out_user(data_dir: Path | None, user: UUID, *, as_json: bool) -> None:
    """For somebody who has left, or whose device was lost."""
    with connected(data_dir) as (_, sessions), sessions.begin() as session:
        browsers = sign_ins.end_all(session, user)
        kept = tokens.list_tokens(session, user)
        for token in kept:
            tokens.revoke_token(session, user, token.id)
    if as_json:
        say.as_json({"user_id": str(user), "browsers": browsers, "tokens": len(kept)})
    else:
        say.line("signed_out", user, f"{browsers} browsers", f"{len(kept)} tokens")


def invite_person(
    data_dir: Path | None, user: UUID | None, whom: str, library: str, *, as_admin: bool, as_json: bool
) -> None:
    with connected(data_dir) as (chosen, sessions):
        viewer = acting_user(chosen, user)
        life = timedelta(days=chosen.invitation_days)
        try:
            with sessions.begin() as session:
                access.ensure_user(session, viewer)
                library_id = catalog.find_own_library(session, viewer, library)
                if library_id is None:
                    raise Refused(f"You administer no library “{library}”.")
                role = Role.ADMIN if as_admin else Role.MEMBER
                made = invitations.invite(session, library_id, viewer, Invitee.typed(whom), role, life)
        except ApiError as error:
            raise Refused(error.message) from error
    if as_json:
        say.as_json(_as_json(made))
    else:
        say.line("invited", made.email or made.user_id, f"open until {made.expires_at:%Y-%m-%d %H:%M} UTC")
        say.hint("Nexus sends no mail: tell them to sign in, or to run: nexus invitations")


def answer_invitations(
    data_dir: Path | None,
    user: UUID | None,
    accept: UUID | None,
    decline: UUID | None,
    revoke: UUID | None,
    *,
    as_json: bool,
) -> None:
    """Answer one if asked to, then list what is open: those to the user, then those of their libraries."""
    with connected(data_dir) as (chosen, sessions):
        viewer = acting_user(chosen, user)
        try:
            with sessions.begin() as session:
                access.ensure_user(session, viewer)
                if accept is not None:
                    invitations.accept(session, accept, viewer)
                if decline is not None:
                    invitations.decline(session, decline, viewer)
                if revoke is not None:
                    _revoke(session, viewer, revoke)
                offers, sent = invitations.list_offers(session, viewer), _sent(session, viewer)
        except ApiError as error:
            raise Refused(error.message) from error
    _show(offers, sent, as_json=as_json)


def _show(offers: list[Offer], sent: list[Invitation], *, as_json: bool) -> None:
    if as_json:
        listed = {"received": list(map(_as_json, offers)), "sent": list(map(_as_json, sent))}
        say.as_json(listed, indent=2)
        return
    for offer in offers:
        by = offer.inviter_name or offer.inviter_email or "another reader"
        say.line("received", offer.id, offer.library_name, offer.role.value, f"from {by}")
    for made in sent:
        say.line("sent", made.id, made.email or made.user_id, made.role.value, f"{made.expires_at:%Y-%m-%d}")
    if offers:
        say.hint("Join with: nexus invitations --accept ID")
    elif not sent:
        say.hint("There are no open invitations.")


def _as_json(row: Offer | Invitation) -> dict[str, Any]:
    return {name: None if value is None else str(value) for name, value in row._asdict().items()}


def _sent(session: Session, viewer: UUID) -> list[Invitation]:
    """The open invitations of every library that the user administers."""
    own = (row.id for row in catalog.list_libraries(session, viewer) if row.role is Role.ADMIN)
    return [made for library in own for made in invitations.list_invitations(session, library, viewer)]


def _revoke(session: Session, viewer: UUID, invitation_id: UUID) -> None:
    found = next((made for made in _sent(session, viewer) if made.id == invitation_id), None)
    if found is None:
        raise Refused("You have sent no such invitation, or it is no longer open.")
    invitations.revoke_invitation(session, found.library_id, invitation_id, viewer)
