"""Other addresses of an item: somebody who has the item and adds one of them finds it, instead of a second copy.

They are looked up in the viewer's default library only, which nobody else can put anything into. So nobody learns which
address somebody else used, and no page that another member added decides what an address means to the viewer.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import bindparam, exists, literal_column, select

from nexus.db.addresses import other_addresses
from nexus.db.session import Query, Session
from nexus.db.tables import libraries, library_media, media, memberships
from nexus.db.upserts import insert_or_nothing
from nexus.media.texts import Readable
from nexus.states.media import Kind, MediaStatus


class Known(NamedTuple):
    """An item as somebody who adds its address finds it."""

    id: UUID
    processing_status: MediaStatus
    run_after: datetime


_RECORD = insert_or_nothing(other_addresses)
_own = media.alias("own")
#: The viewer has an item whose own address it is.
_IS_OWN = exists(
    select(_own.c.id)
    .join(library_media, library_media.c.media_id == _own.c.id)
    .join(memberships, memberships.c.library_id == library_media.c.library_id)
    .where(
        _own.c.kind == bindparam("kind"),
        _own.c.canonical_url == bindparam("url"),
        memberships.c.user_id == bindparam("viewer"),
    )
)
_IS_IN_DEFAULT = exists(
    select(library_media.c.media_id)
    .join(libraries, libraries.c.id == library_media.c.library_id)
    .where(
        library_media.c.media_id == media.c.id,
        libraries.c.owner_user_id == bindparam("viewer"),
        literal_column("libraries.is_default"),  # as the partial index has it
    )
    .correlate(media)
)
# Locks the item, as get-or-create does: nobody can delete it before a library holds it.
_FIND = Query(
    select(media.c.id, media.c.processing_status, media.c.run_after)
    .join(other_addresses, other_addresses.c.media_id == media.c.id)
    .where(
        other_addresses.c.url == bindparam("url"),
        media.c.kind == bindparam("kind"),
        _IS_IN_DEFAULT,
        ~_IS_OWN,
    )
    .order_by(media.c.created_at, media.c.id)
    .limit(literal_column("1"))
    .with_for_update(key_share=True, of=media),
    Known,
)


def record_addresses(session: Session, ready: Iterable[Readable]) -> None:
    """Write down to which other addresses texts belong. The caller holds the rows of their items."""
    rows = [{"media_id": one.media_id, "url": url} for one in ready for url in one.addresses]
    session.run_many(_RECORD, rows)


def find_by_other_address(session: Session, viewer: UUID, kind: Kind, url: str) -> Known | None:
    """Return the oldest item of the viewer's with this other address, unless they have an item of its own for it."""
    return session.first(_FIND, viewer=viewer, kind=kind.value, url=url)
