"""What the death of a Celery worker or of its broker costs: time, and nothing else. On real Redis and PostgreSQL."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from redis import Redis

from nexus.media import submit
from nexus.media.lifecycle import EXTRACTION
from nexus.media.submit import Submitted
from nexus.queue import Work
from nexus.queue.celery import ENOUGH
from nexus.states.media import MediaStatus
from tests.kit.faults.killed_workers import (
    check_kept_promises,
    check_only_the_killed_timed_out,
    kill_twenty_workers,
)
from tests.kit.installation import LONG_LEASE, Nexus, all_settled, installed
from tests.kit.media import events_of, status_of
from tests.kit.plugins import extract_by_url
from tests.kit.servers import Server
from tests.kit.waiting import eventually


@pytest.fixture
def nexus(broker: Server, own_postgres_url: str, tmp_path: Path) -> Iterator[Nexus]:
    extract_by_url.register()
    with installed(own_postgres_url, tmp_path, queue="celery", redis_url=broker.url) as made:
        yield made


def submit_url(nexus: Nexus, tale: str) -> Submitted:
    """Submit a URL over HTTP and return its media."""
    app = nexus.app
    url = f"https://example.com/{tale}/{uuid4().hex}"
    return submit.url(app.sessions, app.queue, app.limits, uuid4(), "web_article", url, "request-1")


def readable(nexus: Nexus, ids: list[UUID]) -> bool:
    return {status_of(nexus.app.sessions, media_id) for media_id in ids} == {MediaStatus.READY_FOR_READING}


def once(nexus: Nexus, ids: list[UUID]) -> None:
    """Each was done at its first attempt, and none was begun twice."""
    for media_id in ids:
        assert events_of(nexus.app.sessions, media_id) == ["create", "start", "readable"]
    check_kept_promises(nexus, ids)


def test_twenty_killed_celery_workers_lose_nothing_and_do_nothing_twice(nexus: Nexus) -> None:
    ids = kill_twenty_workers(nexus)
    nexus.open_gate()
    nexus.worker()
    eventually(lambda: all_settled(nexus, ids), "everything is at an end")
    check_only_the_killed_timed_out(check_kept_promises(nexus, ids))


def test_an_emptied_redis_loses_no_work(nexus: Nexus, broker: Server) -> None:
    answers = [submit_url(nexus, "ok") for _ in range(30)]
    assert all(answer.enqueued for answer in answers)
    with Redis.from_url(broker.url) as client:
        assert client.llen("nexus") == 30
        client.flushdb()
    nexus.worker()
    ids = [answer.media_id for answer in answers]
    eventually(lambda: readable(nexus, ids), "all are readable")
    once(nexus, ids)


def test_a_long_line_of_wake_ups_does_not_grow(nexus: Nexus, broker: Server) -> None:
    """One of them drains everything, so those that wait are enough."""
    assert all(nexus.app.queue.announce(Work(EXTRACTION, uuid4())) for _ in range(ENOUGH + 20))
    with Redis.from_url(broker.url) as client:
        assert client.llen("nexus") == ENOUGH


def test_emptying_redis_while_a_worker_works_loses_no_work(nexus: Nexus, broker: Server) -> None:
    """Both prefetched and queued tasks are lost."""
    ids = [submit_url(nexus, "gated").media_id for _ in range(30)]
    nexus.worker(lease_seconds=LONG_LEASE)
    eventually(lambda: len(nexus.starts()) == 2, "both threads are at work")
    with Redis.from_url(broker.url) as client:
        client.flushdb()
    nexus.open_gate()
    eventually(lambda: readable(nexus, ids), "all are readable")
    once(nexus, ids)


def test_a_worker_outlives_its_broker_and_a_request_does_too(nexus: Nexus, broker: Server) -> None:
    worker = nexus.worker(lease_seconds=LONG_LEASE)
    at_work = [submit_url(nexus, "gated").media_id for _ in range(2)]
    eventually(lambda: len(nexus.starts()) == 2, "both threads are at work, and acknowledge late")
    broker.kill()

    # None of them waits for the broker, which is away until all are answered.
    meanwhile = [submit_url(nexus, "ok") for _ in range(3)]
    assert [(answer.created, answer.enqueued) for answer in meanwhile] == [(True, False)] * 3
    ids = [answer.media_id for answer in meanwhile]
    nexus.open_gate()
    eventually(lambda: readable(nexus, at_work), "work under way ends without a broker")
    eventually(lambda: readable(nexus, ids), "what was submitted meanwhile is found without a broker, too")

    broker.start()
    answer = eventually(lambda: announced(nexus), "a request reaches the broker again")
    eventually(lambda: readable(nexus, [answer.media_id]), "and its work is done")
    once(nexus, [*at_work, *ids, answer.media_id])
    assert worker.stop() == 0


def announced(nexus: Nexus) -> Submitted | None:
    """A new request, once it is announced: the first may still hold a connection to the broker that died."""
    answer = submit_url(nexus, "ok")
    return answer if answer.enqueued else None


def test_a_stopped_celery_worker_finishes_its_work_and_leaves_the_rest(nexus: Nexus) -> None:
    worker = nexus.worker(lease_seconds=LONG_LEASE)
    ids = [submit_url(nexus, "gated").media_id for _ in range(8)]
    eventually(lambda: len(nexus.starts()) == 2, "both threads are at work")
    worker.send(signal.SIGTERM)
    worker.wait_for("worker_stopping")
    nexus.open_gate()
    assert worker.wait() == 0
    begun = {start.media_id for start in nexus.starts()}
    assert readable(nexus, list(begun))
    assert {status_of(nexus.app.sessions, media_id) for media_id in set(ids) - begun} <= {MediaStatus.PENDING}
    nexus.worker()
    eventually(lambda: readable(nexus, ids), "the next worker does the rest")
    once(nexus, ids)
