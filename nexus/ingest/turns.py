"""Fairness: due work is claimed in turns, so that one user's thousand URLs do not hold up another's one."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import bindparam, literal_column, select, text

from nexus.db.session import Row, Sessions, Statement
from nexus.db.tables import WAITING, media
from nexus.ingest.media import claim_due
from nexus.states.media import Kind

#: How many users one look finds; the next look goes on behind the last of them.
USERS = 16
NOBODY = UUID(int=0)


def _next_user(after: Any) -> Any:
    return (
        select(media.c.created_by_user_id)
        .where(text(WAITING), media.c.kind == bindparam("kind"), media.c.created_by_user_id > after)
        .order_by(media.c.created_by_user_id)
        .limit(literal_column("1"))
    )


def _waiting_users() -> Statement:
    """Hops along the index from one user to the next: as many steps as users, however much each has waiting."""
    start = _next_user(bindparam("after", type_=media.c.created_by_user_id.type)).scalar_subquery()
    hops = select(start.label("user_id")).cte("hops", recursive=True)
    onwards = select(_next_user(hops.c.user_id).scalar_subquery()).where(hops.c.user_id.is_not(None))
    hops = hops.union_all(onwards)
    return Statement(select(hops.c.user_id).where(hops.c.user_id.is_not(None)).limit(bindparam("most")))


_WAITING_USERS = _waiting_users()


class Turns:
    """Whose turn it is, for the worker threads of one process."""

    def __init__(self, sessions: Sessions, lease: timedelta) -> None:
        self._sessions = sessions
        self._lease = lease
        self._lock = threading.Lock()
        self._served: dict[Kind, UUID] = {}

    def claim(self, kinds: Iterable[Kind], most: int) -> list[Row]:
        """Up to `most` due media, shared out among the users who wait, beginning behind the one served last."""
        claimed: list[Row] = []
        for kind, users in self._waiting(sorted(kinds)):
            for place, user_id in enumerate(users):
                share = -(-(most - len(claimed)) // (len(users) - place))
                if share <= 0:
                    return claimed
                with self._sessions.begin() as session:
                    claimed += claim_due(session, kind, user_id, share, self._lease)
                with self._lock:
                    self._served[kind] = user_id
        return claimed

    def _waiting(self, kinds: Iterable[Kind]) -> list[tuple[Kind, list[UUID]]]:
        with self._sessions.read() as session:
            found = []
            for kind in kinds:
                with self._lock:
                    after = self._served.get(kind, NOBODY)
                rows = session.all(_WAITING_USERS, kind=kind.value, after=after, most=USERS)
                if not rows and after != NOBODY:
                    rows = session.all(_WAITING_USERS, kind=kind.value, after=NOBODY, most=USERS)
                if rows:
                    found.append((kind, [row.user_id for row in rows]))
            return found
