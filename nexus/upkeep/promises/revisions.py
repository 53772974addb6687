"""Promises about revisions: what libraries hold is there and whole, and what is private stays so."""

from __future__ import annotations

from sqlalchemy import and_, exists, func, not_, or_, select

from nexus.db.pictures import pictures
from nexus.db.tables import earlier_holdings, fragments, libraries, library_media, media, revisions
from nexus.upkeep.promises.promise import REPORT, RESTORE, Promise, against, offenders

_IS_THERE = exists(
    select(revisions.c.media_id)
    .where(revisions.c.media_id == library_media.c.media_id, revisions.c.number == library_media.c.revision)
    .correlate(library_media)
)
_WRITTEN = (
    select(
        fragments.c.media_id,
        fragments.c.revision,
        func.count().label("pieces"),
        func.sum(func.length(fragments.c.text)).label("characters"),
    )
    .group_by(fragments.c.media_id, fragments.c.revision)
    .subquery("written")
)
_IS_WHOLE = and_(_WRITTEN.c.pieces == revisions.c.pieces, _WRITTEN.c.characters == revisions.c.characters)
_OTHERS = or_(
    *(
        exists(
            select(held.c.media_id)
            .join(libraries, libraries.c.id == held.c.library_id)
            .where(
                held.c.media_id == revisions.c.media_id,
                held.c.revision == revisions.c.number,
                or_(~libraries.c.is_default, libraries.c.owner_user_id != revisions.c.private_to),
            )
            .correlate(revisions)
        )
        for held in (library_media, earlier_holdings)
    )
)

PROMISES = (
    Promise(
        "revisions.held",
        "Every version that a library holds is there.",
        "Items of which a library holds a version that is gone.",
        RESTORE,
        offenders(
            select(library_media.c.media_id.label("id"))
            .where(library_media.c.revision.is_not(None), ~_IS_THERE)
            .distinct()
        ),
    ),
    Promise(
        "revisions.whole",
        "No version has lost any of its text.",
        "Items with a version that has lost some of its text.",
        RESTORE,
        offenders(
            select(revisions.c.media_id.label("id"))
            .outerjoin_from(
                revisions,
                _WRITTEN,
                and_(_WRITTEN.c.media_id == revisions.c.media_id, _WRITTEN.c.revision == revisions.c.number),
            )
            .where(or_(_WRITTEN.c.media_id.is_(None), not_(_IS_WHOLE)))
            .distinct()
        ),
    ),
    Promise(
        "revisions.numbers",
        "No number of a version is used twice.",
        "Items whose next version would get a number that is taken.",
        REPORT,
        offenders(
            select(media.c.id)
            .join(revisions, revisions.c.media_id == media.c.id)
            .where(revisions.c.number > media.c.last_revision)
            .distinct()
        ),
    ),
    Promise(
        "revisions.pictures",
        "Every picture of a text is there whole, was given up, or waits to be fetched.",
        "Items with a picture in their text that is half there.",
        RESTORE,
        offenders(
            select(pictures.c.media_id.label("id"))
            .where(against(pictures, "whole", "kept_or_given_up", "held_is_unfinished"))
            .distinct()
        ),
    ),
    Promise(
        "revisions.private",
        "A text that somebody entered is in no library but their own.",
        "Items with an entered text in a library that others can read.",
        REPORT,
        offenders(
            select(revisions.c.media_id.label("id"))
            .where(revisions.c.private_to.is_not(None), _OTHERS)
            .distinct()
        ),
    ),
)
