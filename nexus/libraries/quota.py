"""What users may use in 24 hours, and what they have used. There is no limit by default; usage is always recorded."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from math import ceil
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import BigInteger, bindparam, cast, func, insert, select

from nexus.db.rows import IdRow
from nexus.db.session import Query, Session, Sessions, Statement
from nexus.db.tables import usage, users
from nexus.errors import EmbeddingQuota, RateLimited, TranscriptionQuota

DAY = timedelta(days=1)


class Operation(StrEnum):
    TRANSCRIBE_SECONDS = "TRANSCRIBE_SECONDS"  #: seconds of audio turned into text
    LLM_TOKENS = "LLM_TOKENS"  #: tokens that a language model read and wrote
    EMBED_TOKENS = "EMBED_TOKENS"  #: tokens of texts that were made searchable by meaning
    INGEST_URLS = "INGEST_URLS"  #: URLs added


#: How much of each operation a user gets in 24 hours; one that is not listed has no limit.
Allowances = Mapping[Operation, int]


class _Used(NamedTuple):
    used: int


# PostgreSQL sums bigints to a numeric.
_SUM = cast(func.coalesce(func.sum(usage.c.amount), 0), BigInteger)
_USED = Query(
    select(_SUM.label("used")).where(
        usage.c.user_id == bindparam("user_id"),
        usage.c.operation == bindparam("operation"),
        usage.c.at > bindparam("since", type_=usage.c.at.type),
    ),
    _Used,
)
# A plain FOR UPDATE would deadlock with other transactions that insert rows which refer to the user.
_LOCK = Query(
    select(users.c.id).where(users.c.id == bindparam("user_id")).with_for_update(key_share=True), IdRow
)
_RECORD = Statement(insert(usage).values({c: bindparam(c.name) for c in usage.c if c.name != "id"}))


def check_quota(
    session: Session, allowances: Allowances, user_id: UUID, operation: Operation, amount: int
) -> bool:
    """Whether the user may still use this amount, counting the last 24 hours.

    Locks the user's row until the transaction ends, so that two requests can't both take the last of an allowance.
    """
    limit = allowances.get(operation)
    if limit is None:
        return True
    session.first(_LOCK, user_id=user_id)
    found = session.first(_USED, user_id=user_id, operation=operation.value, since=session.now - DAY)
    return found is not None and found.used + amount <= limit


def require_quota(
    session: Session, allowances: Allowances, user_id: UUID, operation: Operation, amount: int
) -> None:
    """Raises RateLimited if `check_quota` says no."""
    if not check_quota(session, allowances, user_id, operation, amount):
        raise RateLimited


def record_usage(
    session: Session, user_id: UUID, operation: Operation, amount: int, media_id: UUID | None
) -> None:
    """Count an amount towards the user's allowance, with the media that it was used for."""
    session.run(
        _RECORD, user_id=user_id, operation=operation.value, amount=amount, media_id=media_id, at=session.now
    )


def require_transcription(sessions: Sessions, allowances: Allowances, user_id: UUID, seconds: float) -> None:
    """Raises TranscriptionQuota if the user may not transcribe so much audio now."""
    with sessions.begin() as session:
        if not check_quota(session, allowances, user_id, Operation.TRANSCRIBE_SECONDS, ceil(seconds)):
            raise TranscriptionQuota


def record_transcription(sessions: Sessions, user_id: UUID, seconds: float, media_id: UUID | None) -> None:
    """Count audio that was transcribed, whatever becomes of its text."""
    with sessions.begin() as session:
        record_usage(session, user_id, Operation.TRANSCRIBE_SECONDS, ceil(seconds), media_id)


def require_embedding(sessions: Sessions, allowances: Allowances, user_id: UUID, tokens: int) -> None:
    """Raises EmbeddingQuota if the user may not have so much embedded now."""
    with sessions.begin() as session:
        if not check_quota(session, allowances, user_id, Operation.EMBED_TOKENS, tokens):
            raise EmbeddingQuota
