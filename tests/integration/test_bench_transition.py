"""The benchmark of transitions compares two ways to do the same work."""

from uuid import uuid4

from bench import transition
from bench.places import add_pending
from nexus.db.session import connect
from tests.kit.media import events_of, status_of


def test_both_sides_take_media_all_the_way(database_url: str) -> None:
    sessions = connect(database_url)
    first, second = add_pending(sessions, uuid4(), 2)
    transition.ours(sessions, first)
    with transition.by_hand(database_url, sessions) as take:
        take(second)
    for media_id in (first, second):
        assert status_of(sessions, media_id) == "ready_for_reading"
        assert events_of(sessions, media_id) == ["start", "readable"]
    sessions.dispose()
