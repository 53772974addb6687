"""Rows: none is stuck or duplicated, no text is partial, and no failure lacks a reason."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from chaos.invariants import Violation
from chaos.invariants.database import Database, Row

READABLE = (
    "(m.processing_status IN ('ready_for_reading', 'embedding', 'ready') "
    "OR (m.processing_status = 'failed' AND m.failure_stage = 'embed'))"
)
#: Work that is running, or due now or after a backoff. An upload that never arrived just waits.
IN_FLIGHT = {
    "item": "SELECT id, processing_status AS state FROM media WHERE processing_status IN ('extracting', 'embedding')"
    " OR (processing_status = 'pending' AND (kind IN ('web_article', 'video') OR file_sha256 IS NOT NULL))",
    "refresh": "SELECT media_id AS id, 'asked for' AS state FROM refreshes WHERE error_code IS NULL",
    "job": "SELECT id, status AS state FROM jobs WHERE status IN ('FETCHING', 'EXTRACTING', 'GENERATING')",
}
TWICE = {
    "address": "SELECT kind || ' ' || canonical_url AS what FROM media WHERE canonical_url IS NOT NULL"
    " GROUP BY kind, canonical_url HAVING count(*) > 1",
    "file": "SELECT file_sha256 AS what FROM media WHERE file_sha256 IS NOT NULL"
    " GROUP BY created_by_user_id, kind, file_sha256 HAVING count(*) > 1",
    "default library": "SELECT count(*) AS what FROM libraries WHERE is_default"
    " GROUP BY owner_user_id HAVING count(*) > 1",
}
#: What must never be true of an item.
NEVER = {
    "a readable item has no text": f"SELECT m.id FROM media m WHERE {READABLE}"
    " AND NOT EXISTS (SELECT 1 FROM fragments f WHERE f.media_id = m.id AND f.revision = m.revision)",
    "a readable item has no document": f"SELECT m.id FROM media m WHERE {READABLE}"
    " AND NOT EXISTS (SELECT 1 FROM revisions d WHERE d.media_id = m.id AND d.number = m.revision)",
    "a library holds a version that is gone": "SELECT l.media_id AS id FROM library_media l"
    " LEFT JOIN revisions d ON d.media_id = l.media_id AND d.number = l.revision"
    " WHERE l.revision IS NOT NULL AND d.number IS NULL",
    "an unreadable item has text left": f"SELECT m.id FROM media m WHERE NOT {READABLE}"
    " AND EXISTS (SELECT 1 FROM fragments f WHERE f.media_id = m.id)",
    "an unreadable item has a document left": f"SELECT m.id FROM media m WHERE NOT {READABLE}"
    " AND EXISTS (SELECT 1 FROM revisions d WHERE d.media_id = m.id)",
    "an unreadable item has passages left": f"SELECT m.id FROM media m WHERE NOT {READABLE}"
    " AND EXISTS (SELECT 1 FROM chunks c WHERE c.media_id = m.id)",
    "a passage has no fragment": "SELECT c.media_id AS id FROM chunks c LEFT JOIN fragments f"
    " ON f.media_id = c.media_id AND f.revision = c.revision AND f.position = c.fragment"
    " WHERE f.media_id IS NULL AND c.position >= 0",
    "a text can't be found by its title": "SELECT d.media_id AS id FROM revisions d WHERE NOT EXISTS"
    " (SELECT 1 FROM chunks c WHERE c.media_id = d.media_id AND c.revision = d.number AND c.position = -1)",
    "a vector is of no passage": "SELECT v.media_id AS id FROM vectors v"
    " WHERE NOT EXISTS (SELECT 1 FROM chunks c WHERE c.media_id = v.media_id AND c.id = v.chunk_id)",
    "an item is ready without all of its vectors": "SELECT m.id FROM media m JOIN chunks c ON c.media_id = m.id"
    " AND c.revision = m.revision WHERE m.processing_status = 'ready' AND c.length > 0"
    " AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.media_id = m.id AND v.chunk_id = c.id)",
    "a failed item has no reason": "SELECT id FROM media WHERE processing_status = 'failed'"
    " AND (failure_stage IS NULL OR coalesce(last_error_code, '') = '' OR coalesce(last_error_message, '') = '')",
    "an item that has not failed has a reason": "SELECT id FROM media WHERE processing_status <> 'failed'"
    " AND (failure_stage IS NOT NULL OR last_error_code IS NOT NULL)",
    "a hashed file is no item's file": "SELECT m.id FROM media m WHERE m.file_sha256 IS NOT NULL"
    " AND NOT EXISTS (SELECT 1 FROM media_file f WHERE f.media_id = m.id)",
    "an item is in no library": "SELECT m.id FROM media m"
    " WHERE NOT EXISTS (SELECT 1 FROM library_media l WHERE l.media_id = m.id)",
    "a failed job has no reason": "SELECT id FROM jobs WHERE status = 'FAILED' AND NOT (error_message LIKE '[FETCH]%'"
    " OR error_message LIKE '[EXTRACT]%' OR error_message LIKE '[GENERATE]%')",
    "a job is ready without its text": "SELECT id FROM jobs WHERE status IN ('READY_TO_GENERATE', 'SAVED')"
    " AND (extracted_at IS NULL OR extracted_title IS NULL OR extracted_text IS NULL)",
    "a saved job has no story": "SELECT j.id FROM jobs j WHERE j.status = 'SAVED'"
    " AND NOT EXISTS (SELECT 1 FROM stories s WHERE s.id = j.story_id AND s.job_id = j.id)",
}


def in_flight(database: Database) -> list[str]:
    return [
        f"{what} {row['id']} is {row['state']}"
        for what, sql in IN_FLIGHT.items()
        for row in database.rows(sql)
    ]


def check(database: Database) -> Iterator[Violation]:
    for about in in_flight(database):
        yield Violation("nothing is stuck", about)
    for what, sql in TWICE.items():
        for row in database.rows(sql):
            yield Violation("nothing is there twice", f"{what}: {row['what']}")
    for what, sql in NEVER.items():
        for row in database.rows(sql):
            yield Violation("nothing is half done", f"{what}: {row['id']}")
    yield from _broken_texts(database)


def _broken_texts(database: Database) -> Iterator[Violation]:
    """Fragments have no gaps; between the chunks of one, only white space is left out."""
    passages: dict[tuple[str, int, int], list[Row]] = defaultdict(list)
    for row in database.rows(
        'SELECT media_id, revision, fragment, start, "end" AS stop FROM chunks ORDER BY start'
    ):
        passages[row["media_id"], row["revision"], row["fragment"]].append(row)
    positions: dict[tuple[str, int], list[int]] = defaultdict(list)
    for row in database.rows("SELECT media_id, revision, position, text FROM fragments ORDER BY 1, 2, 3"):
        text = row["media_id"], row["revision"]
        positions[text].append(row["position"])
        if _left_out(row["text"], passages[*text, row["position"]]).strip():
            yield Violation("nothing is half done", f"passages of {row['media_id']} leave out some text")
    for (media_id, _), found in positions.items():
        if found != list(range(found[0], found[0] + len(found))):
            yield Violation("nothing is half done", f"the text of {media_id} has a gap")


def _left_out(text: str, passages: list[Row]) -> str:
    rest, done = "", 0
    for one in passages:
        rest += text[done : one["start"]]
        done = max(done, one["stop"])
    return rest + text[done:]
