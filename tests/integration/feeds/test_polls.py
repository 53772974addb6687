"""Polls: what a feed brings, and what becomes of it."""

from __future__ import annotations

import itertools
from dataclasses import replace
from uuid import UUID

import pytest

from nexus.app import App, kernel_for
from nexus.errors import InvalidRequest
from nexus.libraries import catalog, members
from nexus.libraries.access import Role
from nexus.libraries.quota import Operation
from nexus.media.feeds import arrivals, pace, requests
from nexus.media.feeds.arrivals import MOST_NEW, PREVIEW_LIFE
from nexus.media.feeds.polling import POLL
from nexus.media.feeds.previews import ItemState, list_previews
from nexus.media.feeds.taking import take_item
from nexus.media.recordings.facts import find_recording
from nexus.queue import Work
from nexus.queue.local import LocalQueue
from nexus.states.subscription import SubscriptionStatus
from tests.kit.clock import SetClock
from tests.kit.feeds import Reader, Story, dated, episode, rss
from tests.kit.media import row_of
from tests.kit.servers.web_pages import Answer
from tests.kit.users import new_user


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


def test_each_feed_finds_its_own_pace(reader: Reader, clock: SetClock) -> None:
    reader.publish(Story("0"))
    made = reader.subscribe()
    reader.poll(made)
    intervals = []
    for number in range(1, 4):
        reader.publish(*(Story(str(one)) for one in range(number + 1)))
        reader.poll_later(made, clock)
        intervals.append(reader.view(made).interval_seconds)
    assert intervals == sorted(intervals, reverse=True)
    assert intervals[-1] == pace.SHORTEST
    for _ in range(30):
        reader.poll_later(made, clock)
    assert reader.view(made).interval_seconds == pace.LONGEST


def test_a_feed_that_asks_for_it_is_polled_less_often(reader: Reader, clock: SetClock) -> None:
    reader.publish(Story("0"), more="<ttl>600</ttl>")
    made = reader.subscribe()
    reader.poll(made)
    view = reader.view(made)
    assert view.interval_seconds == 36_000
    wait = (view.run_after - clock.time).total_seconds()
    assert 36_000 * (1 - pace.JITTER) <= wait <= 36_000 * (1 + pace.JITTER)


def test_failures_wait_longer_each_time(reader: Reader, clock: SetClock) -> None:
    reader.publish(Story("0"))
    made = reader.subscribe()
    reader.pages["/feed"] = Answer(b"<html></html>")
    waits = []
    for _ in range(4):
        assert reader.poll_later(made, clock) == "failed: E_FEED_IS_PAGE"
        waits.append((reader.view(made).run_after - clock.time).total_seconds())
    assert all(later > 1.5 * sooner for sooner, later in itertools.pairwise(waits))


def test_a_site_that_asks_to_wait_is_left_alone(reader: Reader, clock: SetClock) -> None:
    stories = [Story("0")]
    reader.publish(*stories)
    made = reader.subscribe()
    reader.poll(made)
    for number in range(1, 4):
        stories.append(Story(str(number)))
        reader.publish(*stories)
        reader.poll_later(made, clock)
    assert reader.view(made).interval_seconds == pace.SHORTEST
    reader.pages["/feed"] = Answer(b"", status=429, headers={"Retry-After": "3600"})
    reader.poll_later(made, clock)
    assert (reader.view(made).run_after - clock.time).total_seconds() >= 3600 * (1 - pace.JITTER)


@pytest.mark.parametrize("status", [301, 308])
def test_a_permanent_redirect_moves_the_feed(reader: Reader, clock: SetClock, status: int) -> None:
    reader.publish(Story("0"))
    made = reader.subscribe()
    reader.poll(made)
    reader.publish(Story("0"), path="/new", ETag='"2"')
    reader.pages["/feed"] = Answer(b"", status=status, headers={"Location": "/new"})
    assert reader.poll_later(made, clock) == "0 new"
    assert reader.view(made).url == reader.pages.url("/new")
    asked = len(reader.pages.asked)
    assert reader.poll_later(made, clock) == "unchanged"
    assert [path for path, _ in reader.pages.asked[asked:]] == ["/new"]


def test_a_passing_redirect_moves_nothing(reader: Reader, clock: SetClock) -> None:
    reader.publish(Story("0"), path="/elsewhere")
    reader.pages["/feed"] = Answer(b"", status=302, headers={"Location": "/mid"})
    reader.pages["/mid"] = Answer(b"", status=301, headers={"Location": "/elsewhere"})
    made = reader.subscribe()
    assert reader.poll(made) == "1 new"
    assert reader.view(made).url == reader.pages.url("/feed")


def test_a_permanent_redirect_to_a_page_moves_nothing(reader: Reader, clock: SetClock) -> None:
    reader.publish(Story("0"))
    made = reader.subscribe()
    reader.pages["/feed"] = Answer(b"", status=301, headers={"Location": "/home"})
    reader.pages["/home"] = Answer(b"<html><body>Welcome</body></html>")
    assert reader.poll(made) == "failed: E_FEED_IS_PAGE"
    assert reader.view(made).url == reader.pages.url("/feed")


def test_a_feed_that_moves_to_one_that_is_known_joins_it(reader: Reader, clock: SetClock) -> None:
    reader.publish(Story("0"))
    reader.publish(Story("0"), path="/new")
    old = reader.subscribe()
    with reader.app.sessions.begin() as session:
        other = catalog.create_library(session, reader.user, "Other")
    new = reader.subscribe("/new", library_id=other)
    reader.pages["/feed"] = Answer(b"", status=301, headers={"Location": "/new"})
    assert reader.poll(old) == "1 new"
    assert reader.view(old).url == reader.view(new).url == reader.pages.url("/new")


def test_a_flood_of_new_items_is_not_taken_in(reader: Reader, clock: SetClock) -> None:
    reader.publish(Story("old"))
    made = reader.subscribe(takes_new=True, takes_first=0)
    reader.poll(made)
    reader.publish(*(Story(f"new {number}") for number in range(400)), Story("old"))
    assert reader.poll_later(made, clock) == f"400 new, {MOST_NEW} taken in"
    assert reader.view(made).items == 401


def test_everything_can_be_taken_in_on_request(reader: Reader) -> None:
    reader.publish(*(episode(f"e{number}") for number in range(250)))
    made = reader.subscribe(takes_first=0)
    reader.poll(made)
    done = requests.take_all(reader.app.sessions, LocalQueue(), reader.app.limits, reader.user, made)
    assert done == (200, 50)


def test_what_exceeds_the_allowance_waits(reader: Reader, app: App, clock: SetClock) -> None:
    limited = replace(app.tools, limits={Operation.INGEST_URLS: 2})
    reader.publish(*(episode(f"e{number}") for number in range(5)))
    made = reader.subscribe(takes_first=5)
    assert kernel_for(limited).run(Work(POLL, made)) == "5 new, 2 taken in"
    assert reader.view(made).wanted == 3
    clock.forward(days=2)
    assert kernel_for(limited).run(Work(POLL, made)) == "0 new, 2 taken in"


def test_an_episode_whose_guid_changes_stays_the_same(reader: Reader, clock: SetClock) -> None:
    reader.publish(episode("one"))
    made = reader.subscribe()
    reader.poll(made)
    for number in range(3):
        reader.publish(episode("one", guid=f"session-{number}"))
        assert reader.poll_later(made, clock) == "0 new"
    assert reader.titles(made) == ["one"]


def test_a_guid_that_all_items_share_says_nothing(reader: Reader, clock: SetClock) -> None:
    reader.publish(episode("one", guid="same"), episode("two", guid="same"), Story("three", guid="same"))
    made = reader.subscribe()
    assert reader.poll(made) == "3 new, 3 taken in"
    assert len({row.media_id for row in reader.items(made)}) == 3
    assert reader.poll_later(made, clock) == "0 new"


def test_items_without_a_guid_are_known_by_their_enclosure_and_date(reader: Reader, clock: SetClock) -> None:
    live = "https://cdn.example.com/live.mp3"
    stories = [episode(f"e{day}", guid=None, enclosure=live, date=dated(day)) for day in (1, 2)]
    reader.publish(*stories)
    made = reader.subscribe()
    assert reader.poll(made) == "2 new, 2 taken in"
    reader.publish(episode("e3", guid=None, enclosure=live, date=dated(3)), *stories)
    assert reader.poll_later(made, clock) == "1 new, 1 taken in"


def test_items_without_a_date_stay_in_the_order_of_their_feed(reader: Reader) -> None:
    names = list("cfaedb")
    reader.publish(*(Story(name, date=None) for name in names))
    made = reader.subscribe()
    reader.poll(made)
    assert reader.titles(made) == names


def test_an_enclosure_that_moves_is_played_from_its_new_place(reader: Reader, clock: SetClock) -> None:
    reader.publish(episode("one"))
    made = reader.subscribe()
    reader.poll(made)
    (item,) = reader.items(made)
    assert item.media_id is not None
    moved = "https://other.example.com/one.mp3"
    transcript = '<podcast:transcript url="https://other.example.com/one.vtt" type="text/vtt"/>'
    reader.publish(episode("one", enclosure=moved, more=transcript))
    assert reader.poll_later(made, clock) == "0 new"
    with reader.app.sessions.read() as session:
        found = find_recording(session, item.media_id)
    assert found is not None
    assert found.recording.audio_url == moved
    assert [one.url for one in found.recording.transcripts] == ["https://other.example.com/one.vtt"]
    assert row_of(reader.app.sessions, item.media_id).external_playback_url == moved


def test_notes_of_an_episode_stay_as_they_were_saved_when_its_feed_changes_them(
    reader: Reader, clock: SetClock
) -> None:
    reader.publish(episode("one", html="<p>Before.</p>"))
    made = reader.subscribe()
    reader.poll(made)
    reader.publish(episode("one", html="<p>After.</p>", more="<itunes:duration>90</itunes:duration>"))
    assert reader.poll_later(made, clock) == "0 new"
    (item,) = reader.items(made)
    assert item.media_id is not None
    with reader.app.sessions.read() as session:
        found = find_recording(session, item.media_id)
    assert found is not None
    assert (found.recording.notes, found.recording.seconds) == ("<p>Before.</p>", 90)


def test_an_episode_has_what_its_feed_says_without_being_fetched(reader: Reader) -> None:
    more = "<itunes:duration>90</itunes:duration><itunes:season>2</itunes:season><itunes:episode>7</itunes:episode>"
    reader.publish(episode("one", html="<p>Notes with <script>x</script>care.</p>", more=more), title="Cast")
    made = reader.subscribe()
    reader.poll(made)
    (item,) = reader.items(made)
    assert item.media_id is not None
    with reader.app.sessions.read() as session:
        found = find_recording(session, item.media_id)
    assert found is not None
    said = found.recording
    assert (said.title, said.author, said.seconds, said.audio_type) == ("one", None, 90, "audio/mpeg")
    assert said.notes == "<p>Notes with care.</p>"
    row = row_of(reader.app.sessions, item.media_id)
    assert (row.kind, row.title, row.processing_status) == ("podcast_episode", "one", "pending")
    assert (item.season, item.number) == (2, 7)
    assert [path for path, _ in reader.pages.asked] == ["/feed", "/feed"]


def test_a_video_of_a_channel_becomes_a_video(reader: Reader) -> None:
    reader.publish(Story("v", link="https://www.youtube.com/watch?v=aaaaaaaaaaa"))
    made = reader.subscribe(takes_new=True)
    assert reader.poll(made) == "1 new, 1 taken in"
    (item,) = reader.items(made)
    assert item.media_id is not None
    row = row_of(reader.app.sessions, item.media_id)
    assert (row.kind, row.provider, row.provider_id) == ("video", "youtube", "aaaaaaaaaaa")


def test_an_item_without_any_address_can_not_be_taken_in(reader: Reader) -> None:
    reader.publish(Story("note", link=None))
    made = reader.subscribe(takes_new=True)
    assert reader.poll(made) == "1 new"
    (item,) = reader.items(made)
    assert item.kind is None
    with pytest.raises(InvalidRequest):
        requests.take_preview(
            reader.app.sessions, reader.app.queue, reader.app.limits, reader.user, made, item.id
        )


def test_previews_that_left_the_feed_long_ago_go(reader: Reader, clock: SetClock) -> None:
    reader.publish(Story("stays"), Story("taken"), Story("goes"))
    made = reader.subscribe()
    reader.poll(made)
    taken = next(row for row in reader.items(made) if row.title == "taken")
    requests.take_preview(
        reader.app.sessions, reader.app.queue, reader.app.limits, reader.user, made, taken.id
    )
    reader.publish(Story("stays"))
    reader.poll_later(made, clock)
    assert len(reader.titles(made)) == 3
    clock.forward(days=PREVIEW_LIFE.days)
    reader.poll(made)
    assert set(reader.titles(made)) == {"stays", "taken"}


def test_a_preview_that_changes_is_shown_as_it_is_now(reader: Reader, clock: SetClock) -> None:
    reader.publish(Story("one", html="<p>Before.</p>"))
    made = reader.subscribe()
    reader.poll(made)
    reader.publish(Story("one", html="<p>After.</p>"))
    assert reader.poll_later(made, clock) == "0 new"
    (item,) = reader.items(made)
    assert item.summary == "After."


def test_a_subscription_goes_on_in_the_name_of_an_admin(reader: Reader, app: App, clock: SetClock) -> None:
    """The subscriber has left the library."""
    heir = new_user(app)
    with app.sessions.begin() as session:
        library = catalog.create_library(session, reader.user, "Shared")
        members.join(session, library, heir, Role.ADMIN)
    reader.publish(episode("one"))
    made = reader.subscribe(library_id=library)
    with app.sessions.begin() as session:
        members.remove_member(session, library, reader.user, reader.user)
    assert reader.poll(made) == "1 new, 1 taken in"
    with app.sessions.read() as session:
        (item,) = list_previews(session, made).items
    assert item.media_id is not None
    assert row_of(app.sessions, item.media_id).created_by_user_id == heir


def test_more_items_than_one_statement_may_hold_are_kept_as_previews(reader: Reader) -> None:
    reader.publish(*(Story(str(number), html="x") for number in range(3_000)))
    made = reader.subscribe()
    assert reader.poll(made) == "3000 new"
    assert reader.view(made).items == 3_000


def test_a_feed_without_end_is_refused(reader: Reader, clock: SetClock) -> None:
    reader.publish(Story("one"))
    made = reader.subscribe()
    reader.pages["/feed"] = Answer(rss([Story("x", html="x" * 1000)]) * 12_000, "text/xml")
    assert reader.poll(made) == "failed: E_FETCH_TOO_LARGE"
    assert reader.view(made).status is SubscriptionStatus.ACTIVE


def test_a_feed_that_always_names_others_fills_no_database(
    reader: Reader, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrivals, "MOST_MISSING", 4)
    reader.publish(Story("wanted", date=dated(1)))
    made = reader.subscribe(takes_first=1)
    reader.poll(made)
    for day in range(2, 6):
        reader.publish(*(Story(f"{day}-{number}", date=dated(day)) for number in range(3)))
        reader.poll_later(made, clock)
    assert len(reader.items(made, ItemState.TAKEN)) == 1
    kept = {row.title for row in reader.items(made, ItemState.PREVIEWS)}
    assert {"5-0", "5-1", "5-2", "4-0", "4-1", "4-2"} < kept
    assert len(kept) == 3 + 4


def test_a_feed_that_always_has_other_texts_fills_no_database(
    reader: Reader, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the feed has now keeps its text, and so do the latest of those that have left it."""
    monkeypatch.setattr(arrivals, "MOST_LEFT_TEXT", 500)
    words = "word " * 40
    reader.publish()
    made = reader.subscribe()
    for day in range(1, 6):
        reader.publish(Story(f"{day}", date=dated(day), html=f"<p>{words}</p>"))
        reader.poll_later(made, clock)
    assert reader.texts(made) == {"5": True, "4": True, "3": False, "2": False, "1": False}
    reader.publish(*(Story(f"{day}", date=dated(day), html=f"<p>{words}</p>") for day in (1, 5)))
    reader.poll_later(made, clock)
    assert reader.texts(made)["1"]


def test_a_feed_that_moves_gives_its_episodes_to_nobody_else(reader: Reader, clock: SetClock) -> None:
    """Otherwise anybody could make the episodes of a podcast before others subscribe to it, with other words."""
    reader.publish(episode("one", enclosure="https://cdn.example.net/false.mp3"), path="/false")
    false = reader.subscribe("/false")
    reader.poll(false)
    (made,) = reader.items(false)
    reader.publish(episode("one"))
    reader.pages["/false"] = Answer(b"", status=301, headers={"Location": "/feed"})
    reader.poll_later(false, clock)
    other = Reader(reader.app, reader.pages, new_user(reader.app))
    subscribed = other.subscribe()
    other.poll(subscribed)
    (taken,) = other.items(subscribed)
    assert taken.media_id not in {None, made.media_id}


def taken_by_another(reader: Reader) -> UUID | None:
    """The one episode of the feed, as somebody else gets it who subscribes to it now."""
    other = Reader(reader.app, reader.pages, new_user(reader.app))
    subscribed = other.subscribe()
    other.poll(subscribed)
    (taken,) = other.items(subscribed)
    return taken.media_id


def take(reader: Reader, subscription_id: UUID) -> UUID | None:
    """Take in the item "one" of a subscription; None if there is nothing to play."""
    item = next(row for row in reader.items(subscription_id) if row.title == "one")
    try:
        with reader.app.sessions.begin() as session:
            return take_item(session, {}, subscription_id, item.id, reader.user).media_id
    except InvalidRequest:
        return None


@pytest.mark.parametrize("words", ["the same", "other"])
def test_what_another_feed_told_makes_no_episodes_where_it_moves(
    reader: Reader, clock: SetClock, words: str
) -> None:
    """Anybody can redirect to a podcast, also with the version that it has at the moment."""
    false = episode("one", enclosure="https://cdn.example.net/false.mp3", link=None)
    reader.publish(false, path="/false", ETag='"1"')
    subscribed = [reader.subscribe("/false", takes_first=0)]
    with reader.app.sessions.begin() as session:
        library = catalog.create_library(session, reader.user, "Other")
    subscribed.append(reader.subscribe("/false", takes_first=0, library_id=library))
    for each in subscribed:
        reader.poll(each)
    reader.publish(episode("one" if words == "the same" else "zero"), ETag='"1"')
    reader.pages["/false"] = Answer(b"", status=301, headers={"Location": "/feed"})
    clock.forward(days=2)
    reader.poll(subscribed[0])
    assert reader.view(subscribed[0]).url == reader.pages.url("/feed")
    reader.publish(episode("one"), ETag='"2"')
    taken = [take(Reader(reader.app, reader.pages, reader.user), each) for each in subscribed]
    right = taken_by_another(reader)
    assert right is not None
    row = row_of(reader.app.sessions, right)
    assert row.external_playback_url == "https://cdn.example.com/one.mp3"
    assert taken[1] != right


def test_episodes_of_a_feed_that_has_moved_are_kept_up_to_date(reader: Reader, clock: SetClock) -> None:
    reader.publish(episode("one"))
    made = reader.subscribe()
    reader.poll(made)
    (item,) = reader.items(made)
    assert item.media_id is not None
    reader.publish(episode("one", enclosure="https://new.example.com/one.mp3"), path="/new")
    reader.pages["/feed"] = Answer(b"", status=301, headers={"Location": "/new"})
    assert reader.poll_later(made, clock) == "0 new"
    assert reader.view(made).url == reader.pages.url("/new")
    assert [one.media_id for one in reader.items(made)] == [item.media_id]
    row = row_of(reader.app.sessions, item.media_id)
    assert row.external_playback_url == "https://new.example.com/one.mp3"
    reader.publish(episode("two", date=dated(2)), episode("one"), path="/new")
    assert reader.poll_later(made, clock) == "1 new, 1 taken in"


def moved(address: str) -> str:
    """A podcast says that it is there now."""
    return f"<itunes:new-feed-url>{address}</itunes:new-feed-url>"


def elsewhere(reader: Reader, path: str = "/new") -> str:
    """The address of a page on another host."""
    return reader.pages.url(path).replace("127.0.0.1", "localhost")


def test_a_podcast_that_names_its_new_feed_moves_there(reader: Reader, clock: SetClock) -> None:
    reader.publish(episode("one"))
    made = reader.subscribe()
    reader.poll(made)
    (item,) = reader.items(made)
    reader.publish(episode("one"), more=moved(elsewhere(reader)))
    reader.publish(episode("two", date=dated(2)), episode("one"), path="/new", more=moved(elsewhere(reader)))
    assert reader.poll_later(made, clock) == "1 new, 1 taken in"
    assert reader.view(made).url == elsewhere(reader)
    assert item.media_id in {one.media_id for one in reader.items(made)}
    asked = len(reader.pages.asked)
    reader.poll_later(made, clock)
    assert [path for path, _ in reader.pages.asked[asked:]] == ["/new"]


@pytest.mark.parametrize(
    ("stories", "more"),
    [
        ([episode("another")], ""),
        ([Story("one")], ""),
        ([episode("one")], moved("https://example.com/third")),
        ([], ""),
        (None, ""),
    ],
    ids=["another podcast", "no podcast", "moved on", "empty", "gone"],
)
def test_a_podcast_stays_if_the_feed_that_it_names_is_not_the_same(
    reader: Reader, stories: list[Story] | None, more: str
) -> None:
    reader.publish(episode("one"), more=moved(elsewhere(reader)))
    if stories is not None:
        reader.publish(*stories, path="/new", more=more)
    made = reader.subscribe()
    assert reader.poll(made) == "1 new, 1 taken in"
    assert reader.view(made).url == reader.pages.url("/feed")
    assert reader.titles(made) == ["one"]


def test_only_podcasts_and_not_their_items_name_a_new_feed(reader: Reader) -> None:
    reader.publish(episode("one", more=moved(elsewhere(reader))))
    reader.publish(Story("one"), path="/blog", more=moved(elsewhere(reader)))
    reader.publish(episode("one"), path="/new")
    for path in ("/feed", "/blog"):
        made = reader.subscribe(path)
        reader.poll(made)
        assert reader.view(made).url == reader.pages.url(path)


def test_a_new_feed_that_answers_later_is_found_then(reader: Reader, clock: SetClock) -> None:
    reader.publish(episode("one"), more=moved(elsewhere(reader)), ETag='"1"')
    reader.pages["/new"] = Answer(b"", status=503)
    made = reader.subscribe()
    reader.poll(made)
    assert reader.view(made).url == reader.pages.url("/feed")
    reader.publish(episode("one"), path="/new")
    reader.poll_later(made, clock)
    assert reader.view(made).url == elsewhere(reader)


def test_naming_the_feed_of_others_gives_them_no_false_episodes(reader: Reader, clock: SetClock) -> None:
    reader.publish(episode("one", enclosure="https://cdn.example.net/false.mp3"), path="/false")
    false = reader.subscribe("/false")
    reader.poll(false)
    (made,) = reader.items(false)
    reader.publish(episode("one"))
    reader.publish(episode("one"), path="/false", more=moved(reader.pages.url("/feed")))
    reader.poll_later(false, clock)
    assert reader.view(false).url == reader.pages.url("/feed")
    other = Reader(reader.app, reader.pages, new_user(reader.app))
    subscribed = other.subscribe()
    other.poll(subscribed)
    (taken,) = other.items(subscribed)
    assert taken.media_id not in {None, made.media_id}
