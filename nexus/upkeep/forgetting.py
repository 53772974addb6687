"""What is kept for a time only: entries of the audit log, and invitations that nobody answered."""

from __future__ import annotations

from datetime import timedelta

from nexus.db.session import Sessions
from nexus.libraries import audit, invitations


def forget_old(sessions: Sessions, audit_days: int) -> dict[str, int]:
    """Delete what is past its time; return how much of each there was. Any number of processes may run this."""
    with sessions.begin() as session:
        return {
            "audit_entries": audit.forget(session, session.now - timedelta(days=audit_days)),
            "invitations": invitations.forget_expired(session),
        }
