"""How many editorial jobs per second go through fetch and extraction, compared with the same calls without state."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from statistics import median
from uuid import uuid4

from sqlalchemy import func, select

from bench import articles, pages
from bench.articles import CORES, COUNT, PATIENCE, ROUNDS
from bench.places import Place
from bench.table import Line, interleaved, ratio
from nexus.app import App, load_extractors
from nexus.db.editorial import jobs as jobs_table
from nexus.db.session import Statement
from nexus.db.tables import history, one_of
from nexus.editorial import jobs, steps
from nexus.extract import AVAILABLE_EXTRACTORS
from nexus.libraries import access
from nexus.states.job import HELD
from nexus.worker.threads import Workers

_BUSY = Statement(
    select(func.count().label("count")).select_from(jobs_table).where(one_of(jobs_table.c.status, HELD))
)
#: When a worker's first step began and the last one ended, according to the rows.
_SPAN = Statement(
    select(func.min(history.c.at).label("began"), func.max(history.c.at).label("ended")).where(
        history.c.subject == "job", history.c.actor == "worker"
    )
)


def ask(place: Place) -> list[Line]:
    with pages.served(pages.load(COUNT)) as urls:
        contestants: dict[str, Callable[[], float]] = {
            "nexus": partial(_nexus, place, urls),
            "bare loop": partial(_bare, urls),
        }
        figures = interleaved(ROUNDS, contestants, warm_up=False)
    speed = {name: f"{median(rounds):.0f}/s" for name, rounds in figures.items()}
    return [
        Line(
            "jobs fetched and read, against a bare loop",
            speed["nexus"],
            speed["bare loop"],
            ratio(figures, "nexus", "bare loop"),
            at_least=0.8,
        )
    ]


def _nexus(place: Place, urls: list[str]) -> float:
    """Work as `nexus serve` does, on SQLite: workers fetch every job and extract its text."""
    AVAILABLE_EXTRACTORS.clear()
    app = articles.app_for(place, urls)
    load_extractors(app.settings)
    articles.warm_up(app, urls[0])
    _begin(app, urls)
    workers = Workers(app)
    workers.start()
    try:
        _wait(app)
        with app.sessions.read() as session:
            span = session.first(_SPAN)
        return len(urls) / (span.ended - span.began).total_seconds()
    finally:
        workers.stop()
        app.close()
        AVAILABLE_EXTRACTORS.clear()


def _begin(app: App, urls: list[str]) -> None:
    user = uuid4()
    with app.sessions.begin() as session:
        library = access.ensure_user(session, user)
        begun = [jobs.queue_job(session, user, library, url, {}) for url in urls]
    for job_id in begun:
        steps.leave_fetch(app.tools, job_id, str(user))


def _wait(app: App) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        with app.sessions.read() as session:
            busy = session.first(_BUSY)
        if not busy.count:
            return
        time.sleep(0.1)
    raise RuntimeError("the jobs were not done in time")


def _bare(urls: list[str]) -> float:
    with ProcessPoolExecutor(CORES, mp_context=get_context("spawn")) as pool:
        list(pool.map(articles.read_bare, urls[: CORES * 2]))
        began = time.perf_counter()
        list(pool.map(articles.read_bare, urls))
        return len(urls) / (time.perf_counter() - began)
