"""What a user may use per day, and what he has used. Limits default to none; usage is always recorded."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from uuid import UUID

from sqlalchemy import bindparam, func, insert, select

from nexus.db.session import Session, Statement
from nexus.db.tables import usage, users
from nexus.errors import RateLimited

DAY = timedelta(days=1)


class Operation(StrEnum):
    TRANSCRIBE_SECONDS = "TRANSCRIBE_SECONDS"  #: seconds of sound turned into text
    LLM_TOKENS = "LLM_TOKENS"  #: tokens that a language model read and wrote
    INGEST_URLS = "INGEST_URLS"  #: URLs taken in


Limits = Mapping[Operation, int]

_USED = Statement(
    select(func.coalesce(func.sum(usage.c.amount), 0).label("used")).where(
        usage.c.user_id == bindparam("user_id"),
        usage.c.operation == bindparam("operation"),
        usage.c.at > bindparam("since", type_=usage.c.at.type),
    )
)
# Not FOR UPDATE: a row that refers to the user may be new in this very transaction, and in another one.
_LOCK = Statement(
    select(users.c.id).where(users.c.id == bindparam("user_id")).with_for_update(key_share=True)
)
_RECORD = Statement(insert(usage).values({c: bindparam(c.name) for c in usage.c if c.name != "id"}))


def check_quota(session: Session, limits: Limits, user_id: UUID, operation: Operation, amount: int) -> bool:
    """Whether the amount still fits the last 24 hours. Holds the user's row, so that two requests can't both fit."""
    limit = limits.get(operation)
    if limit is None:
        return True
    session.first(_LOCK, user_id=user_id)
    found = session.first(_USED, user_id=user_id, operation=operation.value, since=session.now - DAY)
    return found is not None and int(found.used) + amount <= limit


def require_quota(session: Session, limits: Limits, user_id: UUID, operation: Operation, amount: int) -> None:
    if not check_quota(session, limits, user_id, operation, amount):
        raise RateLimited


def record_usage(
    session: Session, user_id: UUID, operation: Operation, amount: int, media_id: UUID | None
) -> None:
    session.run(
        _RECORD, user_id=user_id, operation=operation.value, amount=amount, media_id=media_id, at=session.now
    )
