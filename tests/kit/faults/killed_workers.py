"""Workers that are killed at work, and the promises that are kept all the same."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from nexus.states.media import MediaStatus
from tests.kit.installation import Nexus, count_in_status, submit_media
from tests.kit.media import MediaRecord, everything_of, row_of
from tests.kit.plugins import extract_by_url
from tests.kit.waiting import eventually

KILLS = 20
IN_FLIGHT = 10


def kill_twenty_workers(nexus: Nexus) -> list[UUID]:
    """Each is killed while it works on something that can't end, among others that end at once."""
    ids: list[UUID] = []
    for _ in range(KILLS):
        missing = max(IN_FLIGHT - count_in_status(nexus, MediaStatus.PENDING), 0)
        ids += submit_media(nexus, *["gated", "ok"] * (missing // 2 + 1))
        worker = nexus.worker()
        eventually(lambda pid=worker.pid: _holds_gated(nexus, pid), f"{worker.name} is at work")
        worker.kill()
    return ids


def _holds_gated(nexus: Nexus, pid: int) -> bool:
    begun = {start.media_id for start in nexus.starts() if start.pid == pid}
    return any("/gated/" in row_of(nexus.app.sessions, media_id).canonical_url for media_id in begun)


def check_only_the_killed_timed_out(found: list[MediaRecord]) -> None:
    """The sweep took back what each killed worker held, and gave up only on what had been held three times."""
    timeouts = [entry for one in found for entry in one.history if entry.error_code == "E_JOB_TIMEOUT"]
    assert len(timeouts) >= KILLS
    assert {entry.actor for entry in timeouts} == {"sweep"}
    failed = [one.row for one in found if one.row.processing_status == MediaStatus.FAILED]
    assert {(row.last_error_code, row.tries) for row in failed} <= {("E_JOB_TIMEOUT", 3)}


def check_kept_promises(nexus: Nexus, ids: Iterable[UUID]) -> list[MediaRecord]:
    """Whatever happened to the workers: every media has reached an end, and no step was taken twice."""
    started = nexus.starts()
    assert len({(start.media_id, start.attempt) for start in started}) == len(started), "started twice"
    found = [everything_of(nexus.app.sessions, media_id) for media_id in ids]
    for one in found:
        attempts = {start.attempt for start in started if start.media_id == one.row.id}
        _check_way(one, attempts)
    return found


def _check_way(one: MediaRecord, started: set[int]) -> None:
    row, events = one.row, [entry.event for entry in one.history]
    attempts = [entry.attempt for entry in one.history if entry.event == "start"]
    assert attempts == list(range(1, row.processing_attempts + 1))
    assert started <= set(attempts), "an extractor began without a claim"
    ways = ["create"] + ["start", "release"] * (len(attempts) - 1) + ["start"]
    last = one.history[-1]
    if row.processing_status == MediaStatus.READY_FOR_READING:
        assert events == [*ways, "readable"]
        assert last.attempt in started
        assert one.texts == extract_by_url.texts(last.attempt)
    else:
        assert row.processing_status == MediaStatus.FAILED
        assert events == [*ways, "fail"]
        assert one.texts == []
    assert row.lease_expires_at is None
