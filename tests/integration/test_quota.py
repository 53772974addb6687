"""Quotas: limits default to none, usage is always recorded, and a day is the last 24 hours."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from sqlalchemy import bindparam, select, update

from nexus.app import App, build
from nexus.db.session import Statement
from nexus.db.tables import media, usage
from nexus.errors import InvalidUrl, RateLimited, TranscriptUnavailable
from nexus.extract import AVAILABLE_EXTRACTORS, Extraction, Source
from nexus.libraries import access
from nexus.libraries.catalog import hold_media
from nexus.libraries.quota import Operation, check_quota, record_usage
from nexus.media import refresh
from nexus.media.add import add_url
from nexus.media.runner import Outcome
from nexus.media.workbench import Tools
from nexus.queue.local import LocalQueue
from nexus.states.media import Kind, MediaStatus
from tests.kit.clock import SetClock
from tests.kit.media import history_of, new_media, row_of, walk_media_to
from tests.kit.settings import make_settings
from tests.kit.work import extract_item, refresh_item

TWO = {Operation.INGEST_URLS: 2}
_USAGE = Statement(
    select(usage.c.operation, usage.c.amount, usage.c.media_id, usage.c.at)
    .where(usage.c.user_id == bindparam("user_id"))
    .order_by(usage.c.id)
)

_OF_KIND = Statement(
    update(media).where(media.c.id == bindparam("media_id")).values(kind=bindparam("new_kind"))
)


def add(app: App, user: UUID, path: str, limits: dict[Operation, int] | None = None) -> UUID:
    with app.sessions.begin() as session:
        url = f"https://example.com/{path}"
        return add_url(session, user, "web_article", url, TWO if limits is None else limits).media_id


def used(app: App, user: UUID) -> list[tuple[object, ...]]:
    with app.sessions.read() as session:
        return [tuple(row) for row in session.all(_USAGE, user_id=user)]


def test_usage_is_recorded_even_without_a_limit(app: App, clock: SetClock) -> None:
    user = uuid4()
    media_id = add(app, user, "one", {})
    assert used(app, user) == [("INGEST_URLS", 1, media_id, clock())]


def test_an_operation_beyond_the_limit_is_refused_and_changes_nothing(app: App) -> None:
    user = uuid4()
    first = add(app, user, "one")
    add(app, user, "two")
    with pytest.raises(RateLimited):
        add(app, user, "three")
    assert len(used(app, user)) == 2
    assert row_of(app.sessions, first) is not None
    assert add(app, uuid4(), "three")
    assert (RateLimited.code, RateLimited.status) == ("E_RATE_LIMITED", 429)


def test_a_limit_of_zero_refuses_everything(app: App) -> None:
    with pytest.raises(RateLimited):
        add(app, uuid4(), "one", {Operation.INGEST_URLS: 0})


def test_the_allowance_is_for_the_last_24_hours(app: App, clock: SetClock) -> None:
    user = uuid4()
    add(app, user, "one")
    clock.forward(hours=12)
    add(app, user, "two")
    clock.forward(hours=11, minutes=59)
    with pytest.raises(RateLimited):
        add(app, user, "three")
    clock.forward(minutes=1)
    add(app, user, "three")
    with pytest.raises(RateLimited):
        add(app, user, "four")
    clock.forward(hours=12)
    add(app, user, "four")


def test_a_url_that_the_user_has_already_or_that_is_wrong_uses_nothing_up(app: App) -> None:
    user = uuid4()
    add(app, user, "known")
    add(app, user, "known")
    with pytest.raises(InvalidUrl), app.sessions.begin() as session:
        add_url(session, user, "web_article", "ftp://example.com/", TWO)
    assert len(used(app, user)) == 1


def test_an_allowance_does_not_tell_what_others_hold(app: App) -> None:
    """An address that somebody else has costs as much as any other."""
    user = uuid4()
    new_media(app, uuid4(), "https://example.com/known")
    new_media(app, uuid4(), "https://example.com/known-too")
    add(app, user, "known")
    add(app, user, "unknown")
    for path in ("known-too", "another"):
        with pytest.raises(RateLimited):
            add(app, user, path)


def test_submitting_a_failed_url_again_costs_nothing(app: App) -> None:
    user = uuid4()
    media_id = add(app, user, "one")
    walk_media_to(app, media_id, MediaStatus.FAILED)
    add(app, user, "one")
    assert len(used(app, user)) == 1
    put_again = row_of(app.sessions, media_id)
    assert put_again.processing_status == "pending"


def test_each_operation_is_counted_separately(app: App) -> None:
    user = uuid4()
    limits = {Operation.TRANSCRIBE_SECONDS: 100, Operation.LLM_TOKENS: 1000}
    with app.sessions.begin() as session:
        access.ensure_user(session, user)
        record_usage(session, user, Operation.TRANSCRIBE_SECONDS, 90, None)
        assert check_quota(session, limits, user, Operation.TRANSCRIBE_SECONDS, 10)
        assert not check_quota(session, limits, user, Operation.TRANSCRIBE_SECONDS, 11)
        assert check_quota(session, limits, user, Operation.LLM_TOKENS, 1000)
        assert not check_quota(session, limits, user, Operation.LLM_TOKENS, 1001)
        assert check_quota(session, limits, user, Operation.INGEST_URLS, 10**9)


@pytest.mark.parametrize("kind", [Kind.VIDEO, Kind.PODCAST_EPISODE])
class TestTranscription:
    """What an extractor for audio does, charged to the user who added the media."""

    def test_a_transcription_is_allowed_before_and_counted_after(
        self, app: App, clock: SetClock, kind: Kind
    ) -> None:
        user, media_id = something_to_hear(app, kind)
        AVAILABLE_EXTRACTORS[kind] = transcribe
        assert extract_item(limited(app, 100), media_id) is Outcome.READABLE
        assert used(app, user)[-1] == ("TRANSCRIBE_SECONDS", 91, media_id, clock())

    def test_a_transcription_beyond_the_allowance_waits_without_using_up_a_try(
        self, app: App, clock: SetClock, kind: Kind
    ) -> None:
        user, media_id = something_to_hear(app, kind)
        AVAILABLE_EXTRACTORS[kind] = transcribe
        with app.sessions.begin() as session:
            record_usage(session, user, Operation.TRANSCRIBE_SECONDS, 11, None)
        before = used(app, user)
        tools = limited(app, 100)
        for waited in range(1, 6):
            assert extract_item(tools, media_id) is Outcome.RELEASED
            row = row_of(app.sessions, media_id)
            assert (row.processing_status, row.tries, row.last_error_code) == ("pending", 0, None)
            assert row.processing_attempts == waited
            assert row.run_after == clock() + timedelta(hours=1)
            assert extract_item(tools, media_id) is None
            clock.forward(hours=1)
        assert used(app, user) == before
        assert history_of(app.sessions, media_id)[-1].error_code == "E_TRANSCRIPTION_QUOTA"
        clock.forward(hours=19)
        assert extract_item(tools, media_id) is Outcome.READABLE

    def test_a_transcription_without_text_is_counted_too(self, app: App, clock: SetClock, kind: Kind) -> None:
        user, media_id = something_to_hear(app, kind)
        AVAILABLE_EXTRACTORS[kind] = transcribe_in_vain
        assert extract_item(limited(app, 100), media_id) is Outcome.FAILED
        assert used(app, user)[-1] == ("TRANSCRIBE_SECONDS", 91, media_id, clock())
        assert row_of(app.sessions, media_id).failure_stage == "transcribe"


def test_a_transcription_for_a_refresh_is_charged_to_the_user_who_asked_for_it(app: App) -> None:
    """Nobody uses up the allowance of the user who added the item."""
    user, media_id = something_to_hear(app, Kind.VIDEO)
    AVAILABLE_EXTRACTORS[Kind.VIDEO] = transcribe
    tools = limited(app, 100)
    assert extract_item(tools, media_id) is Outcome.READABLE
    before, other = used(app, user), uuid4()
    with app.sessions.begin() as session:
        hold_media(session, access.ensure_user(session, other), media_id)
    refresh.request(app.sessions, LocalQueue(), media_id, other, None)
    assert refresh_item(tools, media_id) == "unchanged"
    assert used(app, user) == before
    assert [row[:3] for row in used(app, other)] == [("TRANSCRIBE_SECONDS", 91, media_id)]


def something_to_hear(app: App, kind: Kind) -> tuple[UUID, UUID]:
    user = uuid4()
    media_id = new_media(app, user, "https://www.youtube.com/watch?v=dQw4w9WgXcQ", "video")
    if kind is not Kind.VIDEO:
        with app.sessions.begin() as session:
            session.run(_OF_KIND, media_id=media_id, new_kind=kind.value)
    return user, media_id


def limited(app: App, seconds: int) -> Tools:
    return replace(app.tools, limits={Operation.TRANSCRIBE_SECONDS: seconds})


def transcribe(source: Source) -> Extraction:
    """It expected 90 seconds, and there were a few more."""
    source.bench.require_transcription(90)
    source.bench.record_transcription(90.2)
    return Extraction.plain("A talk", "What was said.")


def transcribe_in_vain(source: Source) -> Extraction:
    source.bench.require_transcription(90)
    source.bench.record_transcription(90.2)
    raise TranscriptUnavailable


def test_allowances_come_from_the_settings(sqlite_url: str, tmp_path: object) -> None:
    built = build(make_settings(sqlite_url, tmp_path, quota_ingest_urls=3, quota_llm_tokens=0))
    assert built.limits == {Operation.INGEST_URLS: 3, Operation.LLM_TOKENS: 0}
    built.close()
