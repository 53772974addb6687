"""A worker that is killed during a poll costs time, and nothing else: on both queues, in real processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import func, select

from nexus.db.feeds import episodes
from nexus.db.session import Statement
from nexus.db.tables import library_media
from nexus.states.subscription import SubscriptionStatus
from tests.kit.feeds import Reader, episode
from tests.kit.installation import Nexus, installed
from tests.kit.plugins.dying_polls import DIE_IN_POLL, MOMENTS
from tests.kit.servers import Server
from tests.kit.servers.web_pages import Pages
from tests.kit.users import new_user
from tests.kit.waiting import eventually

DYING = ("tests.kit.plugins.extract_by_url", "tests.kit.plugins.dying_polls")
_COUNTS = Statement(
    select(
        select(func.count()).select_from(episodes).scalar_subquery().label("episodes"),
        select(func.count()).select_from(library_media).scalar_subquery().label("held"),
    )
)


@pytest.fixture(params=["local", "celery"])
def nexus(
    request: pytest.FixtureRequest, pages: Pages, own_postgres_url: str, tmp_path: Path
) -> Iterator[Nexus]:
    more: dict[str, object] = {"fetch_allow": [pages.place], "fetch_delay_seconds": 0}
    if request.param == "celery":
        broker: Server = request.getfixturevalue("broker")
        more |= {"queue": "celery", "redis_url": broker.url}
    with installed(own_postgres_url, tmp_path, **more) as made:
        yield made


@pytest.mark.wall_clock
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_worker_that_is_killed_during_a_poll_loses_and_doubles_nothing(
    nexus: Nexus, pages: Pages, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = Reader(nexus.app, pages, new_user(nexus.app))
    reader.publish(*(episode(f"e{number}") for number in range(5)))
    made = reader.subscribe(takes_first=3)
    monkeypatch.setenv(DIE_IN_POLL, moment)
    dying = nexus.worker(plugins=DYING)
    eventually(lambda: not dying.running, "the worker is dead")
    monkeypatch.delenv(DIE_IN_POLL)
    nexus.worker()

    def is_done() -> bool:
        view = reader.view(made)
        return (view.items, view.taken, view.wanted) == (
            5,
            3,
            0,
        ) and view.run_after > nexus.app.sessions.clock()

    eventually(is_done, "the feed is polled and its items are taken in")
    view = reader.view(made)
    assert (view.status, view.failures) == (SubscriptionStatus.ACTIVE, 0)
    with nexus.app.sessions.read() as session:
        assert tuple(session.first(_COUNTS)) == (3, 3)
