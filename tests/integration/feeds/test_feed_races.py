"""Races about feeds, on PostgreSQL, with real threads and many rounds."""

from __future__ import annotations

import random
import threading
from contextlib import suppress
from pathlib import Path
from uuid import UUID

import pytest
from sqlalchemy import bindparam, exists, func, select

from nexus.app import App
from nexus.db.feeds import episodes, feed_items, feeds, subscriptions
from nexus.db.session import Statement
from nexus.db.tables import library_media, media
from nexus.errors import Conflict, NotFound
from nexus.libraries import access, catalog
from nexus.media.deletions import delete_library_and_files
from nexus.media.feeds import requests
from nexus.media.feeds.subscribing import change_subscription, remove_feed_if_unused, unused_feeds
from nexus.settings import Settings
from nexus.upkeep.promises import PROMISES
from tests.kit.crowd import Crowd
from tests.kit.feeds import Reader, episode
from tests.kit.servers.web_pages import Pages
from tests.kit.settings import make_settings
from tests.kit.users import new_user

pytestmark = pytest.mark.wall_clock
ROUNDS = 15

_EPISODES = Statement(select(func.count().label("many")).select_from(episodes))
_MEDIA = Statement(select(func.count().label("many")).select_from(media))
_HOLDERS = Statement(
    select(func.count().label("many")).where(library_media.c.media_id.in_(select(episodes.c.media_id)))
)
_UNHELD = Statement(
    select(media.c.id).where(
        ~exists(select(library_media.c.media_id).where(library_media.c.media_id == media.c.id))
    )
)
_ITEMS = Statement(
    select(func.count().label("many")).where(feed_items.c.subscription_id == bindparam("subscription_id"))
)
_LEFT = Statement(select(func.count().label("many")).select_from(subscriptions))
_FEEDS = Statement(select(func.count().label("many")).select_from(feeds))


@pytest.fixture
def settings(clean_postgres: str, pages: Pages, tmp_path: Path) -> Settings:
    return make_settings(
        clean_postgres,
        tmp_path,
        database_pool=40,
        fetch_allow=[pages.place],
        fetch_delay_seconds=0,
        fetch_per_host=40,
    )


@pytest.fixture
def eight() -> Crowd:
    made = Crowd(8)
    yield made
    made.close()


def many(app: App, statement: Statement, **values: object) -> int:
    with app.sessions.read() as session:
        return int(session.first(statement, **values).many)


def unheld(app: App) -> list[UUID]:
    with app.sessions.read() as session:
        return [row.id for row in session.all(_UNHELD)]


def make_due(reader: Reader, *subscription_ids: UUID) -> None:
    """By pausing and resuming: nobody may ask more than once a minute."""
    for one in subscription_ids:
        reader.pause(one)
        reader.pause(one, is_paused=False)


def assert_promises(app: App) -> None:
    with app.sessions.read() as session:
        broken = [one.name for one in PROMISES if session.all(one.offenders, most=1)]
    assert broken == []


def test_of_several_polls_of_one_feed_one_brings_each_item(reader: Reader, eight: Crowd) -> None:
    reader.publish(episode("e0"))
    made = reader.subscribe(takes_first=1)
    reader.poll(made)
    for number in range(1, ROUNDS):
        reader.publish(*(episode(f"e{one}") for one in range(number + 1)))
        make_due(reader, made)
        ended = [end for end in eight.rush(lambda _: reader.poll(made)) if end is not None]
        assert ended.count("1 new, 1 taken in") == 1
    assert many(reader.app, _ITEMS, subscription_id=made) == ROUNDS
    assert many(reader.app, _EPISODES) == many(reader.app, _MEDIA) == ROUNDS
    assert_promises(reader.app)


def test_an_episode_by_several_subscriptions_is_one_item_in_all_their_libraries(
    app: App, pages: Pages, eight: Crowd
) -> None:
    readers = [Reader(app, pages, new_user(app)) for _ in range(eight.size)]
    readers[0].publish(episode("e0"))
    made = [reader.subscribe(takes_first=1) for reader in readers]
    for number in range(ROUNDS):
        # Half of the episodes have no guid, and a date or none.
        guid = ["", None][number % 2]
        new = [episode(f"e{one}", guid=["", None][one % 2]) for one in range(number + 1)]
        assert new[-1].guid == guid
        readers[0].publish(*new)
        for reader, one in zip(readers, made, strict=True):
            make_due(reader, one)
        eight.rush(lambda place: readers[place].poll(made[place]))
    assert many(app, _EPISODES) == many(app, _MEDIA) == ROUNDS
    assert many(app, _HOLDERS) == ROUNDS * eight.size
    assert_promises(app)


def test_unsubscribing_during_a_poll_leaves_nothing_behind(reader: Reader, eight: Crowd) -> None:
    reader.publish(*(episode(f"e{number}") for number in range(6)))
    app = reader.app
    for _ in range(ROUNDS):
        made = reader.subscribe(takes_first=6)

        def act(place: int, made: UUID = made) -> None:
            if place < 4:
                reader.poll(made)
                return
            threading.Event().wait(random.uniform(0, 0.06))
            with suppress(NotFound):
                requests.unsubscribe_and_discard(
                    app.sessions, app.files, made, reader.user, keeps_items=False
                )

        eight.rush(act)
        assert many(app, _LEFT) == many(app, _MEDIA) == many(app, _EPISODES) == many(app, _FEEDS) == 0
    assert_promises(app)


def test_deleting_a_library_or_pausing_during_a_poll_harms_nothing(reader: Reader, eight: Crowd) -> None:
    reader.publish(*(episode(f"e{number}") for number in range(6)))
    app = reader.app
    for _ in range(ROUNDS):
        with app.sessions.begin() as session:
            library = catalog.create_library(session, reader.user, "Shared")
        made = reader.subscribe(takes_first=6, library_id=library)

        def act(place: int, made: UUID = made, library: UUID = library) -> None:
            if place < 4:
                reader.poll(made)
                return
            threading.Event().wait(random.uniform(0, 0.06))
            with suppress(NotFound):
                if place == 7:
                    delete_library_and_files(app.sessions, app.files, reader.user, library)
                else:
                    with app.sessions.begin() as session:
                        change_subscription(session, made, reader.user, is_paused=place == 4)

        eight.rush(act)
        assert many(app, _LEFT) == 0
        assert unheld(app) == []
    assert_promises(app)


def test_of_several_who_subscribe_a_library_to_one_feed_one_does(reader: Reader, eight: Crowd) -> None:
    reader.publish(episode("e0"))

    def act(_: int) -> bool:
        try:
            reader.subscribe()
        except Conflict:
            return False
        return True

    for _ in range(5):
        assert sum(eight.rush(act)) == 1
        for view in [reader.view(made) for made in _own(reader)]:
            requests.unsubscribe_and_discard(
                reader.app.sessions, reader.app.files, view.id, reader.user, keeps_items=True
            )


def test_a_feed_is_not_removed_while_somebody_subscribes(reader: Reader, eight: Crowd) -> None:
    reader.publish(episode("e0"))
    app = reader.app

    def act(place: int) -> None:
        if place:
            with app.sessions.read() as session:
                found = unused_feeds(session)
            for feed_id in found:
                with app.sessions.begin() as session:
                    remove_feed_if_unused(session, feed_id)
        else:
            made = reader.subscribe()
            requests.unsubscribe_and_discard(app.sessions, app.files, made, reader.user, keeps_items=True)

    for _ in range(ROUNDS):
        eight.rush(act)
    assert many(app, _FEEDS) == 0


def _own(reader: Reader) -> list[UUID]:
    with reader.app.sessions.read() as session:
        library = access.default_library(session, reader.user)
        return [row.id for row in session.all(_OF_LIBRARY, library_id=library)]


_OF_LIBRARY = Statement(
    select(subscriptions.c.id).where(subscriptions.c.library_id == bindparam("library_id"))
)
