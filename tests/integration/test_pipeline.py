"""The pipeline: one function does all the work, with a test for every way it can end."""

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
from nexus.media import lifecycle, submit
from nexus.media.enqueue import maybe_enqueue_extraction
from nexus.media.lifecycle import EXTRACTION
from nexus.media.runner import Outcome
from nexus.queue import Queue, Work
from nexus.states.media import Kind, MediaStatus
from nexus.work.kernel import BATCH, Swept
from nexus.work.retry import backoff
from tests.kit.clock import SetClock
from tests.kit.media import (
    TEXTS,
    events_of,
    everything_of,
    good_extractor,
    history_of,
    new_file,
    new_media,
    row_of,
    start_extraction,
    status_of,
    walk_media_to,
)
from tests.kit.work import extract_item, sweep


class Told(Queue):
    """A queue that remembers what it was told."""

    workers_look = False

    def __init__(self) -> None:
        super().__init__()
        self.media: list[UUID] = []

    def tell(self, work: Work) -> bool:
        assert work.kind == EXTRACTION
        self.media.append(work.id)
        return True


def failing(error: BaseException) -> None:
    def extract(source: Source) -> Extraction:
        raise error

    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = extract


def test_a_good_extractor_makes_a_media_readable(app: App) -> None:
    seen: list[Source] = []

    def extract(source: Source) -> Extraction:
        seen.append(source)
        assert status_of(app.sessions, source.media_id) is MediaStatus.EXTRACTING
        return Extraction.plain("A \x00title", "one\x00", "two")

    AVAILABLE_EXTRACTORS[Kind.VIDEO] = extract
    media_id = new_media(app, url="https://youtu.be/dQw4w9WgXcQ", kind="video")
    assert extract_item(app.tools, media_id) is Outcome.READABLE
    canonical = "https://www.youtube.com/watch?v=dQw4w9WgXcQ"
    assert seen == [Source(media_id, Kind.VIDEO, canonical, "youtube", "dQw4w9WgXcQ", 1, seen[0].bench)]
    after = everything_of(app.sessions, media_id)
    assert (after.row.title, after.texts) == ("A title", ["one", "two"])
    assert after.row.processing_status == "ready_for_reading"


def test_no_transaction_is_open_while_an_extractor_runs(app: App) -> None:
    """On SQLite the test would wait for the lock here, and fail."""
    other = []

    def extract(source: Source) -> Extraction:
        other.append(new_media(app))
        return good_extractor(source)

    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = extract
    assert extract_item(app.tools, new_media(app)) is Outcome.READABLE
    assert status_of(app.sessions, other[0]) is MediaStatus.PENDING


def test_running_a_media_twice_does_the_work_once(app: App) -> None:
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = good_extractor
    media_id = new_media(app)
    assert extract_item(app.tools, media_id) is Outcome.READABLE
    before = everything_of(app.sessions, media_id)
    assert extract_item(app.tools, media_id) is None
    assert everything_of(app.sessions, media_id) == before


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
    assert extract_item(app.tools, media_id) is Outcome.FAILED
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
        assert extract_item(app.tools, media_id) is Outcome.FAILED
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
        assert extract_item(app.tools, media_id) is Outcome.RELEASED
        row = row_of(app.sessions, media_id)
        assert row.processing_status == "pending"
        assert row.last_error_code is None
        waits.append((row.run_after - clock()).total_seconds())
        assert extract_item(app.tools, media_id) is None
        clock.time = row.run_after
    assert 2.5 <= waits[0] <= 5.0 <= waits[1] <= 10.0
    assert extract_item(app.tools, media_id) is Outcome.FAILED
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
            outcomes.append(extract_item(app.tools, media_id))
            clock.forward(minutes=1)
        assert outcomes == [Outcome.RELEASED, Outcome.RELEASED, Outcome.FAILED]
        with app.sessions.begin() as session:
            lifecycle.retry_media(session, media_id, user)
    assert row_of(app.sessions, media_id).processing_attempts == 6


def test_backoff_doubles_and_stays_between_half_and_all_of_it() -> None:
    for tries in (1, 2, 3):
        most = timedelta(seconds=5 * 2 ** (tries - 1))
        found = [backoff(5, tries) for _ in range(100)]
        assert all(most / 2 <= wait <= most for wait in found)
        assert len(set(found)) > 1


def test_a_late_result_is_discarded(app: App, clock: SetClock) -> None:
    media_id = new_media(app)

    def slow(source: Source) -> Extraction:
        clock.forward(hours=1)
        assert sweep(app.tools, Told()).released == 1
        clock.forward(minutes=1)
        start_extraction(app, media_id)
        return good_extractor(source)

    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = slow
    assert extract_item(app.tools, media_id) is Outcome.STALE
    after = everything_of(app.sessions, media_id)
    assert (after.row.processing_status, after.row.processing_attempts, after.texts) == ("extracting", 2, [])


@pytest.mark.parametrize("error", [ExtractionFailed(), FetchFailed(), ValueError()])
def test_a_late_failure_is_ignored(app: App, clock: SetClock, error: Exception) -> None:
    media_id = new_media(app)

    def slow(source: Source) -> Extraction:
        clock.forward(hours=1)
        sweep(app.tools, Told())
        clock.forward(minutes=1)
        AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = good_extractor
        assert extract_item(app.tools, media_id) is Outcome.READABLE
        raise error

    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = slow
    assert extract_item(app.tools, media_id) is Outcome.STALE
    after = everything_of(app.sessions, media_id)
    assert (after.row.processing_status, after.texts) == ("ready_for_reading", list(TEXTS))


# without an extractor


def test_a_media_without_an_extractor_stays_unchanged(app: App) -> None:
    media_id = new_media(app)
    before = everything_of(app.sessions, media_id)
    told = Told()
    assert extract_item(app.tools, media_id) is None
    assert not maybe_enqueue_extraction(told, Kind.WEB_ARTICLE, media_id)
    assert sweep(app.tools, told) == Swept(0, 0)
    assert told.media == []
    assert everything_of(app.sessions, media_id) == before


def test_an_extractor_of_another_kind_does_not_count(app: App) -> None:
    AVAILABLE_EXTRACTORS[Kind.VIDEO] = good_extractor
    media_id = new_media(app)
    before = everything_of(app.sessions, media_id)
    assert extract_item(app.tools, media_id) is None
    assert not maybe_enqueue_extraction(Told(), Kind.WEB_ARTICLE, media_id)
    assert everything_of(app.sessions, media_id) == before


def test_running_a_media_that_does_not_exist_does_nothing(app: App) -> None:
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = good_extractor
    assert extract_item(app.tools, uuid4()) is None


def test_work_with_an_extractor_is_announced_after_the_commit(app: App) -> None:
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = good_extractor

    class Looking(Told):
        def tell(self, work: Work) -> bool:
            assert status_of(app.sessions, work.id) is MediaStatus.PENDING
            return super().tell(work)

    told, user = Looking(), uuid4()
    first = submit.url(app.sessions, told, {}, user, "web_article", "https://example.com/x")
    again = submit.url(app.sessions, told, {}, user, "web_article", "https://example.com/x")
    assert (first.created, first.enqueued, again.created, again.enqueued) == (True, True, False, True)
    assert told.media == [first.media_id] * 2


def test_a_media_in_work_is_not_announced_again(app: App) -> None:
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = good_extractor
    told, user = Told(), uuid4()
    first = submit.url(app.sessions, told, {}, user, "web_article", "https://example.com/x")
    walk_media_to(app, first.media_id, MediaStatus.EXTRACTING)
    assert not submit.url(app.sessions, told, {}, user, "web_article", "https://example.com/x").enqueued


# the sweep


def test_the_sweep_announces_due_work_that_was_forgotten(app: App, clock: SetClock) -> None:
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = AVAILABLE_EXTRACTORS[Kind.PDF] = good_extractor
    user = uuid4()
    due = new_media(app, user)
    new_file(app, user, None)
    arrived = new_file(app, user, "d" * 64)
    walk_media_to(app, new_media(app, user), MediaStatus.READY_FOR_READING)
    waiting = new_media(app, user)
    with app.sessions.begin() as session:
        claim = lifecycle.worker_start_attempt(session, waiting)
        lifecycle.release(
            session, waiting, claim.processing_attempts, "E_X", session.now + timedelta(minutes=1)
        )
    told = Told()
    assert sweep(app.tools, told) == Swept(0, 2)
    assert sorted(told.media) == sorted([due, arrived])
    clock.forward(minutes=1)
    assert sweep(app.tools, told).announced == 3


def test_the_sweep_does_not_remind_a_queue_that_polls(app: App) -> None:
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = good_extractor
    new_media(app)
    assert sweep(app.tools, app.queue) == Swept(0, 0)


def test_a_stopping_sweep_announces_nothing_more(app: App) -> None:
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = good_extractor
    new_media(app)
    assert app.kernel.sweep(Told(), stopped=lambda: True) == Swept(0, 0)


def test_the_sweep_frees_every_lease_whose_worker_is_gone(app: App, clock: SetClock) -> None:
    user = uuid4()
    held = [new_media(app, user) for _ in range(BATCH + 5)]
    with app.sessions.begin() as session:
        assert len(lifecycle.claim_due(session, Kind.WEB_ARTICLE, user, len(held))) == len(held)
    clock.forward(minutes=2)
    assert sweep(app.tools, Told()).released == len(held)
    assert {status_of(app.sessions, media_id) for media_id in held} == {MediaStatus.PENDING}
    assert history_of(app.sessions, held[0])[-1].error_code == "E_JOB_TIMEOUT"


def test_a_busy_site_costs_no_try(app: App, clock: SetClock) -> None:
    """However often: the site was busy with other pages, and this one was never requested."""
    failing(FetchBusy())
    media_id = new_media(app)
    for _ in range(5):
        assert extract_item(app.tools, media_id) is Outcome.RELEASED
        assert row_of(app.sessions, media_id).tries == 0
        assert extract_item(app.tools, media_id) is None, "it is put off"
        clock.forward(minutes=1)
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = good_extractor
    assert extract_item(app.tools, media_id) is Outcome.READABLE


def test_a_media_waits_as_long_as_its_site_asks_for(app: App) -> None:
    error = FetchRateLimited()
    error.retry_after = 600.0
    failing(error)
    media_id = new_media(app)
    assert extract_item(app.tools, media_id) is Outcome.RELEASED
    assert row_of(app.sessions, media_id).run_after == app.sessions.clock() + timedelta(minutes=10)


def test_a_media_waits_for_its_site_for_at_most_an_hour(app: App) -> None:
    error = FetchRateLimited()
    error.retry_after = 1e9
    failing(error)
    media_id = new_media(app)
    assert extract_item(app.tools, media_id) is Outcome.RELEASED
    assert row_of(app.sessions, media_id).run_after == app.sessions.clock() + timedelta(hours=1)
