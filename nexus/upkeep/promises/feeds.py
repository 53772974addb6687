"""Promises about feeds, subscriptions and episodes."""

from __future__ import annotations

from sqlalchemy import and_, exists, or_, select

from nexus.db.feeds import episodes, feed_items, subscriptions
from nexus.db.tables import media, memberships
from nexus.libraries.access import Role
from nexus.states.media import Kind
from nexus.upkeep.promises.promise import REPORT, RESTORE, Promise, against, offenders, rows

_IDENTIFIED = exists(select(episodes.c.media_id).where(episodes.c.media_id == media.c.id).correlate(media))
_IS_EPISODE = media.c.kind == Kind.PODCAST_EPISODE.value
_HAS_ADMIN = exists(
    select(memberships.c.user_id)
    .where(memberships.c.library_id == subscriptions.c.library_id, memberships.c.role == Role.ADMIN.value)
    .correlate(subscriptions)
)

PROMISES = (
    Promise(
        "subscriptions.values",
        "Every subscription has a known status, and an error if and only if its last poll failed.",
        "Subscriptions with an unknown status, or an error that does not fit their last poll.",
        RESTORE,
        rows(subscriptions, against(subscriptions, "status", "error_is_told", "failure_has_error")),
    ),
    Promise(
        "subscriptions.admin",
        "Every subscription can be changed by somebody.",
        "Subscriptions of libraries without an admin.",
        RESTORE,
        rows(subscriptions, ~_HAS_ADMIN),
    ),
    Promise(
        "feed_items.taken",
        "Nothing that a feed has brought is both taken in and still to be taken in.",
        "Items of feeds that are taken in and wanted at the same time, or that are an item without being taken in.",
        REPORT,
        rows(feed_items, against(feed_items, "taken_is_not_wanted", "media_was_taken", "html_has_text")),
    ),
    Promise(
        "episodes.identity",
        "Every episode belongs to a podcast, and nothing else does.",
        "Episodes without a podcast, or other items with one.",
        REPORT,
        offenders(
            select(media.c.id).where(or_(and_(_IS_EPISODE, ~_IDENTIFIED), and_(~_IS_EPISODE, _IDENTIFIED)))
        ),
    ),
)
