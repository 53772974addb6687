"""What a worker's death, a stop and a start cost: time, and nothing else. The local queue, in real processes."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from uuid import UUID, uuid4

from nexus.extract import AVAILABLE_EXTRACTORS, Extraction, Source
from nexus.media.lifecycle import EXTRACTION
from nexus.queue import Work
from nexus.states.media import Kind, MediaStatus
from nexus.worker.threads import Workers
from tests.kit import servers
from tests.kit.faults.killed_workers import (
    check_kept_promises,
    check_only_the_killed_timed_out,
    kill_twenty_workers,
)
from tests.kit.installation import (
    Nexus,
    all_settled,
    count_in_status,
    installed,
    post_url,
    start_server,
    submit_media,
)
from tests.kit.media import events_of, row_of, status_of
from tests.kit.processes import Process
from tests.kit.waiting import PATIENCE, eventually


def test_twenty_killed_workers_lose_nothing_and_do_nothing_twice(
    own_database_url: str, tmp_path: Path
) -> None:
    with installed(own_database_url, tmp_path) as nexus:
        ids = kill_twenty_workers(nexus)
        nexus.open_gate()
        nexus.worker()
        eventually(lambda: all_settled(nexus, ids), "everything is at an end")
        check_only_the_killed_timed_out(check_kept_promises(nexus, ids))


def test_two_processes_on_one_database_start_everything_once(own_postgres_url: str, tmp_path: Path) -> None:
    with installed(own_postgres_url, tmp_path, lease_seconds=60.0) as nexus:
        workers = [nexus.worker() for _ in range(2)]
        for worker in workers:
            worker.wait_for("worker_ready")
        ids = submit_media(nexus, *["nap"] * 300)
        eventually(lambda: all_settled(nexus, ids), "all are readable")
        check_kept_promises(nexus, ids)
        started = nexus.starts()
    assert sorted(start.media_id for start in started) == sorted(ids)
    assert {start.attempt for start in started} == {1}
    assert {start.pid for start in started} == {worker.pid for worker in workers}


def test_a_stopped_worker_finishes_its_work_first(own_database_url: str, tmp_path: Path) -> None:
    with installed(own_database_url, tmp_path, worker_threads=1) as nexus:
        (first,) = submit_media(nexus, "gated")
        worker = nexus.worker()
        eventually(nexus.starts, "the work begins")
        rest = submit_media(nexus, *["gated"] * 5)
        stop_while_at_work(nexus, worker)
        assert worker.wait() == 0
        assert status_of(nexus.app.sessions, first) is MediaStatus.READY_FOR_READING
        assert {status_of(nexus.app.sessions, media_id) for media_id in rest} == {MediaStatus.PENDING}
        assert [start.media_id for start in nexus.starts()] == [first]


def stop_while_at_work(nexus: Nexus, process: Process) -> None:
    """SIGTERM, then a whole lease in which the process must live on and hold what it has, then the gate opens."""
    (held,) = {start.media_id for start in nexus.starts()}
    before = row_of(nexus.app.sessions, held).lease_expires_at
    process.send(signal.SIGTERM)
    eventually(lambda: renewed(nexus, held, before), "its lease is renewed")
    assert process.running
    nexus.open_gate()


def renewed(nexus: Nexus, media_id: UUID, before: object) -> bool:
    now = row_of(nexus.app.sessions, media_id).lease_expires_at
    return now is not None and now > before + nexus.app.tools.leases.length


def test_a_restarted_server_continues_its_work(sqlite_url: str, tmp_path: Path) -> None:
    with installed(sqlite_url, tmp_path, worker_threads=1, port=servers.free_port()) as nexus:
        server = start_server(nexus)
        first = post_url(nexus, "gated")
        eventually(nexus.starts, "the work begins")
        rest = [post_url(nexus, tale) for tale in ("ok", "ok", "fail")]
        stop_while_at_work(nexus, server)
        assert server.wait() == 0
        assert status_of(nexus.app.sessions, first) is MediaStatus.READY_FOR_READING
        assert events_of(nexus.app.sessions, first) == ["create", "start", "readable"]
        assert {status_of(nexus.app.sessions, media_id) for media_id in rest} == {MediaStatus.PENDING}
        again = start_server(nexus)
        eventually(lambda: all_settled(nexus, rest), "the rest is done")
        check_kept_promises(nexus, [first, *rest])
        assert again.stop() == 0


def working(extract: Callable[[Source], Extraction], nexus: Nexus, stack: ExitStack) -> Workers:
    """Worker threads of this process."""
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = extract
    workers = Workers(nexus.app)
    workers.start()
    stack.callback(workers.stop)
    return workers


def test_a_stopping_worker_gives_the_rest_of_its_batch_back_without_counting_a_try(
    database_url: str, tmp_path: Path
) -> None:
    reached, gate, done = threading.Event(), threading.Event(), []

    def extract(source: Source) -> Extraction:
        done.append(source.media_id)
        if not gate.is_set() and count_in_status(nexus, MediaStatus.EXTRACTING) >= 5:
            reached.set()
            assert gate.wait(PATIENCE)
        return Extraction.plain(None, "text")

    with (
        installed(database_url, tmp_path, worker_threads=1, lease_seconds=60.0) as nexus,
        ExitStack() as stack,
    ):
        ids = submit_media(nexus, *["ok"] * 200)
        workers = working(extract, nexus, stack)
        assert reached.wait(PATIENCE)
        stopper = threading.Thread(target=workers.stop)
        stopper.start()
        eventually(workers._stopping.is_set, "it is told to stop")
        gate.set()
        stopper.join(PATIENCE)
        given_back = [media_id for media_id in ids if "release" in events_of(nexus.app.sessions, media_id)]
        assert len(given_back) >= 4
        assert not set(given_back) & set(done)
        for media_id in given_back:
            row = row_of(nexus.app.sessions, media_id)
            assert (row.processing_status, row.tries, row.processing_attempts) == ("pending", 0, 1)
            assert row.lease_expires_at is None
        assert count_in_status(nexus, MediaStatus.EXTRACTING) == 0
        working(extract, nexus, stack)
        eventually(lambda: all_settled(nexus, ids), "all are readable")
        assert sorted(done) == sorted(ids)


def test_an_announcement_wakes_a_waiting_worker(sqlite_url: str, tmp_path: Path) -> None:
    """This worker would otherwise poll only every ten minutes."""
    seen = threading.Event()

    def extract(source: Source) -> Extraction:
        seen.set()
        return Extraction.plain(None, "text")

    with installed(sqlite_url, tmp_path, poll_seconds=600.0) as nexus, ExitStack() as stack:
        looked = threading.Event()
        queue = nexus.app.queue
        wait = queue.bell.wait
        queue.bell.wait = lambda *given: (looked.set(), wait(*given))
        working(extract, nexus, stack)
        assert looked.wait(PATIENCE)
        (media_id,) = submit_media(nexus, "ok")
        assert queue.announce(Work(EXTRACTION, media_id))
        assert seen.wait(PATIENCE)


def test_one_users_url_is_not_held_up_by_five_hundred_of_another(database_url: str, tmp_path: Path) -> None:
    """Whichever of the two comes first in the order of ids."""
    order: list[UUID] = []

    def extract(source: Source) -> Extraction:
        order.append(source.media_id)
        return Extraction.plain(None, "text")

    with (
        installed(database_url, tmp_path, worker_threads=2, lease_seconds=60.0) as nexus,
        ExitStack() as stack,
    ):
        users = sorted([uuid4(), uuid4(), uuid4()])
        (before,) = submit_media(nexus, "ok", user=users[0])
        many = submit_media(nexus, *["ok"] * 500, user=users[1])
        (behind,) = submit_media(nexus, "ok", user=users[2])
        working(extract, nexus, stack)
        eventually(lambda: {before, behind} <= set(order), "both are done")
        assert max(order.index(before), order.index(behind)) < 36
        assert len(set(order) & set(many)) < 500


def test_a_worker_process_shares_a_batch_among_waiting_users(database_url: str, tmp_path: Path) -> None:
    """Even for a user who arrives while the five hundred are in progress."""
    late: list[UUID] = []
    order: list[UUID] = []

    def extract(source: Source) -> Extraction:
        order.append(source.media_id)
        if len(order) == 100:
            late.extend(
                submit_media(nexus, "ok", user=UUID(int=1))
                + submit_media(nexus, "ok", user=UUID(int=2**128 - 1))
            )
        return Extraction.plain(None, "text")

    settings = {"worker_threads": 1, "lease_seconds": 60.0}
    with installed(database_url, tmp_path, **settings) as nexus, ExitStack() as stack:
        submit_media(nexus, *["ok"] * 500)
        working(extract, nexus, stack)
        eventually(lambda: len(late) == 2 and set(late) <= set(order), "the late ones are done")
        assert max(map(order.index, late)) < 100 + 2 * 50 + 36
