"""Workers that die while they fetch and parse for real: every media comes to its end once, and no process is left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from nexus.media import refresh
from nexus.states.media import MediaStatus
from tests.kit.databases import copied_postgres
from tests.kit.installation import LONG_LEASE, Nexus, all_settled, count_in_status, end_leases, installed
from tests.kit.media import MediaRecord, events_of, everything_of, new_media, status_of
from tests.kit.processes import Process
from tests.kit.servers.web_pages import Answer, Pages
from tests.kit.waiting import eventually

KILLS = 4
PARAGRAPH = (
    "<p>The boats of the harbour leave early in the morning, and most are back before the evening comes.</p>"
)
PAGE = f"<html><head><title>Boats</title></head><body><article><h1>Boats</h1>{PARAGRAPH * 400}</article></body></html>"


@pytest.fixture(params=["local", "celery"])
def nexus(
    request: pytest.FixtureRequest, postgres_template: str, redis_url: str, tmp_path: Path, pages: Pages
) -> Iterator[Nexus]:
    real = {
        "plugins": (),
        "fetch_allow": (pages.place,),
        "fetch_delay_seconds": 0.0,
        "fetch_per_host": 64,  # workers that are killed leave their places taken for as long as a fetch may last
        "worker_threads": KILLS + 2,  # however many pages are held, some are read
        "fetch_seconds": 600.0,  # only what a test does may end a fetch
        "lease_seconds": LONG_LEASE,
    }
    with (
        copied_postgres(postgres_template) as url,
        installed(url, tmp_path, queue=request.param, redis_url=redis_url, **real) as made,
    ):
        yield made


def added(nexus: Nexus, pages: Pages, *paths: str) -> list[UUID]:
    user = uuid4()
    for path in paths:
        pages[path] = Answer(PAGE.encode())
    return [new_media(nexus.app, user, pages.url(path)) for path in paths]


def offspring(process: Process) -> list[int]:
    """The processes below it, by what /proc says of their parents."""
    parents: dict[int, int] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(status.parent.name)] = int(status.read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
    below = {process.pid}
    while more := {pid for pid, parent in parents.items() if parent in below} - below:
        below |= more
    return sorted(below - {process.pid})


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def held(pages: Pages) -> int:
    """How many fetches have begun that end only when the gate opens, or with their worker."""
    return sum(path.startswith("/held/") for path, _ in pages.asked)


def check(one: MediaRecord) -> None:
    """Each attempt began with a claim, and only the last one wrote."""
    events = [entry.event for entry in one.history]
    starts = events.count("start")
    assert events[0] == "create"
    assert events[1:] == ["start", "release"] * (starts - 1) + ["start", events[-1]]
    if one.row.processing_status == MediaStatus.READY_FOR_READING:
        assert (events[-1], len(one.texts)) == ("readable", 1)
    else:
        assert (one.row.last_error_code, one.texts, starts) == ("E_JOB_TIMEOUT", [], 3)


def test_workers_killed_while_parsing_lose_nothing_and_leave_no_process(nexus: Nexus, pages: Pages) -> None:
    ids: list[UUID] = []
    for number in range(KILLS):
        ids += added(nexus, pages, f"/held/{number}", *(f"/free/{number}/{n}" for n in range(3)))
        before = held(pages)
        worker = nexus.worker()
        eventually(lambda before=before: held(pages) > before, "one is being fetched, this or an earlier one")
        eventually(lambda pid=worker: offspring(pid), "there are parsers")
        below = offspring(worker)
        worker.kill()
        eventually(lambda pids=below: not any(map(alive, pids)), "its parsers are gone with it")
        end_leases(nexus)
    pages.gate.set()
    nexus.worker()
    eventually(lambda: all_settled(nexus, ids), "everything is at an end")
    for media_id in ids:
        check(everything_of(nexus.app.sessions, media_id))
    assert count_in_status(nexus, MediaStatus.READY_FOR_READING) >= len(ids) - KILLS


def test_a_stopped_worker_leaves_its_document_to_the_next(nexus: Nexus, pages: Pages) -> None:
    """As at every update: SIGTERM, then another worker."""
    (media_id,) = added(nexus, pages, "/held/one")
    worker = nexus.worker()
    eventually(lambda: pages.asked, "it is being fetched")
    pages.gate.set()
    assert worker.stop() == 0
    nexus.worker()
    eventually(
        lambda: status_of(nexus.app.sessions, media_id) is MediaStatus.READY_FOR_READING, "it is readable"
    )
    assert events_of(nexus.app.sessions, media_id)[-1] == "readable"


def test_a_refresh_whose_worker_is_killed_is_done_by_another(nexus: Nexus, pages: Pages) -> None:
    user = uuid4()
    pages["/held/one"] = Answer(PAGE.encode())
    media_id = new_media(nexus.app, user, pages.url("/held/one"))
    pages.gate.set()
    reader = nexus.worker()
    eventually(lambda: all_settled(nexus, [media_id]), "it is readable")
    assert reader.stop() == 0

    pages.gate.clear()
    refresh.request(nexus.app.sessions, nexus.app.queue, media_id, user, None)
    worker = nexus.worker()
    eventually(lambda: len(pages.asked) == 2, "it is being fetched again")
    worker.kill()
    end_leases(nexus)
    pages["/held/one"] = Answer(PAGE.replace("boats", "ships").encode())
    pages.gate.set()
    nexus.worker()
    eventually(
        lambda: "ships" in "".join(everything_of(nexus.app.sessions, media_id).texts),
        "another has refreshed it",
    )
    with nexus.app.sessions.read() as session:
        assert refresh.present(session, media_id, user) is None
    assert len(pages.asked) == 3
