"""How many feeds one user may subscribe to: each is polled again and again, and its items are kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import bindparam, func, select

from nexus.db.feeds import subscriptions
from nexus.db.session import Query, Session
from nexus.errors import TooManySubscriptions
from nexus.media.storage_shares import stand_in_line


@dataclass(frozen=True)
class SubscriptionShare:
    """What one user may have, over all libraries. The owner, whose machine it is, may have any number."""

    most: int
    owner: UUID | None = None


class _OwnSubscriptions(NamedTuple):
    how_many: int


_OWN = Query(
    select(func.count().label("how_many"))
    .select_from(subscriptions)
    .where(subscriptions.c.created_by_user_id == bindparam("user_id")),
    _OwnSubscriptions,
)


def require_share(session: Session, share: SubscriptionShare, viewer: UUID) -> None:
    """Raises TooManySubscriptions if the user has more than their share. Call it where one was just made: two requests
    can't both take the last place, and a feed that the library has already is not refused."""
    if viewer == share.owner:
        return
    stand_in_line(session, viewer)
    (own,) = session.all(_OWN, user_id=viewer)
    if own.how_many > share.most:
        raise TooManySubscriptions(
            f"You subscribe to {share.most} feeds, which is the limit. Unsubscribe from some of them first."
        )
