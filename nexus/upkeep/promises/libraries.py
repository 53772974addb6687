"""Promises about users and their libraries."""

from __future__ import annotations

from sqlalchemy import and_, exists, func, select

from nexus.db.tables import libraries, library_media, media, memberships, one_of, users
from nexus.libraries.access import Role
from nexus.states.media import FILE_KINDS
from nexus.upkeep.promises.promise import RESTORE, Promise, offenders, rows

_OWN_DEFAULT = libraries.c.owner_user_id == users.c.id
_DEFAULTS = (
    select(func.count()).select_from(libraries).where(_OWN_DEFAULT, libraries.c.is_default).correlate(users)
)
_IS_ADMIN = and_(memberships.c.library_id == libraries.c.id, memberships.c.role == Role.ADMIN.value)
_ADMINS = select(memberships.c.user_id).where(_IS_ADMIN)
_OWNER_IS_ADMIN = exists(
    _ADMINS.where(memberships.c.user_id == libraries.c.owner_user_id).correlate(libraries)
)

PROMISES = (
    Promise(
        "users.default_library",
        "Every user has one default library.",
        "Users without a default library, or with several.",
        "The user's next request creates a missing one. If there are several, restore the database from a backup.",
        rows(users, _DEFAULTS.scalar_subquery() != 1),
    ),
    Promise(
        "libraries.owner",
        "Every user is an admin of their default library.",
        "Default libraries whose owner is not an admin of them.",
        RESTORE,
        rows(libraries, libraries.c.is_default, ~_OWNER_IS_ADMIN),
    ),
    Promise(
        "libraries.admin",
        "Every library has an admin.",
        "Libraries without an admin, which nobody can change.",
        RESTORE,
        rows(libraries, ~exists(_ADMINS.correlate(libraries))),
    ),
    Promise(
        "libraries.private",
        "A default library has no members but its owner.",
        "Default libraries that someone else can see.",
        "Find out who added them, then restore the database from a backup.",
        offenders(
            select(libraries.c.id)
            .join(memberships, memberships.c.library_id == libraries.c.id)
            .where(libraries.c.is_default, memberships.c.user_id != libraries.c.owner_user_id)
            .distinct()
        ),
    ),
    Promise(
        "libraries.files",
        "No default library holds a file that somebody else uploaded.",
        "Files in the default library of a user who did not upload them.",
        "An older version of Nexus let readers copy files. The uploader's delete removes them everywhere.",
        offenders(
            select(media.c.id)
            .join(library_media, library_media.c.media_id == media.c.id)
            .join(libraries, libraries.c.id == library_media.c.library_id)
            .where(
                one_of(media.c.kind, FILE_KINDS),
                libraries.c.is_default,
                libraries.c.owner_user_id != media.c.created_by_user_id,
            )
            .distinct()
        ),
    ),
)
