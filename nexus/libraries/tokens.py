"""Personal API tokens, and the tokens in the addresses of feeds: named, limited to a scope, and revoked one by one.

A token is shown once. Only its hash is stored.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID, uuid4

from sqlalchemy import BindParameter, bindparam, delete, func, select, update

from nexus.db.session import Query, Session, Statement
from nexus.db.signing_in import api_tokens
from nexus.db.tables import UNSTORABLE, insert_all
from nexus.errors import Conflict, InvalidRequest, NotFound
from nexus.libraries import access, audit
from nexus.libraries.audit import AuditEvent
from nexus.libraries.sign_ins import hashed, new_key

#: Tells a token from a JWT, and lets tools that look for leaked secrets find it.
PREFIX = "nexus_"
NAME_LENGTH = 100
#: How many tokens a user may have.
MOST = 100
#: How exactly the last use is known: a write at every request would cost more than the rest of it.
NOTED_EVERY = timedelta(minutes=10)


class Scope(StrEnum):
    """What a token opens."""

    READ = "read"  #: everything that can be read
    ADD = "add"  #: adding items, and nothing else
    ALL = "all"  #: everything
    FEED = "feed"  #: the feed of published stories, and nothing else

    def covers(self, needed: Scope) -> bool:
        return self is needed or (self is Scope.ALL and needed is not Scope.FEED)


class Token(NamedTuple):
    """A token as its owner sees it."""

    id: UUID
    user_id: UUID
    name: str
    scope: Scope
    created_at: datetime
    used_at: datetime | None


class _TokenCount(NamedTuple):
    tokens: int


_USER: BindParameter[UUID] = bindparam("user_id")
_COLUMNS = [api_tokens.c[name] for name in Token._fields]
_MAKE = Statement(insert_all(api_tokens))
_FIND = Query(select(*_COLUMNS).where(api_tokens.c.key_hash == bindparam("key_hash")), Token)
_LIST = Query(
    select(*_COLUMNS).where(api_tokens.c.user_id == _USER).order_by(api_tokens.c.created_at, api_tokens.c.id),
    Token,
)
_COUNT = Query(select(func.count().label("tokens")).where(api_tokens.c.user_id == _USER), _TokenCount)
_REVOKE = Statement(
    delete(api_tokens).where(api_tokens.c.id == bindparam("token_id"), api_tokens.c.user_id == _USER)
)
_NOTE_USE = Statement(
    update(api_tokens).where(api_tokens.c.id == bindparam("token_id")).values(used_at=bindparam("now"))
)


def make(session: Session, user_id: UUID, name: str, scope: str) -> tuple[Token, str]:
    """Make a token; return it and its secret, which can't be had again.

    Raises InvalidRequest for a bad name or scope, Conflict if the user has too many.
    """
    title = " ".join(name.split())
    if not title or len(title) > NAME_LENGTH or UNSTORABLE.search(title):
        raise InvalidRequest(f"A token needs a name of 1 to {NAME_LENGTH} characters.")
    if scope not in set(Scope):
        raise InvalidRequest(f"There is no scope {scope[:40]!r}. Choose one of {', '.join(Scope)}.")
    access.ensure_user(session, user_id)
    counted = session.first(_COUNT, user_id=user_id)
    if counted is not None and counted.tokens >= MOST:
        raise Conflict(f"You have {MOST} tokens, and can't have more. Revoke one that you no longer use.")
    secret = PREFIX + new_key()
    made = Token(uuid4(), user_id, title, Scope(scope), session.now, None)
    session.run(_MAKE, **{**made._asdict(), "scope": made.scope.value}, key_hash=hashed(secret))
    audit.record(session, AuditEvent.TOKEN_CREATED, user_id, subject_id=made.id, about=made.scope.value)
    return made, secret


def find_token(session: Session, secret: str) -> Token | None:
    """Return the token of a secret, or None if it was revoked or never made."""
    return session.first(_FIND, key_hash=hashed(secret))


def is_token_use_to_note(token: Token, now: datetime) -> bool:
    """Whether its last use was noted so long ago that this one should be."""
    return token.used_at is None or now - token.used_at >= NOTED_EVERY


def note_token_use(session: Session, token: Token) -> None:
    session.run(_NOTE_USE, token_id=token.id, now=session.now)


def list_tokens(session: Session, user_id: UUID) -> list[Token]:
    """Return a user's tokens, the oldest first."""
    return session.all(_LIST, user_id=user_id)


def revoke_token(session: Session, user_id: UUID, token_id: UUID) -> None:
    """Take a token back. Raises NotFound unless it is this user's."""
    if session.run(_REVOKE, token_id=token_id, user_id=user_id) == 0:
        raise NotFound
    audit.record(session, AuditEvent.TOKEN_REVOKED, user_id, subject_id=token_id)
