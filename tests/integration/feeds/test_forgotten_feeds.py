"""Feeds that nobody subscribes to any more go, and so does what is left of subscriptions."""

from __future__ import annotations

from sqlalchemy import func, select

from nexus.app import App
from nexus.db.feeds import feeds
from nexus.db.session import Statement
from nexus.db.tables import history
from nexus.libraries import catalog
from nexus.media import deletions
from nexus.media.feeds import requests
from nexus.upkeep.retention import forget_old
from tests.kit.feeds import Reader, episode

_COUNTS = Statement(
    select(
        select(func.count()).select_from(feeds).scalar_subquery().label("feeds"),
        select(func.count()).where(history.c.subject == "subscription").scalar_subquery().label("histories"),
    )
)


def counts(app: App) -> tuple[int, int]:
    with app.sessions.read() as session:
        found = session.first(_COUNTS)
    return found.feeds, found.histories


def test_a_deleted_library_leaves_no_feed_and_no_history(app: App, reader: Reader) -> None:
    with app.sessions.begin() as session:
        library = catalog.create_library(session, reader.user, "Shared")
    reader.publish(episode("one"))
    reader.poll(reader.subscribe(library_id=library))
    deletions.delete_library_and_files(app.sessions, app.files, reader.user, library)
    assert counts(app) == (1, 1)
    forgotten = forget_old(app.sessions, 365)
    assert (forgotten["feeds"], forgotten["histories"]) == (1, 1)
    assert counts(app) == (0, 0)


def test_a_feed_stays_as_long_as_one_of_its_episodes(app: App, reader: Reader) -> None:
    reader.publish(episode("one"))
    made = reader.subscribe()
    reader.poll(made)
    (item,) = reader.items(made)
    assert item.media_id is not None
    requests.unsubscribe_and_discard(app.sessions, app.files, made, reader.user, keeps_items=True)
    forget_old(app.sessions, 365)
    assert counts(app) == (1, 0)
    deletions.delete_media_and_files(app.sessions, app.files, reader.user, item.media_id)
    forget_old(app.sessions, 365)
    assert counts(app) == (0, 0)


def test_a_feed_with_a_subscription_stays(app: App, reader: Reader) -> None:
    reader.publish(episode("one"))
    reader.subscribe()
    forgotten = forget_old(app.sessions, 365)
    assert (forgotten["feeds"], forgotten["histories"]) == (0, 0)
