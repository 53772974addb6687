"""The pipeline: one function does all the work, and every way it can end is written down."""

from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from structlog.testing import capture_logs

from nexus.app import App
from nexus.errors import (
    ExtractionFailed,
    FetchBusy,
    FetchFailed,
    FetchRateLimited,
    TranscriptUnavailable,
    UploadFailed,
)
from nexus.extract import AVAILABLE_EXTRACTORS, Extraction, Source
from nexus.media import lifecycle, runner, submit
from nexus.media.runner import Outcome, maybe_enqueue_extraction
from nexus.states.media import Kind, Status
from nexus.upkeep import dispatch, sweep
from tests.support import SetClock, history_of, new_media, row_of
from tests.walks import TEXTS, events_of, good, new_file, put, start, status_of, whole


class Told:
    """A queue that remembers what it was told."""

    def __init__(self, idle: bool = True) -> None:
        self.media: list[UUID] = []
        self.workers_look = False
        self._idle = idle

    def announce(self, media_id: UUID, request_id: str | None) -> bool:
        self.media.append(media_id)
        return True

    def idle(self) -> bool:
        return self._idle


def failing(error: BaseException) -> None:
    def extract(source: Source) -> Extraction:
        raise error

    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = extract


def test_a_good_extractor_makes_a_media_readable(app: App) -> None:
    seen: list[Source] = []

    def extract(source: Source) -> Extraction:
        seen.append(source)
        assert status_of(app.sessions, source.media_id) is Status.EXTRACTING
        return Extraction.plain("A \x00title", "one\x00", "two")

    AVAILABLE_EXTRACTORS[Kind.VIDEO] = extract
    media_id = new_media(app, url="https://youtu.be/dQw4w9WgXcQ", kind="video")
    assert runner.run(app.tools, media_id, "request-1") is Outcome.READABLE
    canonical = "https://www.youtube.com/watch?v=dQw4w9WgXcQ"
    assert seen == [Source(media_id, Kind.VIDEO, canonical, "youtube", "dQw4w9WgXcQ", 1, seen[0].bench)]
    after = whole(app.sessions, media_id)
    assert (after.row.title, after.texts) == ("A title", ["one", "two"])
    assert after.row.processing_status == "ready_for_reading"


def test_no_transaction_is_open_while_an_extractor_runs(app: App) -> None:
    """On SQLite the test would wait for the lock here, and fail."""
    other = []

    def extract(source: Source) -> Extraction:
        other.append(new_media(app))
        return good(source)

    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = extract
    assert runner.run(app.tools, new_media(app)) is Outcome.READABLE
    assert status_of(app.sessions, other[0]) is Status.PENDING


def test_running_twice_does_the_work_once(app: App) -> None:
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = good
    media_id = new_media(app)
    assert runner.run(app.tools, media_id) is Outcome.READABLE
    before = whole(app.sessions, media_id)
    assert runner.run(app.tools, media_id) is Outcome.NOTHING
    assert whole(app.sessions, media_id) == before


@pytest.mark.parametrize(
    ("error", "stage"),
    [
        (ExtractionFailed("No text."), "extract"),
        (TranscriptUnavailable(), "transcribe"),
        (UploadFailed(), "upload"),
    ],
)
def test_an_extractor_that_says_no_fails_the_media_at_once(
    app: App, error: ExtractionFailed, stage: str
) -> None:
    failing(error)
    media_id = new_media(app)
    assert runner.run(app.tools, media_id) is Outcome.FAILED
    row = row_of(app.sessions, media_id)
    assert (row.failure_stage, row.last_error_code, row.last_error_message) == (
        stage,
        error.code,
        error.message,
    )


def test_a_crashing_extractor_fails_its_media_and_leaks_nothing(app: App) -> None:
    failing(ValueError("the secret text of the source"))
    media_id = new_media(app)
    with capture_logs() as lines:
        assert runner.run(app.tools, media_id) is Outcome.FAILED
    row = row_of(app.sessions, media_id)
    assert (row.failure_stage, row.last_error_code) == ("extract", "E_EXTRACTION_FAILED")
    assert "secret" not in row.last_error_message
    assert "secret" not in str(lines)
    assert [line["reason"] for line in lines if line["event"] == "extractor_crashed"] == ["ValueError"]


def test_a_transient_failure_is_tried_three_times_with_growing_waits(app: App, clock: SetClock) -> None:
    failing(FetchFailed())
    media_id = new_media(app)
    waits = []
    for _ in range(2):
        assert runner.run(app.tools, media_id) is Outcome.RELEASED
        row = row_of(app.sessions, media_id)
        assert row.processing_status == "pending"
        assert row.last_error_code is None
        waits.append((row.run_after - clock()).total_seconds())
        assert runner.run(app.tools, media_id) is Outcome.NOTHING
        clock.time = row.run_after
    assert 2.5 <= waits[0] <= 5.0 <= waits[1] <= 10.0
    assert runner.run(app.tools, media_id) is Outcome.FAILED
    row = row_of(app.sessions, media_id)
    assert (row.last_error_code, row.processing_attempts, row.tries) == ("E_FETCH_FAILED", 3, 3)
    assert events_of(app.sessions, media_id) == ["create", *["start", "release"] * 2, "start", "fail"]


def test_a_manual_retry_gives_three_more_tries(app: App, clock: SetClock) -> None:
    failing(FetchFailed())
    user = uuid4()
    media_id = new_media(app, user)
    for _ in range(2):
        outcomes = []
        for _ in range(3):
            outcomes.append(runner.run(app.tools, media_id))
            clock.forward(minutes=1)
        assert outcomes == [Outcome.RELEASED, Outcome.RELEASED, Outcome.FAILED]
        with app.sessions.begin() as session:
            lifecycle.retry_media(session, media_id, user)
    assert row_of(app.sessions, media_id).processing_attempts == 6


def test_backoff_doubles_and_stays_between_half_and_all_of_it() -> None:
    for tries in (1, 2, 3):
        most = timedelta(seconds=5 * 2 ** (tries - 1))
        found = [lifecycle.backoff(5, tries) for _ in range(100)]
        assert all(most / 2 <= wait <= most for wait in found)
        assert len(set(found)) > 1


def test_a_result_that_comes_too_late_is_thrown_away(app: App, clock: SetClock) -> None:
    media_id = new_media(app)

    def slow(source: Source) -> Extraction:
        clock.forward(hours=1)
        assert sweep.run(app.tools, Told()).released == 1
        clock.forward(minutes=1)
        start(app, media_id)
        return good(source)

    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = slow
    assert runner.run(app.tools, media_id) is Outcome.STALE
    after = whole(app.sessions, media_id)
    assert (after.row.processing_status, after.row.processing_attempts, after.texts) == ("extracting", 2, [])


@pytest.mark.parametrize("error", [ExtractionFailed(), FetchFailed(), ValueError()])
def test_a_failure_that_comes_too_late_is_ignored(app: App, clock: SetClock, error: Exception) -> None:
    media_id = new_media(app)

    def slow(source: Source) -> Extraction:
        clock.forward(hours=1)
        sweep.run(app.tools, Told())
        clock.forward(minutes=1)
        AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = good
        assert runner.run(app.tools, media_id) is Outcome.READABLE
        raise error

    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = slow
    assert runner.run(app.tools, media_id) is Outcome.STALE
    after = whole(app.sessions, media_id)
    assert (after.row.processing_status, after.texts) == ("ready_for_reading", list(TEXTS))


# without an extractor


def test_without_an_extractor_nothing_happens_and_nothing_changes(app: App) -> None:
    media_id = new_media(app)
    before = whole(app.sessions, media_id)
    told = Told()
    assert runner.run(app.tools, media_id) is Outcome.NOTHING
    assert not maybe_enqueue_extraction(told, Kind.WEB_ARTICLE, media_id, None)
    assert sweep.run(app.tools, told) == sweep.Swept(0, 0)
    assert told.media == []
    assert whole(app.sessions, media_id) == before


def test_an_extractor_of_another_kind_does_not_count(app: App) -> None:
    AVAILABLE_EXTRACTORS[Kind.VIDEO] = good
    media_id = new_media(app)
    before = whole(app.sessions, media_id)
    assert runner.run(app.tools, media_id) is Outcome.NOTHING
    assert not maybe_enqueue_extraction(Told(), Kind.WEB_ARTICLE, media_id, None)
    assert whole(app.sessions, media_id) == before


def test_a_media_that_does_not_exist_is_nothing_to_do(app: App) -> None:
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = good
    assert dispatch.run(app.tools, uuid4()) is Outcome.NOTHING


def test_with_an_extractor_work_is_announced_after_the_commit(app: App) -> None:
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = good

    class Looking(Told):
        def announce(self, media_id: UUID, request_id: str | None) -> bool:
            assert status_of(app.sessions, media_id) is Status.PENDING
            return super().announce(media_id, request_id)

    told, user = Looking(), uuid4()
    first = submit.url(app.sessions, told, {}, user, "web_article", "https://example.com/x")
    again = submit.url(app.sessions, told, {}, user, "web_article", "https://example.com/x")
    assert (first.created, first.enqueued, again.created, again.enqueued) == (True, True, False, True)
    assert told.media == [first.media_id] * 2


def test_what_is_being_worked_on_is_not_announced_again(app: App) -> None:
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = good
    told, user = Told(), uuid4()
    first = submit.url(app.sessions, told, {}, user, "web_article", "https://example.com/x")
    put(app, first.media_id, Status.EXTRACTING)
    assert not submit.url(app.sessions, told, {}, user, "web_article", "https://example.com/x").enqueued


# the sweep


def test_the_sweep_announces_due_work_that_was_forgotten(app: App, clock: SetClock) -> None:
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = AVAILABLE_EXTRACTORS[Kind.PDF] = good
    user = uuid4()
    due = new_media(app, user)
    new_file(app, user, None)
    arrived = new_file(app, user, "d" * 64)
    put(app, new_media(app, user), Status.READY_FOR_READING)
    waiting = new_media(app, user)
    with app.sessions.begin() as session:
        claim = lifecycle.worker_start_attempt(session, waiting)
        lifecycle.release(
            session, waiting, claim.processing_attempts, "E_X", session.now + timedelta(minutes=1)
        )
    told = Told()
    assert sweep.run(app.tools, told) == sweep.Swept(0, 2)
    assert sorted(told.media) == sorted([due, arrived])
    clock.forward(minutes=1)
    assert sweep.run(app.tools, told).announced == 3


def test_the_sweep_reminds_a_busy_queue_only_of_what_is_overdue_and_little_of_it(
    app: App, clock: SetClock
) -> None:
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = good
    user = uuid4()
    for _ in range(sweep.REMINDERS_WHILE_BUSY + 5):
        new_media(app, user)
    assert sweep.run(app.tools, Told(idle=False)) == sweep.Swept(0, 0)
    clock.forward(seconds=sweep.OVERDUE.total_seconds())
    assert sweep.run(app.tools, Told(idle=False)) == sweep.Swept(0, sweep.REMINDERS_WHILE_BUSY)


def test_the_sweep_reminds_nobody_who_looks_himself(app: App) -> None:
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = good
    new_media(app)
    assert sweep.run(app.tools, app.queue) == sweep.Swept(0, 0)


def test_the_sweep_stops_reminding_when_it_is_told_to_stop(app: App) -> None:
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = good
    new_media(app)
    assert sweep.run(app.tools, Told(), stopped=lambda: True) == sweep.Swept(0, 0)


def test_the_sweep_frees_every_lease_whose_worker_is_gone(app: App, clock: SetClock) -> None:
    user = uuid4()
    held = [new_media(app, user) for _ in range(sweep.BATCH + 5)]
    with app.sessions.begin() as session:
        assert len(lifecycle.claim_due(session, Kind.WEB_ARTICLE, user, len(held))) == len(held)
    clock.forward(minutes=2)
    assert sweep.run(app.tools, Told()).released == len(held)
    assert {status_of(app.sessions, media_id) for media_id in held} == {Status.PENDING}
    assert history_of(app.sessions, held[0])[-1].error_code == "E_JOB_TIMEOUT"


def test_a_site_that_is_busy_costs_no_try(app: App, clock: SetClock) -> None:
    """However often: other pages of the site were fetched meanwhile, and this one was never asked for."""
    failing(FetchBusy())
    media_id = new_media(app)
    for _ in range(5):
        assert runner.run(app.tools, media_id) is Outcome.RELEASED
        assert row_of(app.sessions, media_id).tries == 0
        assert runner.run(app.tools, media_id) is Outcome.NOTHING, "it is put off"
        clock.forward(minutes=1)
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = good
    assert runner.run(app.tools, media_id) is Outcome.READABLE


def test_a_site_that_asks_for_rest_is_left_alone_for_as_long(app: App) -> None:
    error = FetchRateLimited()
    error.retry_after = 600.0
    failing(error)
    media_id = new_media(app)
    assert runner.run(app.tools, media_id) is Outcome.RELEASED
    assert row_of(app.sessions, media_id).run_after == app.sessions.clock() + timedelta(minutes=10)


def test_nobody_is_left_alone_for_more_than_an_hour(app: App) -> None:
    error = FetchRateLimited()
    error.retry_after = 1e9
    failing(error)
    media_id = new_media(app)
    assert runner.run(app.tools, media_id) is Outcome.RELEASED
    assert row_of(app.sessions, media_id).run_after == app.sessions.clock() + timedelta(hours=1)
