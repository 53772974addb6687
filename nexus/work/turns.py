"""Fairness: due work is claimed in turns, so that one user's thousand URLs do not hold up another's one."""

from __future__ import annotations

import threading
from datetime import timedelta
from math import ceil
from typing import Any
from uuid import UUID

from nexus.db.session import Sessions
from nexus.work.backlog import FIRST
from nexus.work.handler import Claim, Handler, R, S


class Turns:
    """Says whose turn it is, for the worker threads of one process: lanes take turns, and users within a lane."""

    def __init__(self, sessions: Sessions, lease: timedelta) -> None:
        self._sessions = sessions
        self._lease = lease
        self._lock = threading.Lock()
        self._next_lane: dict[str, int] = {}
        self._next_user: dict[tuple[str, str | None], UUID] = {}

    def claim(self, handler: Handler[S, R], most: int) -> list[Claim[S]]:
        """Claim up to `most` pieces of due work, shared among the users who wait, starting after the last one served.

        Looks before it claims: a claim is a write, and SQLite takes one writer at a time.
        """
        waiting = [pair for lane in self._lanes_in_turn(handler) for pair in self._waiting(handler, lane)]
        if not waiting:
            return []
        claimed: list[Claim[S]] = []
        with self._sessions.begin() as session:
            for place, (lane, user_id) in enumerate(waiting):
                share = ceil((most - len(claimed)) / (len(waiting) - place))
                if handler.is_long(lane):
                    share = 0 if claimed else 1
                if share > 0:
                    claimed += handler.claim_due(session, lane, user_id, share, self._lease)
                    with self._lock:
                        self._next_user[handler.kind, lane] = UUID(int=(user_id.int + 1) % 2**128)
                if claimed and handler.is_long(lane):
                    break
        return claimed

    def _lanes_in_turn(self, handler: Handler[Any, Any]) -> list[str | None]:
        lanes = list(handler.lanes())
        with self._lock:
            start = (self._next_lane.get(handler.kind, -1) + 1) % max(len(lanes), 1)
            self._next_lane[handler.kind] = start
        return lanes[start:] + lanes[:start]

    def _waiting(self, handler: Handler[Any, Any], lane: str | None) -> list[tuple[str | None, UUID]]:
        """Return who waits in a lane, starting where the last turn ended."""
        start = self._next_user.get((handler.kind, lane), FIRST)
        with self._sessions.read() as session:
            users = handler.backlog.users(session, lane, start, session.now)
        return [(lane, user_id) for user_id in users]
