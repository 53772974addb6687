"""What is kept for a time only: entries of the audit log, invitations that nobody answered, and feeds without use."""

from __future__ import annotations

from datetime import timedelta

from nexus.db.session import Sessions
from nexus.libraries import audit, invitations
from nexus.media.feeds.subscribing import forget_ended, remove_feed_if_unused, unused_feeds


def forget_old(sessions: Sessions, audit_days: int) -> dict[str, int]:
    """Delete what is past its time; return how much of each there was. Any number of processes may run this."""
    with sessions.begin() as session:
        forgotten = {
            "audit_entries": audit.forget(session, session.now - timedelta(days=audit_days)),
            "invitations": invitations.forget_expired(session),
            "histories": forget_ended(session),
        }
    return {**forgotten, "feeds": _remove_feeds(sessions)}


def _remove_feeds(sessions: Sessions) -> int:
    """Each in a transaction of its own: somebody may subscribe to it at this moment."""
    with sessions.read() as session:
        unused = unused_feeds(session)
    removed = 0
    for feed_id in unused:
        with sessions.begin() as session:
            removed += remove_feed_if_unused(session, feed_id)
    return removed
