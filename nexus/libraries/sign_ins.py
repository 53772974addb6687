"""Browsers that are signed in, and the links that sign one in. Only hashes of their keys are stored."""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID, uuid4

from sqlalchemy import BindParameter, bindparam, delete, select, update

from nexus.db.session import Query, Session, Statement
from nexus.db.signing_in import sign_in_links, sign_ins
from nexus.db.tables import insert_all
from nexus.libraries import access, audit
from nexus.libraries.audit import AuditEvent
from nexus.settings import Lives

#: As long as a code that is sent out of band may live.
LINK_LIFE = timedelta(minutes=10)
#: How exactly the last use is known: a write at every request would cost more than the rest of it.
NOTED_EVERY = timedelta(minutes=5)
#: How long after showing who they are somebody may sign out their other browsers.
PROVEN_FOR = timedelta(minutes=15)
#: Browsers describe themselves at length; this much is enough to recognise one.
DEVICE_LENGTH = 200


class Method(StrEnum):
    LINK = "link"  #: by a link that Nexus printed
    OIDC = "oidc"  #: at the team's identity provider


class SignIn(NamedTuple):
    """A browser that is signed in."""

    id: UUID
    user_id: UUID
    method: Method
    device: str
    created_at: datetime
    used_at: datetime
    expires_at: datetime
    ends_at: datetime
    proven_at: datetime | None


class _Owner(NamedTuple):
    user_id: UUID


_NOW: BindParameter[datetime] = bindparam("now")
_KEY: BindParameter[str] = bindparam("key_hash")
_USER: BindParameter[UUID] = bindparam("user_id")
_COLUMNS = [sign_ins.c[name] for name in SignIn._fields]
_MAKE_LINK = Statement(insert_all(sign_in_links))
_LIVE_LINK = (sign_in_links.c.key_hash == _KEY, sign_in_links.c.expires_at > _NOW)
_SEE_LINK = Query(select(sign_in_links.c.user_id).where(*_LIVE_LINK), _Owner)
_USE_LINK = Query(delete(sign_in_links).where(*_LIVE_LINK).returning(sign_in_links.c.user_id), _Owner)
_FORGET_LINKS = Statement(delete(sign_in_links).where(sign_in_links.c.expires_at <= _NOW))
_BEGIN = Statement(insert_all(sign_ins))
_FIND = Query(select(*_COLUMNS).where(sign_ins.c.key_hash == _KEY, sign_ins.c.expires_at > _NOW), SignIn)
_LIST = Query(
    select(*_COLUMNS)
    .where(sign_ins.c.user_id == _USER, sign_ins.c.expires_at > _NOW)
    .order_by(sign_ins.c.used_at.desc(), sign_ins.c.id),
    SignIn,
)
_NOTE_USE = Statement(
    update(sign_ins)
    .where(sign_ins.c.id == bindparam("sign_in_id"))
    .values(used_at=_NOW, expires_at=bindparam("until"))
)
_END = Statement(
    delete(sign_ins).where(sign_ins.c.id == bindparam("sign_in_id"), sign_ins.c.user_id == _USER)
)
_END_OTHERS = Statement(
    delete(sign_ins).where(sign_ins.c.user_id == _USER, sign_ins.c.id != bindparam("kept"))
)
_END_ALL = Statement(delete(sign_ins).where(sign_ins.c.user_id == _USER))
_FORGET_ENDED = Statement(delete(sign_ins).where(sign_ins.c.expires_at <= _NOW))


def new_key() -> str:
    """Return a key that nobody can guess."""
    return secrets.token_urlsafe(32)


def hashed(key: str) -> str:
    """Return what is stored of a key. It is random and long, so a plain hash is as good as a slow one."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def make_link(session: Session, user_id: UUID) -> str:
    """Return the key of a link that signs a browser in as this user, once, within ten minutes."""
    session.run(_FORGET_LINKS, now=session.now)
    key = new_key()
    session.run(_MAKE_LINK, key_hash=hashed(key), user_id=user_id, expires_at=session.now + LINK_LIFE)
    return key


def see_link(session: Session, key: str) -> UUID | None:
    """Return whom a link would sign in, or None if it has been used or has expired."""
    found = session.first(_SEE_LINK, key_hash=hashed(key), now=session.now)
    return None if found is None else found.user_id


def use_link(session: Session, key: str) -> UUID | None:
    """The same, and use it up: of several who use it at once, one gets the user."""
    found = session.first(_USE_LINK, key_hash=hashed(key), now=session.now)
    return None if found is None else found.user_id


def begin_sign_in(
    session: Session, user_id: UUID, method: Method, device: str, lives: Lives, proven_at: datetime | None
) -> str:
    """Sign a browser in; return the key for its cookie."""
    access.ensure_user(session, user_id)
    session.run(_FORGET_ENDED, now=session.now)
    key, sign_in_id = new_key(), uuid4()
    session.run(
        _BEGIN,
        id=sign_in_id,
        key_hash=hashed(key),
        user_id=user_id,
        method=method.value,
        device=device[:DEVICE_LENGTH],
        created_at=session.now,
        used_at=session.now,
        expires_at=session.now + min(lives.idle, lives.most),
        ends_at=session.now + lives.most,
        proven_at=proven_at and min(proven_at, session.now),
    )
    audit.record(session, AuditEvent.SIGNED_IN, user_id, subject_id=sign_in_id, about=method.value)
    return key


def find_sign_in(session: Session, key: str) -> SignIn | None:
    """Return the sign-in of a cookie's key, or None if it has ended or was never begun."""
    return session.first(_FIND, key_hash=hashed(key), now=session.now)


def is_sign_in_to_note(sign_in: SignIn, now: datetime) -> bool:
    """Whether its last use was noted so long ago that this one should be."""
    return now - sign_in.used_at >= NOTED_EVERY


def note_sign_in_use(session: Session, sign_in: SignIn, lives: Lives) -> None:
    """Remember that it was used now, which also puts off its end."""
    until = min(session.now + lives.idle, sign_in.ends_at)
    session.run(_NOTE_USE, sign_in_id=sign_in.id, now=session.now, until=until)


def is_proven(sign_in: SignIn | None, now: datetime) -> bool:
    """Whether its user has shown a moment ago who they are: somebody else may sit at their browser by now."""
    return sign_in is not None and sign_in.proven_at is not None and now - sign_in.proven_at < PROVEN_FOR


def list_sign_ins(session: Session, user_id: UUID) -> list[SignIn]:
    """Return where a user is signed in, the one used last first."""
    return session.all(_LIST, user_id=user_id, now=session.now)


def end(session: Session, user_id: UUID, sign_in_id: UUID) -> bool:
    """Sign a browser of this user out; return whether there was one."""
    ended = session.run(_END, user_id=user_id, sign_in_id=sign_in_id) > 0
    if ended:
        audit.record(session, AuditEvent.SIGNED_OUT, user_id, subject_id=sign_in_id)
    return ended


def end_all(session: Session, user_id: UUID, but: UUID | None = None) -> int:
    """Sign out every browser of this user, or every one but this; return how many there were."""
    if but is None:
        ended = session.run(_END_ALL, user_id=user_id)
    else:
        ended = session.run(_END_OTHERS, user_id=user_id, kept=but)
    if ended:
        audit.record(session, AuditEvent.SIGNED_OUT, user_id, about=f"{ended} browsers")
    return ended
