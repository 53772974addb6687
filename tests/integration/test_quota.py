"""Quotas: limits default to none, usage is always recorded, and a day is the last 24 hours."""

from uuid import UUID, uuid4

import pytest
from sqlalchemy import bindparam, select

from nexus.app import App, build
from nexus.db.session import Statement
from nexus.db.tables import usage
from nexus.errors import InvalidUrl, RateLimited
from nexus.ingest import access
from nexus.ingest.add import add_url
from nexus.ingest.quota import Operation, check_quota, record_usage
from nexus.states.media import Status
from tests.support import SetClock, make_settings, new_media, row_of
from tests.walks import put

TWO = {Operation.INGEST_URLS: 2}
_USAGE = Statement(
    select(usage.c.operation, usage.c.amount, usage.c.media_id, usage.c.at)
    .where(usage.c.user_id == bindparam("user_id"))
    .order_by(usage.c.id)
)


def add(app: App, user: UUID, path: str, limits: dict[Operation, int] | None = None) -> UUID:
    with app.sessions.begin() as session:
        url = f"https://example.com/{path}"
        return add_url(session, user, "web_article", url, TWO if limits is None else limits).media_id


def used(app: App, user: UUID) -> list[tuple[object, ...]]:
    with app.sessions.read() as session:
        return [tuple(row) for row in session.all(_USAGE, user_id=user)]


def test_without_a_limit_usage_is_recorded_all_the_same(app: App, clock: SetClock) -> None:
    user = uuid4()
    media_id = add(app, user, "one", {})
    assert used(app, user) == [("INGEST_URLS", 1, media_id, clock())]


def test_a_limit_refuses_what_goes_beyond_it_and_changes_nothing(app: App) -> None:
    user = uuid4()
    first = add(app, user, "one")
    add(app, user, "two")
    with pytest.raises(RateLimited):
        add(app, user, "three")
    assert len(used(app, user)) == 2
    assert row_of(app.sessions, first) is not None
    assert add(app, uuid4(), "three")
    assert (RateLimited.code, RateLimited.status) == ("E_RATE_LIMITED", 429)


def test_a_limit_of_nothing_lets_nothing_in(app: App) -> None:
    with pytest.raises(RateLimited):
        add(app, uuid4(), "one", {Operation.INGEST_URLS: 0})


def test_the_day_rolls(app: App, clock: SetClock) -> None:
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


def test_a_url_that_is_there_already_or_wrong_uses_nothing_up(app: App) -> None:
    user = uuid4()
    new_media(app, uuid4(), "https://example.com/known")
    add(app, user, "known")
    with pytest.raises(InvalidUrl), app.sessions.begin() as session:
        add_url(session, user, "web_article", "ftp://example.com/", TWO)
    assert used(app, user) == []


def test_submitting_a_failed_url_again_costs_nothing(app: App) -> None:
    user = uuid4()
    media_id = add(app, user, "one")
    put(app, media_id, Status.FAILED)
    add(app, user, "one")
    assert len(used(app, user)) == 1
    put_again = row_of(app.sessions, media_id)
    assert put_again.processing_status == "pending"


def test_each_operation_has_its_own_account(app: App) -> None:
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


def test_limits_come_from_the_settings(sqlite_url: str, tmp_path: object) -> None:
    built = build(make_settings(sqlite_url, tmp_path, quota_ingest_urls=3, quota_llm_tokens=0))
    assert built.limits == {Operation.INGEST_URLS: 3, Operation.LLM_TOKENS: 0}
    built.close()
