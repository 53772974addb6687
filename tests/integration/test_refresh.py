"""Refreshes: the old text stays until its user has a new one, whatever happens on the way."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import bindparam, select

from nexus.app import App, build
from nexus.db.session import Statement
from nexus.db.tables import fragments, refreshes, revisions
from nexus.errors import (
    ExtractionFailed,
    FetchBusy,
    FetchFailed,
    Forbidden,
    InvalidState,
    NotFound,
    WorkError,
)
from nexus.extract import AVAILABLE_EXTRACTORS, Extraction, Fragment, Source
from nexus.libraries import catalog
from nexus.libraries.access import Role
from nexus.media import queries, refresh
from nexus.media.runner import Outcome
from nexus.media.workbench import Unchanged
from nexus.queue import Queue, Work
from nexus.queue.local import LocalQueue
from nexus.states.media import Kind, MediaStatus
from nexus.worker.threads import Workers
from tests.kit.clock import SetClock
from tests.kit.media import (
    finish_embedding,
    new_media,
    row_of,
    share_media,
    start_embedding,
    status_of,
    walk_media_to,
)
from tests.kit.settings import make_settings
from tests.kit.work import extract_item, refresh_item, sweep

_REVISIONS = Statement(
    select(revisions).where(revisions.c.media_id == bindparam("media_id")).order_by(revisions.c.number)
)
_FRAGMENTS = Statement(
    select(fragments)
    .where(fragments.c.media_id == bindparam("media_id"), fragments.c.revision == bindparam("number"))
    .order_by(fragments.c.position)
)
_REFRESH = Statement(select(refreshes).where(refreshes.c.media_id == bindparam("media_id")))


def reads(*texts: str, title: str = "A title") -> None:
    """From now on, every article has this text."""
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = lambda source: Extraction.plain(title, *texts)


def fails(error: WorkError) -> None:
    def extract(source: Source) -> Extraction:
        raise error

    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = extract


def readable(app: App, user: UUID, *texts: str) -> UUID:
    reads(*texts)
    media_id = new_media(app, user)
    assert extract_item(app.tools, media_id) is Outcome.READABLE
    return media_id


def ask(app: App, media_id: UUID, user: UUID) -> None:
    refresh.request(app.sessions, LocalQueue(), media_id, user, None)


def one(app: App, statement: Statement, media_id: UUID) -> Any:
    with app.sessions.read() as session:
        return session.first(statement, media_id=media_id)


def fragments_of(app: App, media_id: UUID, user: UUID) -> list[Any]:
    """The text that a user sees."""
    with app.sessions.read() as session:
        number = queries.get_media(session, media_id, user).row.revision
        return session.all(_FRAGMENTS, media_id=media_id, number=number)


def texts_of(app: App, media_id: UUID, user: UUID) -> list[str]:
    return [row.text for row in fragments_of(app, media_id, user)]


def ids_of(app: App, media_id: UUID, user: UUID) -> list[UUID]:
    return [row.id for row in fragments_of(app, media_id, user)]


def numbers_of(app: App, media_id: UUID) -> list[int]:
    with app.sessions.read() as session:
        return [row.number for row in session.all(_REVISIONS, media_id=media_id)]


@pytest.fixture
def user() -> UUID:
    return uuid4()


def test_a_refresh_makes_a_new_revision(app: App, user: UUID) -> None:
    media_id = readable(app, user, "old")
    ask(app, media_id, user)
    reads("new", "more", title="A new title")
    assert refresh_item(app.tools, media_id) == "revision 2"
    assert texts_of(app, media_id, user) == ["new", "more"]
    with app.sessions.read() as session:
        row = queries.get_media(session, media_id, user).row
    assert (row.title, row.processing_status, row.processing_attempts) == (
        "A new title",
        "ready_for_reading",
        1,
    )
    assert numbers_of(app, media_id) == [1, 2]
    assert one(app, _REFRESH, media_id) is None


def test_the_old_text_is_readable_during_a_refresh(app: App, user: UUID) -> None:
    media_id = readable(app, user, "old")
    seen: list[list[str]] = []

    def extract(source: Source) -> Extraction:
        seen.append(texts_of(app, source.media_id, user))
        return Extraction.plain(None, "new")

    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = extract
    ask(app, media_id, user)
    refresh_item(app.tools, media_id)
    assert (seen, texts_of(app, media_id, user)) == ([["old"]], ["new"])
    assert row_of(app.sessions, media_id).title == "A title"


def test_a_fragment_keeps_its_id_while_its_text_stays(app: App, user: UUID) -> None:
    media_id = readable(app, user, "one", "twice", "twice")
    first = ids_of(app, media_id, user)
    assert len(set(first)) == 3
    ask(app, media_id, user)
    reads("zero", "twice", "one")
    refresh_item(app.tools, media_id)
    second = ids_of(app, media_id, user)
    assert second[1:] == [first[1], first[0]]
    assert second[0] not in first


def test_a_failed_refresh_keeps_the_text_and_says_why(app: App, user: UUID) -> None:
    media_id = readable(app, user, "old")
    ask(app, media_id, user)
    fails(ExtractionFailed("The page is empty now."))
    assert refresh_item(app.tools, media_id) == "failed"
    assert texts_of(app, media_id, user) == ["old"]
    assert status_of(app.sessions, media_id) is MediaStatus.READY_FOR_READING
    told = one(app, _REFRESH, media_id)
    assert (told.error_code, told.error_message) == ("E_EXTRACTION_FAILED", "The page is empty now.")
    assert refresh_item(app.tools, media_id) is None

    ask(app, media_id, user)
    reads("new")
    assert refresh_item(app.tools, media_id) == "revision 2"


def test_a_refresh_whose_extractor_breaks_keeps_the_text(app: App, user: UUID) -> None:
    media_id = readable(app, user, "old")
    ask(app, media_id, user)

    def extract(source: Source) -> Extraction:
        raise RuntimeError

    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = extract
    assert refresh_item(app.tools, media_id) == "failed"
    assert texts_of(app, media_id, user) == ["old"]


def test_a_refresh_without_an_extractor_waits_for_one(app: App, user: UUID, clock: SetClock) -> None:
    media_id = readable(app, user, "old")
    ask(app, media_id, user)
    AVAILABLE_EXTRACTORS.clear()
    for _ in range(5):
        assert refresh_item(app.tools, media_id) == "released"
        clock.forward(minutes=5)
    reads("new")
    assert refresh_item(app.tools, media_id) == "revision 2"
    assert texts_of(app, media_id, user) == ["new"]


def test_a_refresh_is_tried_three_times_after_transient_failures(
    app: App, user: UUID, clock: SetClock
) -> None:
    media_id = readable(app, user, "old")
    ask(app, media_id, user)
    fails(FetchFailed())
    outcomes = []
    for _ in range(3):
        outcomes.append(refresh_item(app.tools, media_id))
        assert refresh_item(app.tools, media_id) is None, "it is put off"
        clock.forward(minutes=5)
    assert outcomes == ["released", "released", "failed"]
    assert texts_of(app, media_id, user) == ["old"]


def test_a_refresh_of_an_unchanged_page_changes_nothing(app: App, user: UUID) -> None:
    media_id = readable(app, user, "old")
    ask(app, media_id, user)

    def extract(source: Source) -> Extraction:
        raise Unchanged

    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = extract
    assert refresh_item(app.tools, media_id) == "unchanged"
    assert numbers_of(app, media_id) == [1]
    assert one(app, _REFRESH, media_id) is None


def test_a_refresh_replaces_html_and_facts_with_the_text(app: App, user: UUID) -> None:
    media_id = readable(app, user, "old")
    ask(app, media_id, user)
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = lambda source: Extraction(None, (Fragment("new", "<p>new</p>"),))
    refresh_item(app.tools, media_id)
    (row,) = fragments_of(app, media_id, user)
    assert (row.text, row.html) == ("new", "<p>new</p>")


def test_a_refresh_that_lost_its_lease_writes_nothing(app: App, user: UUID, clock: SetClock) -> None:
    media_id = readable(app, user, "old")
    ask(app, media_id, user)
    inner: list[object] = []

    def slow(source: Source) -> Extraction:
        clock.forward(hours=1)
        sweep(app.tools, LocalQueue())
        clock.forward(minutes=1)
        reads("by the second")
        inner.append(refresh_item(app.tools, source.media_id))
        return Extraction.plain(None, "too late")

    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = slow
    outcome = refresh_item(app.tools, media_id)
    assert (outcome, inner) == ("stale", ["revision 2"])
    assert texts_of(app, media_id, user) == ["by the second"]


def lose_worker(app: App, media_id: UUID, clock: SetClock) -> None:
    """A worker dies in the middle of the refresh, and its lease ends."""

    def die(source: Source) -> Extraction:
        raise KeyboardInterrupt

    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = die
    with pytest.raises(KeyboardInterrupt):
        refresh_item(app.tools, media_id)
    clock.forward(hours=1)


def test_a_refresh_whose_worker_is_gone_fails_with_a_timeout(app: App, user: UUID, clock: SetClock) -> None:
    media_id = readable(app, user, "old")
    ask(app, media_id, user)
    for _ in range(3):
        lose_worker(app, media_id, clock)
        assert sweep(app.tools, LocalQueue()).released == 1
        clock.forward(hours=1)
    assert one(app, _REFRESH, media_id).error_code == "E_JOB_TIMEOUT"
    assert texts_of(app, media_id, user) == ["old"]


@pytest.mark.parametrize(
    "status", [MediaStatus.PENDING, MediaStatus.EXTRACTING, MediaStatus.FAILED, MediaStatus.EMBEDDING]
)
def test_only_readable_items_at_rest_can_be_refreshed(app: App, user: UUID, status: MediaStatus) -> None:
    media_id = new_media(app, user)
    walk_media_to(app, media_id, status)
    with pytest.raises(InvalidState):
        ask(app, media_id, user)
    assert one(app, _REFRESH, media_id) is None


def test_a_refresh_waits_for_a_running_embedding(app: App, user: UUID, clock: SetClock) -> None:
    media_id = readable(app, user, "old")
    ask(app, media_id, user)
    reads("new")
    attempt = start_embedding(app, media_id)
    assert refresh_item(app.tools, media_id) == "released"
    assert texts_of(app, media_id, user) == ["old"]
    assert finish_embedding(app, media_id, attempt)
    clock.forward(minutes=1)
    assert refresh_item(app.tools, media_id) == "revision 2"


def test_only_users_who_may_change_an_item_can_refresh_it(app: App, user: UUID) -> None:
    media_id = readable(app, user, "old")
    member, stranger = uuid4(), uuid4()
    share_media(app, user, media_id, (member, Role.MEMBER))
    with pytest.raises(Forbidden):
        ask(app, media_id, member)
    with pytest.raises(NotFound):
        ask(app, media_id, stranger)


def test_requesting_a_refresh_twice_runs_it_once(app: App, user: UUID) -> None:
    media_id = readable(app, user, "old")
    ask(app, media_id, user)
    ask(app, media_id, user)
    reads("new")
    assert refresh_item(app.tools, media_id) == "revision 2"
    assert refresh_item(app.tools, media_id) is None


class AskedMeanwhile:
    """An extractor with given outcomes. During the first of them, somebody asks for another refresh."""

    def __init__(self, app: App, user: UUID, *ends: str | Exception) -> None:
        self._app, self._user, self._ends = app, user, list(ends)
        self.begun = 0
        AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = self

    def __call__(self, source: Source) -> Extraction:
        self.begun += 1
        if self.begun == 1:
            ask(self._app, source.media_id, self._user)
        end = self._ends.pop(0)
        if isinstance(end, Exception):
            raise end
        return Extraction.plain(None, end)


ENDS: list[str | Exception] = ["first", Unchanged(), ExtractionFailed(), FetchFailed(), FetchBusy()]


@pytest.mark.parametrize("end", ENDS, ids=lambda end: type(end).__name__)
def test_a_refresh_that_is_asked_for_during_another_is_done_after_it(
    app: App, user: UUID, end: str | Exception
) -> None:
    """However the older one ends; at once, and only once."""
    media_id = readable(app, user, "old")
    ask(app, media_id, user)
    extract = AskedMeanwhile(app, user, end, "second")
    assert str(refresh_item(app.tools, media_id)).startswith("revision ")
    assert (texts_of(app, media_id, user), extract.begun) == (["second"], 2)
    assert one(app, _REFRESH, media_id) is None
    assert refresh_item(app.tools, media_id) is None


def test_a_refresh_that_is_asked_for_during_another_has_all_its_tries(
    app: App, user: UUID, clock: SetClock
) -> None:
    media_id = readable(app, user, "old")
    ask(app, media_id, user)
    fails(FetchFailed())
    for _ in range(2):
        assert refresh_item(app.tools, media_id) == "released"
        clock.forward(minutes=5)
    AskedMeanwhile(app, user, *[FetchFailed()] * 4)
    outcomes = []
    for _ in range(3):
        outcomes.append(refresh_item(app.tools, media_id))
        clock.forward(minutes=5)
    assert outcomes == ["released", "released", "failed"]
    assert one(app, _REFRESH, media_id).error_code == "E_FETCH_FAILED"


def test_a_refresh_that_is_asked_for_while_a_lost_worker_holds_it_is_due_at_once(
    app: App, user: UUID, clock: SetClock
) -> None:
    media_id = readable(app, user, "old")
    ask(app, media_id, user)
    for _ in range(3):
        lose_worker(app, media_id, clock)
        ask(app, media_id, user)
        assert sweep(app.tools, LocalQueue()).released == 1
    reads("new")
    assert refresh_item(app.tools, media_id) == "revision 2"


def test_workers_find_due_refreshes_by_polling(app: App, user: UUID) -> None:
    media_id = readable(app, user, "old")
    ask(app, media_id, user)
    reads("new")

    class Once(Workers):
        def run_once(self) -> bool:
            return self._work_once()

    worker = Once(app)
    assert worker.run_once()
    assert texts_of(app, media_id, user) == ["new"]
    assert worker.run_once(), "the new text is indexed"
    assert not worker.run_once()


def test_a_wake_up_makes_a_worker_run_a_refresh(app: App, user: UUID) -> None:
    media_id = readable(app, user, "old")
    ask(app, media_id, user)
    reads("new")
    told = Told()
    sweep(app.tools, told)
    assert app.kernel.run(told.told[0]) == "revision 2"
    assert texts_of(app, media_id, user) == ["new"]
    assert app.kernel.run(told.told[0]) is None


class Told(Queue):
    """A queue whose workers do not poll."""

    workers_look = False

    def __init__(self) -> None:
        super().__init__()
        self.told: list[Work] = []

    def tell(self, work: Work) -> bool:
        self.told.append(work)
        return True


def test_the_sweep_announces_a_forgotten_refresh(app: App, user: UUID) -> None:
    media_id = readable(app, user, "old")
    ask(app, media_id, user)
    queue = Told()
    sweep(app.tools, queue)
    with app.sessions.read() as session:
        asked = refresh.present(session, media_id, user)
    assert asked is not None
    assert queue.told == [Work(refresh.REFRESH, asked.id)]


def test_an_item_read_by_an_older_extractor_is_outdated(app: App, user: UUID) -> None:
    media_id = readable(app, user, "old")
    with app.sessions.read() as session:
        assert refresh.outdated(session, app.tools, user) == []

    def other(source: Source) -> Extraction:
        return Extraction.plain(None, "new")

    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = other
    with app.sessions.read() as session:
        assert refresh.outdated(session, app.tools, user) == [media_id]
        assert refresh.outdated(session, app.tools, uuid4()) == []


def at_once(count: int, act: Callable[[], object]) -> list[object]:
    barrier, results = threading.Barrier(count), list[object]()

    def run() -> None:
        barrier.wait()
        results.append(act())

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_one_of_many_workers_runs_a_refresh(clean_postgres: str, tmp_path: Path) -> None:
    app = build(make_settings(clean_postgres, tmp_path, database_pool=20))
    user = uuid4()
    media_id = readable(app, user, "old")
    for revision in range(2, 42):
        reads(f"text {revision}")
        ask(app, media_id, user)
        results = at_once(8, lambda: refresh_item(app.tools, media_id))
        assert sorted(results, key=str) == [None] * 7 + [f"revision {revision}"]
    app.close()


def test_a_media_deleted_during_a_refresh_stays_deleted(app: App, user: UUID) -> None:
    media_id = readable(app, user, "old")
    ask(app, media_id, user)

    def extract(source: Source) -> Extraction:
        with app.sessions.begin() as session:
            catalog.delete_media(session, media_id, user)
        return Extraction.plain(None, "new")

    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = extract
    assert refresh_item(app.tools, media_id) == "stale"
    assert numbers_of(app, media_id) == []


def test_the_lease_of_a_refresh_is_as_short_as_any_and_renewed(app: App, user: UUID, clock: SetClock) -> None:
    media_id = readable(app, user, "old")
    ask(app, media_id, user)
    left: list[timedelta] = []

    def extract(source: Source) -> Extraction:
        left.append(one(app, _REFRESH, media_id).lease_expires_at - clock())
        clock.forward(seconds=50)
        app.tools.leases.renew()
        with app.sessions.begin() as session:
            refresh.BACKLOG.renew(session, [(media_id, 7)], session.now + timedelta(days=1))
        left.append(one(app, _REFRESH, media_id).lease_expires_at - clock())
        return Extraction.plain(None, "new")

    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = extract
    assert refresh_item(app.tools, media_id) == "revision 2"
    assert left == [timedelta(seconds=60)] * 2
    assert app.tools.leases.held() == []


def test_no_refresh_is_lost_to_one_that_ends_at_the_same_moment(clean_postgres: str, tmp_path: Path) -> None:
    """The text is never older than the last request."""
    app = build(make_settings(clean_postgres, tmp_path, database_pool=20))
    user = uuid4()
    media_id = readable(app, user, "0")
    asked = [0]

    def extract(source: Source) -> Extraction:
        return Extraction.plain(None, str(asked[0]))

    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = extract
    for number in range(1, 151):
        ask(app, media_id, user)
        worker = threading.Thread(target=refresh_item, args=(app.tools, media_id))
        worker.start()
        threading.Event().wait(number % 15 / 1000)  # at any moment: before, during and after its last write
        asked[0] = number
        ask(app, media_id, user)
        refresh_item(app.tools, media_id)  # a worker that is told of the second request
        worker.join()
        assert (one(app, _REFRESH, media_id), texts_of(app, media_id, user)) == (None, [str(number)])
    app.close()
