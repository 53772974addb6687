"""Promises about lists, and about what people note for themselves."""

from __future__ import annotations

from sqlalchemy import Integer, and_, func, literal_column, or_, select, union

from nexus.db.facets import FACET_SQL
from nexus.db.list_keys import KEYS_IF_THERE
from nexus.db.tables import library_media, media, revisions
from nexus.libraries import access
from nexus.upkeep.promises.promise import REPORT, Promise, offenders

_HELD = func.coalesce(library_media.c.revision, media.c.revision)
_COPIES = {"host": media.c.host, **KEYS_IF_THERE}

PROMISES = (
    Promise(
        "lists.keys",
        "Every library sorts its items by the text that it holds.",
        "Items that a library sorts by something else than the text that it holds.",
        REPORT,
        offenders(
            select(library_media.c.media_id.label("id"))
            .join_from(library_media, media, media.c.id == library_media.c.media_id)
            .outerjoin(revisions, and_(revisions.c.media_id == media.c.id, revisions.c.number == _HELD))
            .where(or_(*(library_media.c[name] != copied for name, copied in _COPIES.items())))
            .distinct()
        ),
    ),
    Promise(
        "lists.facets",
        "Every list is narrowed by what its items are and by what the library's owner has noted.",
        "Items that lists show or leave out by an old state.",
        REPORT,
        offenders(
            select(library_media.c.media_id.label("id"))
            .where(library_media.c.facet != literal_column(f"({FACET_SQL})", Integer))
            .distinct()
        ),
    ),
    Promise(
        "shelves.readers",
        "Whatever somebody noted is about an item that they can read.",
        "Items about which somebody noted something who can't read them any more.",
        REPORT,
        offenders(
            union(
                *(
                    select(noted.c.media_id.label("id")).where(~access.still_read(noted))
                    for noted in access.PERSONAL
                )
            )
        ),
    ),
)
