"""Promises about media."""

from __future__ import annotations

from sqlalchemy import and_, exists, not_, or_, select

from nexus.db.tables import library_media, media, one_of, revisions
from nexus.states.media import FILE_KINDS, PUBLISHED, MediaStatus, Stage
from nexus.upkeep.promises.promise import REPORT, RESTORE, Promise, against, rows

_PUBLIC = (revisions.c.media_id == media.c.id, revisions.c.private_to.is_(None))
_HAS_TEXT = exists(select(revisions.c.media_id).where(*_PUBLIC).correlate(media))
_HAS_BASE = and_(
    *(
        exists(select(revisions.c.media_id).where(*_PUBLIC, revisions.c.number == number).correlate(media))
        for number in (media.c.revision, media.c.newest_revision)
    )
)
_IS_FAILED = media.c.processing_status == MediaStatus.FAILED.value
_EMBED_FAILED = and_(_IS_FAILED, media.c.failure_stage == Stage.EMBED.value)
_UNREAD = frozenset({MediaStatus.PENDING, MediaStatus.EXTRACTING})
_HOLDERS = select(library_media.c.media_id).where(library_media.c.media_id == media.c.id).correlate(media)

PROMISES = (
    Promise(
        "media.values",
        "Every item has a known kind, status and failure stage.",
        "Items with a kind, status or failure stage that Nexus does not know.",
        RESTORE,
        rows(media, against(media, "kind", "status", "stage")),
    ),
    Promise(
        "media.failures",
        "Failed items have a stage, a code, a message and a time; all others have none.",
        "Failed items without a stage, code, message or time, or items that have one and did not fail.",
        RESTORE,
        rows(
            media,
            against(media, "failed_has_stage", "failed_has_code", "failed_has_message", "failed_has_time"),
        ),
    ),
    Promise(
        "media.leases",
        "Items in work have a lease, and no others have one.",
        "Items in work without a lease, or with a lease but not in work. No worker can finish them.",
        RESTORE,
        rows(media, against(media, "held_has_lease")),
    ),
    Promise(
        "media.text",
        "Every readable item has text.",
        "Readable items without text.",
        "Delete them and add them again.",
        rows(media, or_(one_of(media.c.processing_status, PUBLISHED), _EMBED_FAILED), ~_HAS_BASE),
    ),
    Promise(
        "media.leftovers",
        "No item that is not readable has text of an earlier attempt.",
        "Items that are not readable but still have text of an earlier attempt.",
        REPORT,
        rows(
            media,
            or_(one_of(media.c.processing_status, _UNREAD), and_(_IS_FAILED, not_(_EMBED_FAILED))),
            _HAS_TEXT,
        ),
    ),
    Promise(
        "media.held",
        "Every item is in a library.",
        "Items in no library, which nobody can see or delete.",
        "Add the same URL again to put it into a library.",
        rows(media, ~exists(_HOLDERS)),
    ),
    Promise(
        "media.hashes",
        "Only files have a hash.",
        "Items added by URL that have the hash of a file.",
        RESTORE,
        rows(media, against(media, "files_have_sha256")),
    ),
    Promise(
        "media.bytes",
        "No file is read before its bytes have arrived.",
        "Files in work or readable whose bytes were never checked.",
        REPORT,
        rows(
            media,
            one_of(media.c.kind, FILE_KINDS),
            one_of(media.c.processing_status, PUBLISHED | {MediaStatus.EXTRACTING}),
            media.c.file_sha256.is_(None),
        ),
    ),
)
