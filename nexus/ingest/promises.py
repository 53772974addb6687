"""What must hold of the rows, each as one statement that finds who breaks it. `nexus doctor` asks them all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    CheckConstraint,
    ColumnElement,
    Select,
    and_,
    bindparam,
    exists,
    func,
    not_,
    or_,
    select,
    text,
    tuple_,
)

from nexus.db.session import Statement
from nexus.db.tables import (
    fragments,
    history,
    libraries,
    library_media,
    media,
    memberships,
    one_of,
    users,
)
from nexus.ingest.access import Role
from nexus.states.media import EMBED, FILE_KINDS, MEDIA, PUBLISHED, START, Stage, Status


@dataclass(frozen=True)
class Promise:
    name: str
    #: The sentence where it holds.
    holds: str
    #: The sentence where it does not.
    broken: str
    advice: str
    #: Up to `most` rows that break it: their id, and in `total` how many there are.
    offenders: Statement


RESTORE = "Restore a copy of the database: Nexus itself can't write this."
REPORT = "Restore a copy of the database, and report it: Nexus should never write this."


def offenders(chosen: Select[Any]) -> Statement:
    """From a select of ids."""
    found = chosen.subquery("found")
    return Statement(
        select(found.c.id, func.count().over().label("total")).order_by(found.c.id).limit(bindparam("most"))
    )


def _media(*conditions: ColumnElement[bool]) -> Statement:
    return offenders(select(media.c.id).where(*conditions))


def _against(*names: str) -> ColumnElement[bool]:
    """Rows that constraints of the table would refuse."""
    checks = {str(c.name): c for c in media.constraints if isinstance(c, CheckConstraint)}
    return or_(*(text(f"NOT ({checks[f'ck_media_{name}'].sqltext})") for name in names))


_HAS_TEXT = exists(select(fragments.c.media_id).where(fragments.c.media_id == media.c.id).correlate(media))
_IS_FAILED = media.c.processing_status == Status.FAILED.value
_EMBED_FAILED = and_(_IS_FAILED, media.c.failure_stage == Stage.EMBED.value)
_UNREAD = frozenset({Status.PENDING, Status.EXTRACTING})
_HOLDERS = select(library_media.c.media_id).where(library_media.c.media_id == media.c.id).correlate(media)
_OWN_DEFAULT = libraries.c.owner_user_id == users.c.id
_DEFAULTS = (
    select(func.count()).select_from(libraries).where(_OWN_DEFAULT, libraries.c.is_default).correlate(users)
)
_IS_ADMIN = and_(memberships.c.library_id == libraries.c.id, memberships.c.role == Role.ADMIN.value)
_ADMINS = select(memberships.c.user_id).where(_IS_ADMIN)
_OWNER_IS_ADMIN = exists(
    _ADMINS.where(memberships.c.user_id == libraries.c.owner_user_id).correlate(libraries)
)

_OF_MEDIA = and_(history.c.subject == "media", history.c.subject_id == media.c.id)
_LAST = (
    select(history.c.to_status)
    .where(_OF_MEDIA)
    .order_by(history.c.id.desc())
    .limit(1)
    .correlate(media)
    .scalar_subquery()
)
_CLAIMS = (
    select(func.count())
    .select_from(history)
    .where(_OF_MEDIA, or_(history.c.event == START.verb, history.c.event == EMBED.verb))
    .correlate(media)
    .scalar_subquery()
)


def _broken_chains() -> Select[Any]:
    """Media with a history row that does not begin where the one before it ended; the first begins nowhere."""
    before = func.lag(history.c.to_status).over(partition_by=history.c.subject_id, order_by=history.c.id)
    links = select(history.c.subject_id, history.c.from_status, before.label("before")).where(
        history.c.subject == "media"
    )
    chain = links.subquery("chain")
    return (
        select(chain.c.subject_id.label("id"))
        .where(chain.c.from_status.is_distinct_from(chain.c.before))
        .distinct()
    )


def _strange_steps() -> Select[Any]:
    steps = [(source.value, target.value) for source, target in MEDIA.steps()]
    step = tuple_(history.c.from_status, history.c.to_status)
    is_step = or_(*(step == tuple_(*pair) for pair in steps))
    return (
        select(history.c.subject_id.label("id"))
        .where(history.c.subject == "media", history.c.from_status.is_not(None), ~is_step)
        .distinct()
    )


PROMISES = (
    Promise(
        "media.values",
        "Every kind, status and failure stage is a known one.",
        "Media with a kind, status or failure stage that Nexus does not know.",
        RESTORE,
        _media(_against("kind", "status", "stage")),
    ),
    Promise(
        "media.failures",
        "What has failed has a stage, a code, a message and a time; what has not has none.",
        "Media that failed without a stage, code, message or time, or have one without having failed.",
        RESTORE,
        _media(_against("failed_has_stage", "failed_has_code", "failed_has_message", "failed_has_time")),
    ),
    Promise(
        "media.leases",
        "What is being worked on has a lease, and nothing else has.",
        "Media in work without a lease, or with a lease and not in work: no worker can finish them.",
        RESTORE,
        _media(_against("held_has_lease")),
    ),
    Promise(
        "media.text",
        "What is readable has text.",
        "Media that are readable and have no text.",
        "Delete them and add them again.",
        _media(or_(one_of(media.c.processing_status, PUBLISHED), _EMBED_FAILED), ~_HAS_TEXT),
    ),
    Promise(
        "media.leftovers",
        "What is not readable yet has no text of an earlier try.",
        "Media that are not readable and still have text of an earlier try.",
        REPORT,
        _media(
            or_(one_of(media.c.processing_status, _UNREAD), and_(_IS_FAILED, not_(_EMBED_FAILED))), _HAS_TEXT
        ),
    ),
    Promise(
        "media.held",
        "Every media is in a library.",
        "Media in no library: nobody can see or delete them.",
        "Add the same URL again to have it in a library.",
        _media(~exists(_HOLDERS)),
    ),
    Promise(
        "media.hashes",
        "Only files have a hash.",
        "Media by URL that have the hash of a file.",
        RESTORE,
        _media(_against("files_have_sha256")),
    ),
    Promise(
        "media.bytes",
        "No file is worked on before its bytes are there.",
        "Files that are worked on or readable, whose bytes were never checked.",
        REPORT,
        _media(
            one_of(media.c.kind, FILE_KINDS),
            one_of(media.c.processing_status, PUBLISHED | {Status.EXTRACTING}),
            media.c.file_sha256.is_(None),
        ),
    ),
    Promise(
        "users.default_library",
        "Every user has one default library.",
        "Users without a default library, or with several.",
        "One that is missing is made at the user's next request; several: restore a copy of the database.",
        offenders(select(users.c.id).where(_DEFAULTS.scalar_subquery() != 1)),
    ),
    Promise(
        "libraries.owner",
        "Every user administers his default library.",
        "Default libraries whose owner is not their admin.",
        RESTORE,
        offenders(select(libraries.c.id).where(libraries.c.is_default, ~_OWNER_IS_ADMIN)),
    ),
    Promise(
        "libraries.admin",
        "Every library has an admin.",
        "Libraries without an admin: nobody can change them.",
        RESTORE,
        offenders(select(libraries.c.id).where(~exists(_ADMINS.correlate(libraries)))),
    ),
    Promise(
        "libraries.private",
        "A default library has its owner alone.",
        "Default libraries that someone else can see.",
        "Find out who let him in, then restore a copy of the database.",
        offenders(
            select(libraries.c.id)
            .join(memberships, memberships.c.library_id == libraries.c.id)
            .where(libraries.c.is_default, memberships.c.user_id != libraries.c.owner_user_id)
            .distinct()
        ),
    ),
    Promise(
        "history.last",
        "Every history ends in the present status.",
        "Media whose history ends elsewhere than in their status: it was changed behind Nexus's back.",
        RESTORE,
        _media(func.coalesce(_LAST, "") != media.c.processing_status),
    ),
    Promise(
        "history.chain",
        "Every step of a history begins where the one before ended.",
        "Media whose history has a gap.",
        RESTORE,
        offenders(_broken_chains()),
    ),
    Promise(
        "history.steps",
        "Every step of a history is an edge of the table.",
        "Media whose history has a step that is not allowed.",
        RESTORE,
        offenders(_strange_steps()),
    ),
    Promise(
        "history.attempts",
        "Every attempt is in the history.",
        "Media whose number of attempts is not that of their history, so that a late result could pass for a new one.",
        RESTORE,
        _media(media.c.processing_attempts != _CLAIMS),
    ),
)
