"""Races, on PostgreSQL, with real threads and many rounds: SQLite has one writer at a time and shows none of them."""

import random
import threading
from contextlib import suppress
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from sqlalchemy import exists, func, select, table, text

from nexus.app import App
from nexus.db.session import Statement
from nexus.db.tables import libraries as libraries_table
from nexus.db.tables import library_media, media, memberships, users
from nexus.errors import Conflict, Forbidden, InvalidState, NotFound, RateLimited
from nexus.libraries import access, catalog, members
from nexus.libraries.access import Role
from nexus.libraries.quota import Operation
from nexus.media.add import Added, add_url, hold_media
from nexus.media.lifecycle import claim_due, mark_failed, retry_media, worker_start_attempt
from nexus.media.recordings.facts import know_as
from nexus.settings import Settings
from nexus.states.media import Kind, MediaStatus, Stage
from tests.kit.crowd import THREADS, Crowd
from tests.kit.media import assert_media_replays, everything_of, history_of, new_media, row_of, walk_media_to
from tests.kit.settings import make_settings
from tests.kit.users import new_user

pytestmark = pytest.mark.wall_clock

_COUNTS = Statement(
    select(
        *(
            select(func.count()).select_from(counted).scalar_subquery().label(counted.name)
            for counted in (users, libraries_table, memberships, media, library_media)
        )
    )
)
_UNHELD = Statement(
    select(media.c.id).where(
        ~exists(select(library_media.c.media_id).where(library_media.c.media_id == media.c.id))
    )
)
_BLOCKED = Statement(
    select(func.count().label("sessions"))
    .select_from(table("pg_stat_activity"))
    .where(text("datname = current_database() AND wait_event_type = 'Lock'"))
)


@pytest.fixture
def settings(clean_postgres: str, tmp_path: Path) -> Settings:
    return make_settings(clean_postgres, tmp_path, database_pool=40)


def counts(app: App) -> dict[str, int]:
    with app.sessions.read() as session:
        return dict(session.first(_COUNTS)._asdict())


def unheld(app: App) -> list[UUID]:
    with app.sessions.read() as session:
        return [row.id for row in session.all(_UNHELD)]


def test_one_of_many_racing_workers_claims_a_media(app: App, crowd: Crowd) -> None:
    user = uuid4()
    for _ in range(200):
        media_id = new_media(app, user)

        def claim(_: int, media_id: UUID = media_id) -> int | None:
            with app.sessions.begin() as session:
                row = worker_start_attempt(session, media_id)
            return None if row is None else row.processing_attempts

        won = [attempt for attempt in crowd.rush(claim) if attempt is not None]
        assert won == [1]
        row = row_of(app.sessions, media_id)
        assert (row.processing_attempts, row.tries) == (1, 1)
        assert [entry.event for entry in history_of(app.sessions, media_id)] == ["create", "start"]


def test_batches_claim_every_media_once_and_never_more_than_they_ask_for(app: App, crowd: Crowd) -> None:
    user = uuid4()
    for most in (1, 3, 10):
        waiting = {new_media(app, user) for _ in range(100)}

        def claim_all(_: int, most: int = most) -> list[UUID]:
            mine: list[UUID] = []
            while True:
                with app.sessions.begin() as session:
                    rows = claim_due(session, Kind.WEB_ARTICLE, user, most)
                assert len(rows) <= most
                if not rows:
                    return mine
                mine += [row.id for row in rows]

        claimed = [media_id for mine in crowd.rush(claim_all) for media_id in mine]
        assert len(claimed) == len(set(claimed))
        assert set(claimed) == waiting
        assert {row_of(app.sessions, media_id).processing_attempts for media_id in waiting} == {1}


def test_simultaneous_first_requests_of_a_user_create_them_once(app: App, crowd: Crowd) -> None:
    for round_ in range(1, 21):
        user = uuid4()

        def arrive(_: int, user: UUID = user) -> UUID:
            with app.sessions.begin() as session:
                return access.ensure_user(session, user)

        assert len(set(crowd.rush(arrive))) == 1
        found = counts(app)
        assert (found["users"], found["libraries"], found["memberships"]) == (round_, round_, round_)


def test_one_url_from_many_users_is_one_media_in_all_their_libraries(app: App, crowd: Crowd) -> None:
    for round_ in range(1, 11):
        url = f"https://example.com/{round_}"

        def submit(_: int, url: str = url) -> Added:
            with app.sessions.begin() as session:
                return add_url(session, uuid4(), "web_article", url, {})

        added = crowd.rush(submit)
        assert len({one.media_id for one in added}) == 1
        assert all(one.created for one in added)
        assert len(everything_of(app.sessions, added[0].media_id).holders) == THREADS
        assert [entry.event for entry in history_of(app.sessions, added[0].media_id)] == ["create"]
        assert counts(app)["media"] == round_


def test_spellings_of_one_video_from_many_users_are_one_media(app: App, crowd: Crowd) -> None:
    for round_ in range(1, 11):
        key = "0123456789"
        spellings = [f"https://vimeo.com/{round_}/{key}", f"https://player.vimeo.com/video/{round_}?h={key}"]

        def submit(place: int, spellings: list[str] = spellings) -> Added:
            with app.sessions.begin() as session:
                return add_url(session, uuid4(), "video", spellings[place % 2], {})

        added = crowd.rush(submit)
        assert len({one.media_id for one in added}) == 1
        assert [entry.event for entry in history_of(app.sessions, added[0].media_id)] == ["create"]
        assert counts(app)["media"] == round_


def test_one_of_several_items_becomes_known_as_a_video_of_its_provider(app: App, crowd: Crowd) -> None:
    for round_ in range(10):
        items = [
            new_media(app, url=f"https://tube.example/{round_}/{n}", kind="video") for n in range(THREADS)
        ]

        def know(place: int, items: list[UUID] = items, known: str = str(round_)) -> None:
            know_as(app.sessions, items[place], Kind.VIDEO, "peertube", known)

        crowd.rush(know)
        ids = [row_of(app.sessions, item).provider_id for item in items]
        assert sorted(filter(None, ids)) == [str(round_)]


def test_simultaneous_requests_do_not_exceed_a_quota(app: App, crowd: Crowd) -> None:
    user = new_user(app)

    def submit(place: int) -> bool:
        try:
            with app.sessions.begin() as session:
                add_url(
                    session, user, "web_article", f"https://example.com/{place}", {Operation.INGEST_URLS: 5}
                )
        except RateLimited:
            return False
        return True

    assert crowd.rush(submit).count(True) == 5
    assert counts(app)["media"] == 5


def test_retry_start_and_failure_racing_leave_one_consistent_walk(app: App, crowd: Crowd) -> None:
    user = uuid4()
    media_id = new_media(app, user)
    attempt = walk_media_to(app, media_id, MediaStatus.FAILED)

    def act(place: int) -> None:
        with app.sessions.begin() as session:
            match place % 4:
                case 0:
                    worker_start_attempt(session, media_id)
                case 1:
                    mark_failed(session, media_id, Stage.EXTRACT, "E_ANY", "No.", attempt)
                case 2:
                    mark_failed(session, media_id, Stage.OTHER, "E_ANY", "No.", attempt + 1)
                case 3:
                    try_retry(session)

    def try_retry(session: object) -> None:
        with suppress(InvalidState):
            retry_media(session, media_id, user)

    for _ in range(40):
        crowd.rush(act)
        assert_media_replays(app, media_id)
        attempt = row_of(app.sessions, media_id).processing_attempts
    assert attempt > 1, "nothing raced"


def test_one_of_many_simultaneous_retries_succeeds(app: App, crowd: Crowd) -> None:
    user = uuid4()

    def retry(_: int) -> bool:
        try:
            with app.sessions.begin() as session:
                retry_media(session, media_id, user)
        except InvalidState:
            return False
        return True

    for _ in range(20):
        media_id = new_media(app, user)
        walk_media_to(app, media_id, MediaStatus.FAILED)
        assert crowd.rush(retry).count(True) == 1
        assert_media_replays(app, media_id)


def test_a_failed_url_submitted_by_many_at_once_is_retried_once(app: App, crowd: Crowd) -> None:
    user = uuid4()
    for round_ in range(10):
        url = f"https://example.com/{round_}"
        media_id = new_media(app, user, url)
        walk_media_to(app, media_id, MediaStatus.FAILED)

        def submit(_: int, url: str = url) -> UUID:
            with app.sessions.begin() as session:
                return add_url(session, uuid4(), "web_article", url, {}).media_id

        assert set(crowd.rush(submit)) == {media_id}
        assert [entry.event for entry in history_of(app.sessions, media_id)].count("retry") == 1


def test_deleting_and_adding_one_url_at_once_never_leaves_a_media_that_no_library_holds(app: App) -> None:
    """Everyone who adds it has it, unless they deleted it themselves; nobody ever sees a broken reference."""
    crowd = Crowd(12)
    deleters = [new_user(app) for _ in range(6)]
    for round_ in range(60):
        url = f"https://example.com/{round_}"
        media_id = new_media(app, deleters[0], url)
        for user in deleters[1 : 1 + round_ % 6]:
            new_media(app, user, url)

        def act(place: int, url: str = url, media_id: UUID = media_id) -> tuple[UUID, UUID] | None:
            if place % 2:
                user = uuid4()
                with app.sessions.begin() as session:
                    return user, add_url(session, user, "web_article", url, {}).media_id
            try:
                with app.sessions.begin() as session:
                    catalog.delete_media(session, media_id, deleters[place // 2])
            except NotFound:
                pass
            return None

        added = [found for found in crowd.rush(act) if found is not None]
        assert unheld(app) == []
        for user, found in added:
            with app.sessions.read() as session:
                access.require_readable(session, found, user)
        for found in {found for _, found in added}:
            assert_media_replays(app, found)
    crowd.close()


def test_many_users_adding_and_deleting_for_a_while_leave_nothing_behind(app: App) -> None:
    crowd = Crowd(12)
    people = [new_user(app) for _ in range(crowd.size)]
    urls = [f"https://example.com/{n}" for n in range(3)]

    def live(place: int) -> None:
        dice = random.Random(place)
        for _ in range(30):
            url = dice.choice(urls)
            with app.sessions.begin() as session:
                found = add_url(session, people[place], "web_article", url, {}).media_id
            with app.sessions.begin() as session:
                catalog.delete_media(session, found, people[place])

    crowd.rush(live)
    crowd.close()
    assert [counts(app)[name] for name in ("media", "library_media")] == [0, 0]


def test_deleting_a_library_waits_for_media_that_are_being_added(app: App) -> None:
    """The addition is not committed yet when the deletion looks at what the library holds."""
    user = new_user(app)
    with app.sessions.begin() as session:
        library = catalog.create_library(session, user, "Short-lived")

    def delete() -> None:
        with app.sessions.begin() as session:
            catalog.delete_library(session, library, user)

    deleting = threading.Thread(target=delete)
    media_id = new_media(app, user)
    with app.sessions.begin() as session:
        catalog.add_media(session, library, media_id, user)
        catalog.remove_media(session, access.default_library(session, user), media_id, user)
        deleting.start()
        wait_until_blocked(app)
    deleting.join(60)
    assert unheld(app) == []
    assert counts(app)["media"] == 0


def wait_until_blocked(app: App) -> None:
    """Wait until another session of this database waits for a lock."""
    turn = threading.Event()
    for _ in range(3000):
        with app.sessions.read() as session:
            if session.first(_BLOCKED).sessions:
                return
        turn.wait(0.01)
    raise AssertionError("nobody waits for a lock")


def test_deleting_a_library_while_media_are_added_never_breaks_a_reference(app: App) -> None:
    crowd = Crowd(6)
    user = new_user(app)
    kept = new_media(app, user)
    for round_ in range(40):
        with app.sessions.begin() as session:
            library = catalog.create_library(session, user, f"Library {round_}")

        def act(place: int, library: UUID = library, url: str = f"https://example.com/{round_}") -> None:
            try:
                with app.sessions.begin() as session:
                    match place % 3:
                        case 0:
                            catalog.delete_library(session, library, user)
                        case 1:
                            access.keep_library(session, library)
                            hold_media(
                                session, library, add_url(session, user, "web_article", url, {}).media_id
                            )
                        case 2:
                            catalog.add_media(session, library, kept, user)
            except NotFound:
                pass

        crowd.rush(act)
        assert unheld(app) == []
    crowd.close()


@pytest.mark.parametrize("leaving", [False, True])
def test_two_admins_who_remove_each_other_leave_one(app: App, leaving: bool) -> None:
    crowd = Crowd(2)
    pair = [new_user(app), new_user(app)]
    for _ in range(40):
        with app.sessions.begin() as session:
            library = catalog.create_library(session, pair[0], "Shared")
            members.join(session, library, pair[1], Role.ADMIN)

        def act(place: int, library: UUID = library) -> bool:
            actor, other = pair[place], pair[1 - place]
            try:
                with app.sessions.begin() as session:
                    if leaving:
                        members.remove_member(session, library, actor, actor)
                    else:
                        members.set_role(session, library, other, Role.MEMBER, actor)
            except (Conflict, Forbidden):
                return False
            return True

        assert sorted(crowd.rush(act)) == [False, True]
        with app.sessions.read() as session:
            everyone = [
                row for user in pair for row in catalog.list_libraries(session, user) if row.id == library
            ]
        assert [row.role for row in everyone].count("admin") == 1
    crowd.close()
