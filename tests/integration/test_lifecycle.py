"""The lifecycle functions: what each changes, and that it changes nothing when it comes at the wrong time."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from structlog.testing import capture_logs

from nexus.app import App, build
from nexus.extract import Extraction
from nexus.media.files import locked
from nexus.media.lifecycle import (
    BACKLOG,
    DEFAULT_LEASE,
    claim_due,
    mark_failed,
    mark_ready_for_reading,
    release,
    worker_start_attempt,
    worker_start_embedding,
)
from nexus.media.texts import Found
from nexus.states.media import PUBLISHED, Kind, MediaStatus, Stage
from tests.kit.clock import SetClock
from tests.kit.media import (
    TEXTS,
    events_of,
    everything_of,
    fail_media,
    finish_embedding,
    history_of,
    new_file,
    new_media,
    publish_text,
    row_of,
    start_embedding,
    start_extraction,
    status_of,
    walk_media_to,
)
from tests.kit.settings import make_settings
from tests.kit.work import take_back_lost

FAILURE = ("failure_stage", "last_error_code", "last_error_message", "failed_at")


def logged(call: Callable[[], object]) -> list[str]:
    with capture_logs() as lines:
        call()
    return [line["event"] for line in lines]


# start


def test_starting_claims_a_pending_media_under_a_lease(app: App, clock: SetClock) -> None:
    media_id = new_media(app)
    clock.forward(seconds=3)
    with app.sessions.begin() as session:
        claim = worker_start_attempt(session, media_id, timedelta(seconds=20))
    row = row_of(app.sessions, media_id)
    assert claim == row
    assert (row.processing_status, row.status_before) == ("extracting", "pending")
    assert (row.processing_attempts, row.tries) == (1, 1)
    assert row.processing_started_at == row.updated_at == clock()
    assert row.lease_expires_at == clock() + timedelta(seconds=20)


@pytest.mark.parametrize("status", [status for status in MediaStatus if status is not MediaStatus.PENDING])
def test_starting_a_media_that_is_not_pending_changes_and_counts_nothing(
    app: App, status: MediaStatus
) -> None:
    media_id = new_media(app)
    walk_media_to(app, media_id, status)
    before = everything_of(app.sessions, media_id)
    with app.sessions.begin() as session, capture_logs() as lines:
        assert worker_start_attempt(session, media_id) is None
    assert [line["event"] for line in lines] == ["worker_start_attempt_noop"]
    assert everything_of(app.sessions, media_id) == before


def test_starting_a_media_that_does_not_exist_is_a_no_op(app: App) -> None:
    with app.sessions.begin() as session:
        assert worker_start_attempt(session, uuid4()) is None


def test_a_media_is_not_due_before_its_time(app: App, clock: SetClock) -> None:
    media_id = new_media(app)
    attempt = start_extraction(app, media_id)
    with app.sessions.begin() as session:
        release(session, media_id, attempt, "E_FETCH_FAILED", session.now + timedelta(seconds=10))
    clock.forward(seconds=9.999)
    with app.sessions.begin() as session:
        assert worker_start_attempt(session, media_id) is None
    clock.forward(seconds=0.001)
    assert start_extraction(app, media_id) == 2


def test_lifecycle_functions_never_commit(app: App) -> None:
    media_id = new_media(app)
    before = everything_of(app.sessions, media_id)

    def work() -> None:
        with app.sessions.begin() as session:
            claim = worker_start_attempt(session, media_id)
            assert mark_ready_for_reading(
                session,
                media_id,
                claim.processing_attempts,
                Found(Extraction.plain("t", *TEXTS), "tests"),
            )
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()
    assert everything_of(app.sessions, media_id) == before


@pytest.mark.parametrize("kind", [Kind.PDF, Kind.EPUB, Kind.TEXT])
def test_an_upload_without_its_bytes_is_not_due(app: App, kind: Kind) -> None:
    user = uuid4()
    waiting = new_file(app, user, None, kind=kind)
    arrived = new_file(app, user, "a" * 64, kind=kind)
    with app.sessions.begin() as session:
        assert worker_start_attempt(session, waiting) is None
        assert [row.id for row in claim_due(session, kind, user, 10)] == [arrived]
    assert status_of(app.sessions, waiting) is MediaStatus.PENDING


def test_claims_take_the_longest_waiting_media_of_the_asked_kinds_first(app: App, clock: SetClock) -> None:
    user = uuid4()
    new_media(app)
    new_media(app, user, kind="video")
    oldest = []
    for _ in range(3):
        oldest.append(new_media(app, user))
        clock.forward(seconds=1)
    with app.sessions.begin() as session:
        first = [row.id for row in claim_due(session, Kind.WEB_ARTICLE, user, 2)]
        second = [row.id for row in claim_due(session, Kind.WEB_ARTICLE, user, 2)]
    assert sorted(first) == sorted(oldest[:2])
    assert second == oldest[2:]
    assert [events_of(app.sessions, media_id) for media_id in oldest] == [["create", "start"]] * 3


# readable


def test_marking_readable_writes_text_title_and_time_at_once(app: App, clock: SetClock) -> None:
    media_id = new_media(app)
    attempt = start_extraction(app, media_id)
    clock.forward(seconds=5)
    assert publish_text(app, media_id, attempt)
    after = everything_of(app.sessions, media_id)
    assert after.row.processing_status == "ready_for_reading"
    assert after.row.processing_completed_at == clock()
    assert (after.row.lease_expires_at, after.row.tries, after.row.processing_attempts) == (None, 0, 1)
    assert after.row.title == "A title"
    assert after.texts == list(TEXTS)


@pytest.mark.parametrize("status", [status for status in MediaStatus if status is not MediaStatus.EXTRACTING])
def test_marking_readable_from_a_wrong_state_is_logged_and_writes_nothing(
    app: App, status: MediaStatus
) -> None:
    media_id = new_media(app)
    attempt = walk_media_to(app, media_id, status)
    before = everything_of(app.sessions, media_id)
    assert logged(lambda: publish_text(app, media_id, attempt, ("other",))) == ["unexpected_state"]
    assert everything_of(app.sessions, media_id) == before


@pytest.mark.parametrize("write", [publish_text, fail_media])
def test_a_result_that_is_written_twice_is_stored_once(
    app: App, write: Callable[[App, UUID, int], bool]
) -> None:
    """A worker writes again if it does not know whether its COMMIT succeeded."""
    media_id = new_media(app)
    attempt = start_extraction(app, media_id)
    assert write(app, media_id, attempt)
    before = everything_of(app.sessions, media_id)
    with capture_logs() as logs:
        assert write(app, media_id, attempt)
    assert [(line["event"], line["log_level"], line["repeated"]) for line in logs] == [
        ("unexpected_state", "info", True)
    ]
    assert everything_of(app.sessions, media_id) == before


def test_a_release_by_the_sweep_is_not_mistaken_for_its_workers(app: App, clock: SetClock) -> None:
    media_id = new_media(app)
    attempt = start_extraction(app, media_id)
    clock.forward(hours=1)
    assert take_back_lost(app.tools) == 1
    with app.sessions.begin() as session:
        assert not release(session, media_id, attempt, "E_FETCH_FAILED", session.now)


def lost_and_taken_over(app: App, clock: SetClock) -> tuple[UUID, int, int]:
    """A media whose worker froze, and whose second worker holds it now: the old and the new attempt."""
    media_id = new_media(app)
    old = start_extraction(app, media_id)
    clock.forward(hours=1)
    assert take_back_lost(app.tools) == 1
    return media_id, old, start_extraction(app, media_id)


def test_a_worker_that_lost_its_lease_can_write_nothing(app: App, clock: SetClock) -> None:
    media_id, old, new = lost_and_taken_over(app, clock)
    before = everything_of(app.sessions, media_id)
    assert not publish_text(app, media_id, old)
    assert not fail_media(app, media_id, old)
    with app.sessions.begin() as session:
        assert not release(session, media_id, old, "E_FETCH_FAILED", session.now)
        assert not release(session, media_id, old, None, session.now, counted=False)
        BACKLOG.renew(session, [(media_id, old)], session.now + timedelta(days=1))
    assert everything_of(app.sessions, media_id) == before
    assert publish_text(app, media_id, new)


def test_a_result_for_a_deleted_media_is_a_no_op(app: App) -> None:
    assert not publish_text(app, uuid4(), 1)
    assert not fail_media(app, uuid4(), 1)
    assert not fail_media(app, uuid4(), None)


# fail


def test_a_failure_sets_every_failure_field(app: App, clock: SetClock) -> None:
    media_id = new_media(app)
    attempt = start_extraction(app, media_id)
    clock.forward(seconds=7)
    assert fail_media(app, media_id, attempt, Stage.TRANSCRIBE, "E_TRANSCRIPT_UNAVAILABLE", "It has none.")
    row = row_of(app.sessions, media_id)
    assert row.processing_status == "failed"
    found = tuple(getattr(row, name) for name in FAILURE)
    assert found == ("transcribe", "E_TRANSCRIPT_UNAVAILABLE", "It has none.", clock())
    assert row.lease_expires_at is None
    assert history_of(app.sessions, media_id)[-1].error_code == "E_TRANSCRIPT_UNAVAILABLE"


@pytest.mark.parametrize("status", sorted(PUBLISHED - {MediaStatus.EMBEDDING}))
@pytest.mark.parametrize("with_attempt", [True, False])
def test_a_late_failure_never_overwrites_a_success(app: App, status: MediaStatus, with_attempt: bool) -> None:
    media_id = new_media(app)
    attempt = walk_media_to(app, media_id, status)
    before = everything_of(app.sessions, media_id)
    events = logged(lambda: fail_media(app, media_id, attempt if with_attempt else None))
    assert events == ["late_failure_ignored"]
    assert everything_of(app.sessions, media_id) == before


def test_the_late_failure_of_an_extraction_does_not_stop_the_embedding(app: App) -> None:
    media_id = new_media(app)
    attempt = walk_media_to(app, media_id, MediaStatus.EMBEDDING)
    before = everything_of(app.sessions, media_id)
    assert not fail_media(app, media_id, attempt - 1)
    assert everything_of(app.sessions, media_id) == before


def test_a_second_failure_keeps_the_first(app: App) -> None:
    media_id = new_media(app)
    attempt = walk_media_to(app, media_id, MediaStatus.FAILED)
    before = everything_of(app.sessions, media_id)
    fail_media(app, media_id, attempt, Stage.OTHER, "E_OTHER", "Something else.")
    assert everything_of(app.sessions, media_id) == before


@pytest.mark.parametrize("status", MediaStatus)
def test_a_failure_without_an_attempt_applies_only_to_a_pending_media(app: App, status: MediaStatus) -> None:
    media_id = new_file(app, uuid4(), "b" * 64)
    walk_media_to(app, media_id, status)
    before = everything_of(app.sessions, media_id)
    applied = fail_media(app, media_id, None, Stage.UPLOAD, "E_UPLOAD_FAILED", "It never came.")
    assert applied == (status is MediaStatus.PENDING)
    if applied:
        assert row_of(app.sessions, media_id).failure_stage == "upload"
    else:
        assert everything_of(app.sessions, media_id) == before


def test_a_failure_with_an_attempt_does_not_touch_a_pending_media(app: App, clock: SetClock) -> None:
    media_id = new_media(app)
    attempt = start_extraction(app, media_id)
    with app.sessions.begin() as session:
        release(session, media_id, attempt, "E_FETCH_FAILED", session.now)
    before = everything_of(app.sessions, media_id)
    assert not fail_media(app, media_id, attempt)
    assert everything_of(app.sessions, media_id) == before


# release, leases


def test_a_released_media_waits_and_keeps_counting_tries(app: App, clock: SetClock) -> None:
    media_id = new_media(app)
    for attempt in (1, 2, 3):
        assert start_extraction(app, media_id) == attempt
        later = clock() + timedelta(seconds=30)
        with app.sessions.begin() as session:
            assert release(session, media_id, attempt, "E_FETCH_FAILED", later)
        row = row_of(app.sessions, media_id)
        assert (row.processing_status, row.run_after, row.lease_expires_at) == ("pending", later, None)
        assert (row.processing_attempts, row.tries) == (attempt, attempt)
        clock.forward(seconds=30)


def test_a_claim_that_is_given_back_is_due_at_once_and_costs_no_try(app: App) -> None:
    media_id = new_media(app)
    attempt = start_extraction(app, media_id)
    with app.sessions.begin() as session:
        assert release(session, media_id, attempt, None, session.now, counted=False)
    row = row_of(app.sessions, media_id)
    assert (row.processing_status, row.tries, row.processing_attempts) == ("pending", 0, 1)
    assert start_extraction(app, media_id) == 2


def test_a_renewed_lease_does_not_expire(app: App, clock: SetClock) -> None:
    media_id = new_media(app)
    attempt = start_extraction(app, media_id)
    clock.forward(seconds=59)
    with app.sessions.begin() as session:
        BACKLOG.renew(session, [(media_id, attempt)], session.now + DEFAULT_LEASE)
    clock.forward(seconds=59)
    assert take_back_lost(app.tools) == 0
    clock.forward(seconds=1)
    assert take_back_lost(app.tools) == 1


def test_a_locked_row_does_not_block_the_renewal_of_other_leases(
    clean_postgres: str, tmp_path: Path, clock: SetClock
) -> None:
    app = build(make_settings(clean_postgres, tmp_path), clock)
    held, free = sorted([new_media(app), new_media(app)])
    attempts = {media_id: start_extraction(app, media_id) for media_id in (held, free)}
    before = row_of(app.sessions, held).lease_expires_at
    with locked(app.sessions, held), app.sessions.begin() as session:
        BACKLOG.renew(session, list(attempts.items()), session.now + timedelta(hours=1))
    assert row_of(app.sessions, held).lease_expires_at == before
    assert row_of(app.sessions, free).lease_expires_at == clock() + timedelta(hours=1)
    app.close()


@pytest.mark.parametrize("embedding", [False, True])
def test_a_dead_worker_costs_a_try_and_the_third_one_fails_the_media(
    app: App, clock: SetClock, embedding: bool
) -> None:
    media_id = new_media(app)
    home, claim = MediaStatus.PENDING, start_extraction
    if embedding:
        walk_media_to(app, media_id, MediaStatus.READY_FOR_READING)
        home, claim = MediaStatus.READY_FOR_READING, start_embedding
    for last in (False, False, True):
        claim(app, media_id)
        clock.forward(hours=1)
        assert take_back_lost(app.tools) == 1
        assert status_of(app.sessions, media_id) is (MediaStatus.FAILED if last else home)
    row = row_of(app.sessions, media_id)
    expected = ("embed", "E_EMBEDDING_TIMEOUT") if embedding else ("extract", "E_JOB_TIMEOUT")
    assert (row.failure_stage, row.last_error_code) == expected
    assert history_of(app.sessions, media_id)[-1].actor == "sweep"


# embedding


def test_an_embedding_is_claimed_counted_and_finished(app: App, clock: SetClock) -> None:
    media_id = new_media(app)
    walk_media_to(app, media_id, MediaStatus.READY_FOR_READING)
    clock.forward(seconds=1)
    attempt = start_embedding(app, media_id)
    row = row_of(app.sessions, media_id)
    assert (row.processing_status, row.processing_attempts, row.tries) == ("embedding", 2, 1)
    assert row.lease_expires_at is not None
    clock.forward(seconds=1)
    assert finish_embedding(app, media_id, attempt)
    row = row_of(app.sessions, media_id)
    assert (row.processing_status, row.processing_completed_at) == ("ready", clock())
    assert (row.lease_expires_at, row.tries) == (None, 0)
    assert everything_of(app.sessions, media_id).texts == list(TEXTS)


@pytest.mark.parametrize(
    "status", [status for status in MediaStatus if status is not MediaStatus.READY_FOR_READING]
)
def test_an_embedding_starts_only_from_ready_for_reading(app: App, status: MediaStatus) -> None:
    media_id = new_media(app)
    walk_media_to(app, media_id, status)
    before = everything_of(app.sessions, media_id)
    with app.sessions.begin() as session:
        assert worker_start_embedding(session, media_id) is None
    assert everything_of(app.sessions, media_id) == before


def test_a_released_embedding_stays_readable_and_a_stale_one_writes_nothing(
    app: App, clock: SetClock
) -> None:
    media_id = new_media(app)
    attempt = walk_media_to(app, media_id, MediaStatus.EMBEDDING)
    later = clock() + timedelta(seconds=10)
    with app.sessions.begin() as session:
        assert release(session, media_id, attempt, "E_EMBEDDING_FAILED", later)
    assert status_of(app.sessions, media_id) is MediaStatus.READY_FOR_READING
    with app.sessions.begin() as session:
        assert worker_start_embedding(session, media_id) is None
    clock.forward(seconds=10)
    start_embedding(app, media_id)
    before = everything_of(app.sessions, media_id)
    assert not finish_embedding(app, media_id, attempt)
    assert everything_of(app.sessions, media_id) == before


# history


def test_every_move_leaves_one_row_of_history(app: App, clock: SetClock) -> None:
    user = uuid4()
    media_id = new_media(app, user)
    attempt = start_extraction(app, media_id)
    clock.forward(seconds=1)
    with app.sessions.begin() as session:
        release(session, media_id, attempt, "E_FETCH_FAILED", session.now)
    publish_text(app, media_id, start_extraction(app, media_id))
    attempt = start_embedding(app, media_id)
    with app.sessions.begin() as session:
        mark_failed(session, media_id, Stage.EMBED, "E_EMBEDDING_FAILED", "No.", attempt)
    found = [
        (entry.event, entry.from_status, entry.to_status, entry.actor, entry.attempt, entry.error_code)
        for entry in history_of(app.sessions, media_id)
    ]
    assert found == [
        ("create", None, "pending", str(user), 0, None),
        ("start", "pending", "extracting", "worker", 1, None),
        ("release", "extracting", "pending", "worker", 1, "E_FETCH_FAILED"),
        ("start", "pending", "extracting", "worker", 2, None),
        ("readable", "extracting", "ready_for_reading", "worker", 2, None),
        ("embed", "ready_for_reading", "embedding", "worker", 3, None),
        ("fail", "embedding", "failed", "worker", 3, "E_EMBEDDING_FAILED"),
    ]
    assert [entry.at for entry in history_of(app.sessions, media_id)][:3] == [
        clock() - timedelta(seconds=1),
        clock() - timedelta(seconds=1),
        clock(),
    ]
    assert {entry.subject for entry in history_of(app.sessions, media_id)} == {"media"}
