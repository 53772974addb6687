"""Polls: what a feed brings, and what becomes of it."""

from __future__ import annotations

from nexus.media.feeds.previews import ItemState
from nexus.states.subscription import SubscriptionStatus
from tests.kit.clock import SetClock
from tests.kit.feeds import Reader, Story, dated, episode
from tests.kit.servers.web_pages import Answer


def test_a_new_subscription_takes_the_latest_episodes(reader: Reader) -> None:
    reader.publish(*(episode(f"e{day}", date=dated(day)) for day in range(10, 0, -1)))
    made = reader.subscribe()
    assert reader.poll(made) == "10 new, 3 taken in"
    assert reader.titles(made, ItemState.TAKEN) == ["e10", "e9", "e8"]
    assert len(reader.titles(made)) == 10


def test_items_of_other_feeds_wait_as_previews(reader: Reader) -> None:
    reader.publish(Story("one"), Story("two"))
    made = reader.subscribe()
    assert reader.poll(made) == "2 new"
    assert reader.titles(made, ItemState.TAKEN) == []


def test_only_what_is_new_is_taken_later(reader: Reader, clock: SetClock) -> None:
    reader.publish(Story("old"))
    made = reader.subscribe(takes_new=True, takes_first=0)
    reader.poll(made)
    reader.publish(Story("new", date=dated(2)), Story("old"))
    assert reader.poll_later(made, clock) == "1 new, 1 taken in"
    assert reader.titles(made, ItemState.TAKEN) == ["new"]


def test_an_unchanged_feed_costs_no_reading(reader: Reader, clock: SetClock) -> None:
    reader.publish(Story("one"), ETag='"1"')
    made = reader.subscribe()
    reader.poll(made)
    assert reader.poll_later(made, clock) == "unchanged"
    assert reader.view(made).succeeded_at == clock.time


def test_a_feed_that_is_gone_is_polled_no_more(reader: Reader, clock: SetClock) -> None:
    reader.publish(Story("one"))
    made = reader.subscribe()
    reader.pages["/feed"] = Answer(b"", status=410)
    assert reader.poll(made) == "failed: E_FEED_GONE"
    assert reader.view(made).status is SubscriptionStatus.GONE
    assert reader.poll_later(made, clock) is None


def test_a_few_failures_make_it_failing_and_a_success_recovers(reader: Reader, clock: SetClock) -> None:
    reader.publish(Story("one"))
    made = reader.subscribe()
    reader.pages["/feed"] = Answer(b"", status=500)
    states = []
    for _ in range(3):
        reader.poll_later(made, clock)
        states.append(reader.view(made).status)
    assert states == [SubscriptionStatus.ACTIVE, SubscriptionStatus.ACTIVE, SubscriptionStatus.FAILING]
    view = reader.view(made)
    assert (view.error_code, view.failures) == ("E_FETCH_HTTP_5XX", 3)
    reader.publish(Story("one"))
    assert reader.poll_later(made, clock) == "1 new"
    view = reader.view(made)
    assert (view.status, view.error_code, view.failures) == (SubscriptionStatus.ACTIVE, None, 0)
