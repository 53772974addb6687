"""Whether the claim, the lists and the sweep cost the same with a hundred times as many media and jobs."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import bindparam, insert, update

from bench.places import Place, add_jobs, add_pending
from bench.table import Line, interleaved, ratio
from nexus.app import App, build
from nexus.db import shelves
from nexus.db.session import Statement
from nexus.db.tables import media
from nexus.editorial import job_lists
from nexus.extract import AVAILABLE_EXTRACTORS, Extraction, Source
from nexus.media import queries
from nexus.media.lifecycle import EXTRACTION
from nexus.media.list_filters import Sort, Wanted
from nexus.media.listing import list_items
from nexus.settings import Settings
from nexus.states.media import Kind, MediaStatus
from nexus.work.turns import Turns

FEW, MANY = 1_000, 100_000
CALLS = 5
ROUNDS = 15
#: After so many calls a connection has prepared its statements and chosen their plans.
SETTLED = 12
LIMIT = 1.2
#: What the tidy user has neither read nor archived, and how many of these are favourites: the oldest.
LEFT, FAVOURITES = 200, 10


_POSTPONE = Statement(
    update(media)
    .where(media.c.created_by_user_id == bindparam("user_id"))
    .values(run_after=bindparam("never"))
)


def _noting(*names: str) -> Statement:
    """An INSERT of what somebody notes."""
    columns = ("user_id", "media_id", *names, "changed_at")
    return Statement(
        insert(shelves.shelf).values({shelves.shelf.c[name]: bindparam(name) for name in columns})
    )


_FAVOUR, _ARCHIVE = _noting("favourite_at"), _noting("read_at", "archived_at")


@dataclass(frozen=True)
class Shelf:
    """A Nexus, its one user with so many media and jobs, and the cursors in the middle of them."""

    app: App
    user: UUID
    deep: str
    deep_jobs: str
    turns: Turns
    #: Somebody who has read and archived nearly everything.
    tidy_user: UUID


def ask(place: Place) -> list[Line]:
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = _never
    lines = []
    for backend in ("sqlite", "postgres"):
        few, many = (_shelf(place, backend, size) for size in (FEW, MANY))
        for what, call in CALLS_OF.items():
            # What the question before left behind is tidied on both shelves, and not on one of them by chance.
            for shelf in (few, many):
                _tidy(shelf.app, backend)
            lines.append(_compare(f"{what}, {backend}", call, few, many))
        for shelf in (few, many):
            shelf.app.close()
    return lines


def _compare(what: str, call: Callable[[Shelf], float], few: Shelf, many: Shelf) -> Line:
    figures = interleaved(ROUNDS, {"few": partial(call, few), "many": partial(call, many)})
    cost = {name: f"{median(rounds) * 1000:.2f} ms" for name, rounds in figures.items()}
    return Line(
        f"{what}: {MANY:,} beside {FEW:,}",
        cost["many"],
        cost["few"],
        ratio(figures, "many", "few"),
        at_most=LIMIT,
    )


def _claim(shelf: Shelf) -> float:
    """Ten at a time; each claim is given back, outside of the time, so that no shelf runs empty."""
    total = 0.0
    for _ in range(CALLS):
        began = time.perf_counter()
        claims = shelf.turns.claim(shelf.app.kernel.handlers[EXTRACTION], 10)
        total += time.perf_counter() - began
        assert len(claims) == 10
        shelf.app.kernel.give_back(claim.hold for claim in claims)
    return total / CALLS


def _list(shelf: Shelf, cursor: Callable[[Shelf], str | None]) -> float:
    began = time.perf_counter()
    for _ in range(CALLS):
        with shelf.app.sessions.snapshot() as session:
            page = list_items(session, shelf.user, cursor=cursor(shelf))
        assert len(page.items) == queries.PAGE
    return (time.perf_counter() - began) / CALLS


def _narrowed(shelf: Shelf, wanted: Wanted, found: int) -> float:
    """A list that leaves out nearly everything: the same few items beside few and beside many."""
    began = time.perf_counter()
    for _ in range(CALLS):
        with shelf.app.sessions.snapshot() as session:
            assert len(list_items(session, shelf.user, wanted).items) == found
    return (time.perf_counter() - began) / CALLS


def _narrowed(shelf: Shelf, wanted: Wanted, found: int) -> float:
    """A list that leaves out nearly everything: the same few items beside few and beside many."""
    began = time.perf_counter()
    for _ in range(CALLS):
        with shelf.app.sessions.snapshot() as session:
            page = list_items(session, shelf.tidy_user, wanted)
        assert len(page.items) == found
    return (time.perf_counter() - began) / CALLS


def _desk(shelf: Shelf, cursor: Callable[[Shelf], str | None]) -> float:
    began = time.perf_counter()
    for _ in range(CALLS):
        with shelf.app.sessions.read() as session:
            page = job_lists.newest_jobs(session, shelf.user, cursor=cursor(shelf))
        assert len(page.items) == queries.PAGE
    return (time.perf_counter() - began) / CALLS


def _sweep(shelf: Shelf) -> float:
    """Nothing has expired; what waits is found again and announced to idle threads, up to the sweep's own limit.

    On a new connection, once its statements are prepared: so short a call costs what the way to this one server process
    costs, and which core that is on stays as it is for as long as it lives.
    """
    shelf.app.sessions.dispose()
    for _ in range(SETTLED):
        shelf.app.kernel.sweep(shelf.app.queue)
    began = time.perf_counter()
    for _ in range(CALLS):
        assert shelf.app.kernel.sweep(shelf.app.queue).released == 0
    return (time.perf_counter() - began) / CALLS


CALLS_OF: dict[str, Callable[[Shelf], float]] = {
    "claim of 10": _claim,
    "list, first page": partial(_list, cursor=lambda _: None),
    "list, deep page": partial(_list, cursor=lambda shelf: shelf.deep),
    "list behind archived items": partial(_narrowed, wanted=Wanted(), found=queries.PAGE),
    "the same by title": partial(_narrowed, wanted=Wanted(sort=Sort.TITLE), found=queries.PAGE),
    "unread behind read items": partial(
        _narrowed, wanted=Wanted(is_read=False, is_archived=None, sort=Sort.TIME), found=queries.PAGE
    ),
    "few favourites": partial(
        _narrowed, wanted=Wanted(is_favourite=True, is_archived=None), found=FAVOURITES
    ),
    "a state of no item": partial(
        _narrowed, wanted=Wanted(statuses=frozenset({MediaStatus.FAILED}), is_archived=None), found=0
    ),
    "a kind of no item": partial(_narrowed, wanted=Wanted(kind=Kind.EPUB, is_archived=None), found=0),
    "jobs, first page": partial(_desk, cursor=lambda _: None),
    "jobs, deep page": partial(_desk, cursor=lambda shelf: shelf.deep_jobs),
    "sweep": _sweep,
}


def _shelf(place: Place, backend: str, size: int) -> Shelf:
    url = place.migrated(backend)
    given = {"env": "test", "database_url": url, "data_dir": Path(tempfile.gettempdir())}
    app = build(Settings(_env_file=None, **given))  # type: ignore[arg-type]
    user = uuid4()
    add_pending(app.sessions, user, size)
    add_jobs(app.sessions, user, size)
    tidy_user = _add_tidy_user(app, size)
    _tidy(app, backend)
    deep = (_half_way(app, user, size, listing) for listing in (list_items, job_lists.newest_jobs))
    return Shelf(app, user, *deep, Turns(app.sessions, app.tools.leases.length), tidy_user)


def _add_tidy_user(app: App, size: int) -> UUID:
    """Their items are not due, so that others' claims don't take turns with them."""
    user = uuid4()
    made = add_pending(app.sessions, user, size)
    with app.sessions.begin() as session:
        now, never = session.now, session.now + timedelta(days=365)
        session.run(_POSTPONE, user_id=user, never=never)
        noted = {"user_id": user, "changed_at": now}
        session.run_many(
            _FAVOUR, [{**noted, "media_id": one, "favourite_at": now} for one in made[:FAVOURITES]]
        )
        session.run_many(
            _ARCHIVE, [{**noted, "media_id": one, "read_at": now, "archived_at": now} for one in made[LEFT:]]
        )
    return user


def _tidy(app: App, backend: str) -> None:
    """Statistics, as autovacuum makes them within a minute; a bench does not wait that long."""
    pooled = app.sessions.engine.raw_connection()
    pooled.driver_connection.execute("ANALYZE" if backend == "sqlite" else "VACUUM ANALYZE")
    pooled.close()


def _half_way(app: App, user: UUID, size: int, listing: Callable[..., Any]) -> str:
    """The cursor behind the middle of a list."""
    cursor: str | None = None
    for _ in range(size // 2 // queries.MOST):
        with app.sessions.read() as session:
            cursor = listing(session, user, cursor=cursor, most=queries.MOST).next_cursor
    assert cursor is not None
    return cursor


def _never(source: Source) -> Extraction:
    raise AssertionError(source)
