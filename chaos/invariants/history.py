"""History: every row is a legal edge, begins where the previous one ended, and attempts only increase."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from chaos.invariants import Violation
from chaos.invariants.database import Database, Row

#: The tables of the specification, written again: event, from, to.
MEDIA = {
    "create": ({None}, "pending"),
    "start": ({"pending"}, "extracting"),
    "readable": ({"extracting"}, "ready_for_reading"),
    "embed": ({"ready_for_reading"}, "embedding"),
    "embedded": ({"embedding"}, "ready"),
    "release": ({"extracting"}, "pending"),
    "release_embedding": ({"embedding"}, "ready_for_reading"),
    "fail": ({"pending", "extracting", "embedding"}, "failed"),
    "retry": ({"failed"}, "pending"),
    "retry_embedding": ({"failed"}, "ready_for_reading"),
}
JOB = {
    "create": ({None}, "QUEUED"),
    "fetch": ({"QUEUED", "FETCHING"}, "FETCHING"),
    "fetched": ({"FETCHING"}, "EXTRACTING"),
    "claim_extraction": ({"FETCHING", "EXTRACTING"}, "EXTRACTING"),
    "extracted": ({"EXTRACTING"}, "READY_TO_GENERATE"),
    "adopt": ({"QUEUED"}, "READY_TO_GENERATE"),
    "generate": ({"EXTRACTED", "READY_TO_GENERATE", "GENERATING"}, "GENERATING"),
    "saved": ({"GENERATING"}, "SAVED"),
    "fail": ({"QUEUED", "FETCHING", "EXTRACTING", "EXTRACTED", "READY_TO_GENERATE", "GENERATING"}, "FAILED"),
    "manual_entry": ({"QUEUED", "EXTRACTING", "FAILED"}, "EXTRACTING"),
    "regenerate": ({"SAVED", "FAILED"}, "READY_TO_GENERATE"),
    "retry": ({"FAILED"}, "QUEUED"),
}
EDGES = {"media": MEDIA, "job": JOB}
#: Events that begin an attempt and make earlier results stale, even entering text by hand during an extraction.
BEGINS = {
    "media": {"start", "embed"},
    "job": {"fetch", "claim_extraction", "generate", "manual_entry"},
}
_NOW = {
    "media": "SELECT id, processing_status AS status, processing_attempts AS attempt FROM media",
    "job": "SELECT id, status, attempt FROM jobs",
}
_HISTORY = (
    "SELECT subject, subject_id, event, from_status, to_status, attempt FROM history"
    " WHERE subject IN ('media', 'job') ORDER BY subject, subject_id, id"
)


def check(database: Database) -> Iterator[Violation]:
    now = {(subject, row["id"]): row for subject, sql in _NOW.items() for row in database.rows(sql)}
    for (subject, subject_id), rows in groupby(
        database.rows(_HISTORY), lambda row: (row["subject"], row["subject_id"])
    ):
        steps = list(rows)
        for what in _broken(subject, steps):
            yield Violation("history is legal", f"{subject} {subject_id}: {what}")
        found = now.pop((subject, subject_id), None)
        if found is None:
            yield Violation("history is legal", f"{subject} {subject_id} is gone and has a history")
        elif (found["status"], found["attempt"]) != (steps[-1]["to_status"], steps[-1]["attempt"]):
            yield Violation("history is legal", f"{subject} {subject_id} is not where its history ends")
    for subject, subject_id in now:
        yield Violation("history is legal", f"{subject} {subject_id} has no history")


def _broken(subject: str, steps: list[Row]) -> Iterator[str]:
    status, attempt = None, 0
    for step in steps:
        event = step["event"]
        sources, target = EDGES[subject].get(event, (set(), None))
        if step["from_status"] not in sources or step["to_status"] != target:
            yield f"{event} from {step['from_status']} to {step['to_status']} is no edge"
        if step["from_status"] != status:
            yield f"{event} begins at {step['from_status']}, but the step before ended at {status}"
        wanted = attempt + (event in BEGINS[subject])
        if step["attempt"] != wanted:
            yield f"{event} has attempt {step['attempt']} and not {wanted}"
        status, attempt = step["to_status"], step["attempt"]
