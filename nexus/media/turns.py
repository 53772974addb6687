"""Fairness: due work is claimed in turns, so that one user's thousand URLs do not hold up another's one."""

from __future__ import annotations

import threading
from collections.abc import Collection
from datetime import datetime, timedelta
from math import ceil
from uuid import UUID

from sqlalchemy import ColumnElement, ScalarSelect, bindparam, exists, literal_column, select, text

from nexus.db.session import Row, Session, Sessions, Statement
from nexus.db.tables import WAITING, media
from nexus.media.lifecycle import claim_due
from nexus.states.media import Kind

#: How many users of a kind one look finds; the next look goes on behind the last of them.
USERS = 16
FIRST = UUID(int=0)


def _next_user(from_here: ColumnElement[bool]) -> ScalarSelect[UUID]:
    return (
        select(media.c.created_by_user_id)
        .where(text(WAITING), media.c.kind == bindparam("kind"), from_here)
        .order_by(media.c.created_by_user_id)
        .limit(literal_column("1"))
        .scalar_subquery()
    )


def _waiting_users() -> Statement:
    """Hops along the index from one user to the next: as many steps as users, however much each has waiting.

    Those whose media are all put off are hopped over.
    """
    user = media.c.created_by_user_id
    start = _next_user(user >= bindparam("start", type_=user.type))
    hops = select(start.label("user_id")).cte("hops", recursive=True)
    hops = hops.union_all(select(_next_user(user > hops.c.user_id)).where(hops.c.user_id.is_not(None)))
    due = exists(
        select(media.c.id)
        .where(text(WAITING), media.c.kind == bindparam("kind"), user == hops.c.user_id)
        .where(media.c.run_after <= bindparam("now"))
        .correlate(hops)
    )
    return Statement(select(hops.c.user_id).where(hops.c.user_id.is_not(None), due).limit(bindparam("most")))


_WAITING_USERS = _waiting_users()


def waiting_users(session: Session, kind: Kind, start: UUID, before: datetime) -> list[UUID]:
    """Who has media of a kind that were due before a time: from a user on, or from the first where nobody follows."""
    values = {"kind": kind.value, "now": before, "most": USERS}
    rows = session.all(_WAITING_USERS, start=start, **values)
    if not rows and start != FIRST:
        rows = session.all(_WAITING_USERS, start=FIRST, **values)
    return [row.user_id for row in rows]


class Turns:
    """Whose turn it is, for the worker threads of one process: kinds take turns, and users within a kind."""

    def __init__(self, sessions: Sessions, lease: timedelta) -> None:
        self._sessions = sessions
        self._lease = lease
        self._lock = threading.Lock()
        self._next_kind = 0
        self._next_user: dict[Kind, UUID] = {}

    def claim(self, kinds: Collection[Kind], most: int) -> list[Row]:
        """Up to `most` due media, shared out among the users who wait, beginning behind the one served last."""
        waiting = [pair for kind in self._in_turn(kinds) for pair in self._waiting(kind)]
        if not waiting:
            return []
        claimed: list[Row] = []
        with self._sessions.begin() as session:
            for place, (kind, user_id) in enumerate(waiting):
                share = ceil((most - len(claimed)) / (len(waiting) - place))
                if share > 0:
                    claimed += claim_due(session, kind, user_id, share, self._lease)
                    self._served(kind, user_id)
        return claimed

    def _in_turn(self, kinds: Collection[Kind]) -> list[Kind]:
        ordered = sorted(kinds)
        with self._lock:
            start = self._next_kind = (self._next_kind + 1) % max(len(ordered), 1)
        return ordered[start:] + ordered[:start]

    def _waiting(self, kind: Kind) -> list[tuple[Kind, UUID]]:
        """From where the last turn ended."""
        start = self._next_user.get(kind, FIRST)
        with self._sessions.read() as session:
            return [(kind, user_id) for user_id in waiting_users(session, kind, start, session.now)]

    def _served(self, kind: Kind, user_id: UUID) -> None:
        with self._lock:
            self._next_user[kind] = UUID(int=(user_id.int + 1) % 2**128)
