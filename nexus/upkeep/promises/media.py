"""What must hold of media."""

from __future__ import annotations

from sqlalchemy import and_, exists, not_, or_, select

from nexus.db.tables import fragments, library_media, media, one_of
from nexus.states.media import FILE_KINDS, PUBLISHED, Stage, Status
from nexus.upkeep.promises.promise import REPORT, RESTORE, Promise, against, rows

_HAS_TEXT = exists(select(fragments.c.media_id).where(fragments.c.media_id == media.c.id).correlate(media))
_IS_FAILED = media.c.processing_status == Status.FAILED.value
_EMBED_FAILED = and_(_IS_FAILED, media.c.failure_stage == Stage.EMBED.value)
_UNREAD = frozenset({Status.PENDING, Status.EXTRACTING})
_HOLDERS = select(library_media.c.media_id).where(library_media.c.media_id == media.c.id).correlate(media)

PROMISES = (
    Promise(
        "media.values",
        "Every kind, status and failure stage is a known one.",
        "Media with a kind, status or failure stage that Nexus does not know.",
        RESTORE,
        rows(media, against(media, "kind", "status", "stage")),
    ),
    Promise(
        "media.failures",
        "What has failed has a stage, a code, a message and a time; what has not has none.",
        "Media that failed without a stage, code, message or time, or have one without having failed.",
        RESTORE,
        rows(
            media,
            against(media, "failed_has_stage", "failed_has_code", "failed_has_message", "failed_has_time"),
        ),
    ),
    Promise(
        "media.leases",
        "What is being worked on has a lease, and nothing else has.",
        "Media in work without a lease, or with a lease and not in work: no worker can finish them.",
        RESTORE,
        rows(media, against(media, "held_has_lease")),
    ),
    Promise(
        "media.text",
        "What is readable has text.",
        "Media that are readable and have no text.",
        "Delete them and add them again.",
        rows(media, or_(one_of(media.c.processing_status, PUBLISHED), _EMBED_FAILED), ~_HAS_TEXT),
    ),
    Promise(
        "media.leftovers",
        "What is not readable yet has no text of an earlier try.",
        "Media that are not readable and still have text of an earlier try.",
        REPORT,
        rows(
            media,
            or_(one_of(media.c.processing_status, _UNREAD), and_(_IS_FAILED, not_(_EMBED_FAILED))),
            _HAS_TEXT,
        ),
    ),
    Promise(
        "media.held",
        "Every media is in a library.",
        "Media in no library: nobody can see or delete them.",
        "Add the same URL again to have it in a library.",
        rows(media, ~exists(_HOLDERS)),
    ),
    Promise(
        "media.hashes",
        "Only files have a hash.",
        "Media by URL that have the hash of a file.",
        RESTORE,
        rows(media, against(media, "files_have_sha256")),
    ),
    Promise(
        "media.bytes",
        "No file is worked on before its bytes are there.",
        "Files that are worked on or readable, whose bytes were never checked.",
        REPORT,
        rows(
            media,
            one_of(media.c.kind, FILE_KINDS),
            one_of(media.c.processing_status, PUBLISHED | {Status.EXTRACTING}),
            media.c.file_sha256.is_(None),
        ),
    ),
)
