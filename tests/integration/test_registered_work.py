"""A kind of work that Nexus does not bring: it is claimed, leased, retried and swept like any other."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import pytest
from sqlalchemy import (
    Column,
    ColumnElement,
    DateTime,
    Integer,
    MetaData,
    String,
    Table,
    Uuid,
    bindparam,
    insert,
    literal_column,
    null,
    select,
    text,
    update,
)
from sqlalchemy.schema import CreateTable

from nexus.app import App
from nexus.db.session import Query, Session, Statement
from nexus.errors import ExtractionFailed, FetchBusy, FetchFailed, WorkError
from nexus.extract import AVAILABLE_EXTRACTORS
from nexus.queue import Work
from nexus.states.media import Kind
from nexus.work.backlog import Backlog
from nexus.work.handler import WORKER, Claim, EndedAttempt, Handler, Hold
from nexus.work.retry import Again, decide
from nexus.work.turns import Turns
from nexus.worker import threads
from nexus.worker.threads import Workers
from tests.kit.clock import SetClock
from tests.kit.media import good_extractor, new_media
from tests.kit.waiting import PATIENCE, eventually

WAITING = "state = 'waiting'"
BELLS = Table(
    "bells",
    MetaData(),
    Column("id", Uuid, primary_key=True),
    Column("owner", Uuid, nullable=False),
    Column("state", String(16), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("run_after", DateTime(timezone=True), nullable=False),
    Column("lease_expires_at", DateTime(timezone=True)),
)


class Bell(NamedTuple):
    id: UUID
    owner: UUID
    state: str
    attempt: int
    tries: int
    run_after: datetime
    lease_expires_at: datetime | None


def _claim(which: ColumnElement[bool]) -> Query[Bell]:
    return Query(
        update(BELLS)
        .where(which, BELLS.c.state == "waiting", BELLS.c.run_after <= bindparam("now"))
        .values(
            state=literal_column("'held'"),
            attempt=BELLS.c.attempt + literal_column("1"),
            tries=BELLS.c.tries + literal_column("1"),
            lease_expires_at=bindparam("until", type_=BELLS.c.lease_expires_at.type),
        )
        .returning(*BELLS.c),
        Bell,
    )


_NEW = Statement(insert(BELLS).values({column: bindparam(column.name) for column in BELLS.c}))
_ALL = Query(select(BELLS), Bell)
_ONE = _claim(BELLS.c.id == bindparam("row_id", type_=Uuid))
_END = Statement(
    update(BELLS)
    .where(BELLS.c.id == bindparam("row_id", type_=Uuid), BELLS.c.attempt == bindparam("fence"))
    .values(
        state=bindparam("new_state"),
        tries=BELLS.c.tries - bindparam("uncounted", type_=Integer),
        run_after=bindparam("later", type_=BELLS.c.run_after.type),
        lease_expires_at=null(),
    )
)


class Ringing(Handler[Bell, WorkError | None]):
    """Rings bells. Each may refuse with the errors that it was given, one after the other."""

    kind = "bell"
    backlog = Backlog(BELLS, key=BELLS.c.id, fence=BELLS.c.attempt, user=BELLS.c.owner, waiting=WAITING)
    log_event, log_id = "ring", "bell_id"

    def __init__(self, app: App) -> None:
        self._app = app
        self.rung: list[UUID] = []
        self.errors: list[WorkError] = []
        self.on_ring: Callable[[], object] = lambda: None
        #: Where those who ring wait for each other.
        self.meeting: threading.Barrier | None = None

    def claim(self, session: Session, row_id: UUID, lease: timedelta) -> Claim[Bell] | None:
        row = session.first(_ONE, row_id=row_id, now=session.now, until=session.now + lease)
        return None if row is None else _claimed(row)

    def claim_due(
        self, session: Session, lane: str | None, user_id: UUID, most: int, lease: timedelta
    ) -> list[Claim[Bell]]:
        picked = self.backlog.pick(most).cte("picked")
        query = _claim(BELLS.c.id.in_(select(picked.c.id)))
        rows = session.all(query, lane=lane, user_id=user_id, now=session.now, until=session.now + lease)
        return [_claimed(row) for row in rows]

    def do(self, claim: Claim[Bell]) -> WorkError | None:
        self.rung.append(claim.subject.id)
        self.on_ring()
        if self.meeting is not None:
            self.meeting.wait()
        return self.errors.pop(0) if self.errors else None

    def settle(self, ended: Sequence[EndedAttempt[Bell, WorkError | None]]) -> list[str]:
        return [self._settled(one.claim, one.result) for one in ended]

    def put_down(
        self, session: Session, hold: Hold, again: Again | None, error: WorkError | None, actor: str
    ) -> bool:
        if again is None:
            return _end(session, hold, "broken")
        return _end(session, hold, "waiting", again)

    def _settled(self, claim: Claim[Bell], error: WorkError | None) -> str:
        with self._app.sessions.begin() as session:
            if error is None:
                return "rung" if _end(session, claim.hold, "rung") else "stale"
            again = decide(error, claim.tries, 5.0)
            self.put_down(session, claim.hold, again, error, WORKER)
            return "broken" if again is None else "put off"


def _end(session: Session, hold: Hold, state: str, again: Again | None = None) -> bool:
    later = session.now + (again.wait if again else timedelta(0))
    uncounted = 1 if again and not again.counted else 0
    values = {"new_state": state, "later": later, "uncounted": uncounted}
    return session.run(_END, row_id=hold.work.id, fence=hold.attempt, **values) > 0


def _claimed(row: Bell) -> Claim[Bell]:
    return Claim(Hold(Work(Ringing.kind, row.id), row.attempt), row.tries, row, None)


@pytest.fixture
def ringing(app: App) -> Iterator[Ringing]:
    """A Nexus that rings bells, too."""
    with app.sessions.begin() as session:
        session.run(Statement(text(str(CreateTable(BELLS).compile(dialect=session.dialect)))))
    handler = Ringing(app)
    app.kernel.register(handler)
    yield handler
    with app.sessions.begin() as session:
        session.run(Statement(text("DROP TABLE bells")))


def new_bell(app: App, owner: UUID | None = None) -> UUID:
    with app.sessions.begin() as session:
        return add_bell(session, owner or uuid4())


def add_bell(session: Session, owner: UUID) -> UUID:
    bell_id = uuid4()
    session.run(
        _NEW,
        id=bell_id,
        owner=owner,
        state="waiting",
        attempt=0,
        tries=0,
        run_after=session.now,
        lease_expires_at=None,
    )
    return bell_id


def bells(app: App) -> dict[UUID, Bell]:
    with app.sessions.read() as session:
        return {row.id: row for row in session.all(_ALL)}


def test_registered_work_runs_when_asked_for(app: App, ringing: Ringing) -> None:
    bell_id = new_bell(app)
    assert app.kernel.run(Work("bell", bell_id)) == "rung"
    assert app.kernel.run(Work("bell", bell_id)) is None
    assert (ringing.rung, bells(app)[bell_id].state) == ([bell_id], "rung")


def test_worker_threads_find_registered_work(app: App, ringing: Ringing) -> None:
    asked = {new_bell(app) for _ in range(10)}
    workers = Workers(app)
    workers.start()
    app.queue.announce(Work("bell", next(iter(asked))))
    eventually(lambda: {row.state for row in bells(app).values()} == {"rung"}, "all have rung")
    workers.stop()
    assert sorted(ringing.rung) == sorted(asked)


def test_registered_work_that_could_not_begin_uses_up_no_try(
    app: App, ringing: Ringing, clock: SetClock
) -> None:
    bell_id = new_bell(app)
    ringing.errors = [FetchBusy(), FetchBusy(), FetchBusy(), FetchBusy()]
    for _ in range(4):
        assert app.kernel.run(Work("bell", bell_id)) == "put off"
        assert bells(app)[bell_id].tries == 0
        assert app.kernel.run(Work("bell", bell_id)) is None
        clock.forward(minutes=1)
    assert app.kernel.run(Work("bell", bell_id)) == "rung"


def test_registered_work_is_given_up_after_three_tries_or_one_final_error(
    app: App, ringing: Ringing, clock: SetClock
) -> None:
    patient, hopeless = new_bell(app), new_bell(app)
    ringing.errors = [ExtractionFailed()]
    assert app.kernel.run(Work("bell", hopeless)) == "broken"
    ringing.errors = [FetchFailed(), FetchFailed(), FetchFailed()]
    outcomes = []
    for _ in range(3):
        outcomes.append(app.kernel.run(Work("bell", patient)))
        clock.forward(minutes=1)
    assert outcomes == ["put off", "put off", "broken"]


def test_registered_work_of_a_lost_worker_is_swept_up_and_its_late_result_refused(
    app: App, ringing: Ringing, clock: SetClock
) -> None:
    bell_id = new_bell(app)
    [lost] = Turns(app.sessions, app.kernel.leases.length).claim(ringing, 5)
    clock.forward(hours=1)
    assert app.kernel.sweep(app.queue).released == 1
    clock.forward(minutes=1)
    assert app.kernel.run(Work("bell", bell_id)) == "rung"
    assert app.kernel.settle([EndedAttempt(lost, None)]) == ["stale"]


def test_registered_work_is_shared_out_among_users(app: App, ringing: Ringing) -> None:
    greedy, modest = uuid4(), uuid4()
    for _ in range(8):
        new_bell(app, greedy)
    new_bell(app, modest)
    claims = Turns(app.sessions, app.kernel.leases.length).claim(ringing, 2)
    assert {claim.subject.owner for claim in claims} == {greedy, modest}


def test_a_lease_of_registered_work_is_renewed(app: App, ringing: Ringing, clock: SetClock) -> None:
    bell_id = new_bell(app)
    [claim] = Turns(app.sessions, app.kernel.leases.length).claim(ringing, 1)
    with app.kernel.leases.hold(claim.hold):
        clock.forward(seconds=50)
        app.kernel.leases.renew()
        assert bells(app)[bell_id].lease_expires_at == clock() + app.kernel.leases.length


def with_threads(app: App, count: int) -> Workers:
    return Workers(replace(app, settings=app.settings.model_copy(update={"worker_threads": count})))


def test_long_work_is_not_queued_up_behind_one_thread(app: App, ringing: Ringing) -> None:
    """However short the work before it was."""
    workers = with_threads(app, 2)
    workers.start()
    for _ in range(30):
        new_bell(app)
    app.queue.bell.ring()
    eventually(lambda: len(ringing.rung) == 30, "short work is done")
    ringing.meeting = threading.Barrier(2, timeout=PATIENCE)
    with app.sessions.begin() as session:
        owner = uuid4()
        long_work = [add_bell(session, owner) for _ in range(2)]
    app.queue.bell.ring()
    eventually(lambda: all(bells(app)[one].state == "rung" for one in long_work), "both were done at once")
    workers.stop()


def test_kinds_of_work_take_turns(app: App, ringing: Ringing, installed_extractors: None) -> None:
    done: list[str] = []
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = lambda source: done.append("item") or good_extractor(source)
    ringing.on_ring = lambda: done.append("bell")
    for _ in range(20):
        new_media(app)
    new_bell(app)
    workers = with_threads(app, 1)
    workers.start()
    eventually(lambda: "bell" in done, "the bell has rung")
    workers.stop()
    assert done.index("bell") <= 2


@pytest.mark.parametrize(("seconds", "looks"), [(0.0, 6), (3600.0, 1)], ids=["long ago", "just now"])
def test_a_busy_thread_asks_first_for_kinds_that_were_not_empty_just_now(
    app: App, ringing: Ringing, monkeypatch: pytest.MonkeyPatch, seconds: float, looks: int
) -> None:
    monkeypatch.setattr(threads, "EMPTY_SECONDS", seconds)
    asked: Counter[str] = Counter()
    workers = with_threads(app, 1)
    claim = workers._turns.claim

    def counted(handler: Handler[Any, Any], most: int) -> list[Claim[Any]]:
        asked[handler.kind] += 1
        return claim(handler, most)

    monkeypatch.setattr(workers._turns, "claim", counted)
    for _ in range(6):
        new_bell(app)
        workers._work_once()
    assert (len(ringing.rung), asked["step"]) == (6, looks)


def test_one_idle_thread_looks_for_work_by_the_clock(app: App) -> None:
    looks: list[str] = []
    app = replace(app, settings=app.settings.model_copy(update={"worker_threads": 4, "poll_seconds": 0.001}))
    workers = Workers(app)
    work_once = workers._work_once

    def counted() -> bool:
        looks.append(threading.current_thread().name)
        return work_once()

    workers._work_once = counted  # type: ignore[method-assign]
    workers.start()
    eventually(
        lambda: len(set(looks)) == 4 and len(set(looks[-50:])) == 1,
        "after its first look, each waits but one",
    )
    workers.stop()


def test_work_that_has_lost_its_lease_while_it_waited_is_not_begun(
    app: App, ringing: Ringing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Ringing, "settles_together", True)
    owner = uuid4()
    with app.sessions.begin() as session:
        asked = {add_bell(session, owner) for _ in range(2)}
    claims = Turns(app.sessions, timedelta(seconds=60)).claim(ringing, 2)
    assert {claim.subject.id for claim in claims} == asked
    ringing.on_ring = lambda: app.kernel.leases.let_go(*(claim.hold for claim in claims))
    with_threads(app, 1)._work_through(ringing, claims)
    assert len(ringing.rung) == 1
