"""What people note about items: for themselves alone, on all of their devices, for as long as they can read them."""

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from sqlalchemy import select

from nexus.app import App
from nexus.db.session import Statement
from nexus.db.shelves import shelf
from nexus.editorial import drafts, jobs
from nexus.errors import InvalidRequest, NotFound
from nexus.extract import Extraction
from nexus.libraries import access, catalog, members
from nexus.libraries.access import Role
from nexus.media import deletions, queries, shelving, versions
from nexus.media.bulk import mark_each
from nexus.media.lifecycle import mark_ready_for_reading
from nexus.media.list_filters import Wanted
from nexus.media.listing import list_items
from nexus.media.shelving import FINISHED, NOTHING, Marks, ReadingPlace, ReadSoFar, Shelved
from nexus.media.texts import Found
from nexus.states.media import MediaStatus
from tests.kit.clock import SetClock
from tests.kit.crowd import Crowd
from tests.kit.media import new_media, share_media, start_extraction, walk_media_to

_ROWS = Statement(select(shelf))
HALF = ReadSoFar(1, 0.5, ReadingPlace(3, 2, 0.25), SetClock().time)


def mark(app: App, media_id: UUID, user: UUID, marks: Marks) -> Shelved:
    with app.sessions.begin() as session:
        return shelving.mark_item(session, media_id, user, marks)


def report(app: App, media_id: UUID, user: UUID, progress: ReadSoFar) -> Shelved:
    with app.sessions.begin() as session:
        return shelving.report_progress(session, media_id, user, progress)


def noted(app: App, media_id: UUID, user: UUID) -> Shelved:
    with app.sessions.read() as session:
        return shelving.read_shelf(session, media_id, user)


def rows(app: App) -> list[tuple[UUID, UUID]]:
    with app.sessions.read() as session:
        return [(row.user_id, row.media_id) for row in session.all(_ROWS)]


def listed(app: App, user: UUID, wanted: Wanted) -> list[UUID]:
    with app.sessions.read() as session:
        return [view.row.id for view in list_items(session, user, wanted).items]


@pytest.fixture
def user() -> UUID:
    return uuid4()


@pytest.fixture
def item(app: App, user: UUID) -> UUID:
    """An item that can be read, in the user's own library."""
    media_id = new_media(app, user)
    walk_media_to(app, media_id, MediaStatus.READY_FOR_READING)
    return media_id


def test_nothing_is_stored_about_an_item_until_something_is_noted(app: App, user: UUID, item: UUID) -> None:
    assert noted(app, item, user) == NOTHING
    assert rows(app) == []


def test_marks_are_set_and_unset_one_by_one(app: App, clock: SetClock, user: UUID, item: UUID) -> None:
    first = clock.time
    assert mark(app, item, user, Marks(is_read=True, is_favourite=True)).read_at == first
    clock.forward(seconds=1)
    again = mark(app, item, user, Marks(is_read=True, is_archived=True))
    assert (again.read_at, again.archived_at, again.favourite_at) == (first, clock.time, first)
    left = mark(app, item, user, Marks(is_archived=False, is_favourite=False))
    assert (left.read_at, left.archived_at, left.favourite_at) == (first, None, None)


def test_marking_again_changes_nothing(app: App, clock: SetClock, user: UUID, item: UUID) -> None:
    marks = Marks(is_read=True, is_archived=True, is_favourite=True, title="Mine")
    before = mark(app, item, user, marks)
    clock.forward(seconds=1)
    assert mark(app, item, user, marks) == before


def test_an_own_title_is_shown_to_its_author_until_it_is_empty_again(
    app: App, user: UUID, item: UUID
) -> None:
    mark(app, item, user, Marks(title="  My \n own\0 "))
    with app.sessions.read() as session:
        row = queries.get_media(session, item, user).row
        [view] = list_items(session, user).items
    assert (
        (row.title, row.original_title) == (view.row.title, view.row.original_title) == ("My own", "A title")
    )
    mark(app, item, user, Marks(title=" "))
    with app.sessions.read() as session:
        assert queries.get_media(session, item, user).row.title == "A title"


def test_a_title_has_a_limit(app: App, user: UUID, item: UUID) -> None:
    assert mark(app, item, user, Marks(title="ä" * 500)).title == "ä" * 500
    with pytest.raises(InvalidRequest):
        mark(app, item, user, Marks(title="ä" * 501))


def test_progress_is_kept_with_its_place(app: App, user: UUID, item: UUID) -> None:
    found = report(app, item, user, HALF)
    assert (found.fraction, found.place_in(1), found.read_at) == (0.5, HALF.place, None)
    with app.sessions.read() as session:
        assert queries.get_media(session, item, user).row.progress == 0.5
    assert report(app, item, user, HALF) == found


def test_the_fraction_stays_in_another_version_and_the_place_does_not(
    app: App, user: UUID, item: UUID
) -> None:
    report(app, item, user, HALF)
    versions.enter_own_text(app.sessions, item, user, "Another", "another text")
    with app.sessions.read() as session:
        row = queries.get_media(session, item, user).row
        found = shelving.read_shelf(session, item, user)
    assert (row.revision, row.progress) == (2, 0.5)
    assert found.place_in(1) == HALF.place
    assert found.place_in(2) is None


def test_the_device_that_was_there_last_wins_whichever_reports_first(
    app: App, clock: SetClock, user: UUID, item: UUID
) -> None:
    clock.forward(hours=1)
    early, late = HALF, ReadSoFar(1, 0.2, None, HALF.at + timedelta(minutes=1))
    for order in ((early, late), (late, early)):
        mark(app, item, user, Marks(is_read=False))
        with app.sessions.begin() as session:
            session.run(Statement(shelf.delete()))
        for one in order:
            found = report(app, item, user, one)
        assert (found.fraction, found.progress_at) == (0.2, late.at)


def test_a_device_whose_clock_is_ahead_does_not_win_for_ever(
    app: App, clock: SetClock, user: UUID, item: UUID
) -> None:
    report(app, item, user, ReadSoFar(1, 0.9, None, clock.time + timedelta(days=400)))
    clock.forward(seconds=1)
    assert report(app, item, user, ReadSoFar(1, 0.1, None, clock.time)).fraction == 0.1


def test_reaching_the_end_marks_as_read_once(app: App, clock: SetClock, user: UUID, item: UUID) -> None:
    assert report(app, item, user, ReadSoFar(1, FINISHED - 0.01, None, clock.time)).read_at is None
    clock.forward(seconds=1)
    done = clock.time
    assert report(app, item, user, ReadSoFar(1, FINISHED, None, clock.time)).read_at == done
    clock.forward(seconds=1)
    back = report(app, item, user, ReadSoFar(1, 0.3, None, clock.time))
    assert (back.fraction, back.read_at) == (0.3, done)


def test_a_text_that_is_opened_at_its_end_is_read(app: App, clock: SetClock, user: UUID, item: UUID) -> None:
    assert report(app, item, user, ReadSoFar(1, 1.0, None, clock.time)).read_at == clock.time


def test_marking_as_unread_starts_over_and_no_late_report_brings_it_back(
    app: App, clock: SetClock, user: UUID, item: UUID
) -> None:
    report(app, item, user, ReadSoFar(1, 1.0, ReadingPlace(1, 0, 1.0), clock.time))
    clock.forward(seconds=5)
    fresh = mark(app, item, user, Marks(is_read=False))
    assert (fresh.read_at, fresh.fraction, fresh.place_in(1)) == (None, 0, None)
    late = ReadSoFar(1, 1.0, None, clock.time - timedelta(seconds=1))
    assert report(app, item, user, late) == fresh


def test_nobody_else_sees_what_somebody_noted(app: App, user: UUID, item: UUID) -> None:
    member, admin = uuid4(), uuid4()
    share_media(app, user, item, (member, Role.MEMBER), (admin, Role.ADMIN))
    mark(app, item, user, Marks(is_read=True, is_archived=True, is_favourite=True, title="Secret"))
    report(app, item, user, HALF)
    for other in (member, admin):
        assert noted(app, item, other) == NOTHING
        assert listed(app, other, Wanted(is_read=False)) == [item]
        assert listed(app, other, Wanted(is_favourite=True)) == []
        with app.sessions.read() as session:
            row = queries.get_media(session, item, other).row
        assert (row.title, row.progress, row.read_at, row.archived_at) == ("A title", 0, None, None)
    assert mark(app, item, member, Marks(title="Theirs")).title == "Theirs"
    assert noted(app, item, user).title == "Secret"


def test_somebody_who_can_not_read_an_item_can_note_nothing_about_it(app: App, item: UUID) -> None:
    stranger = uuid4()
    with app.sessions.begin() as session:
        access.ensure_user(session, stranger)
    tries: list[Callable[[], object]] = [
        lambda: mark(app, item, stranger, Marks(is_read=True)),
        lambda: report(app, item, stranger, HALF),
        lambda: noted(app, item, stranger),
        lambda: mark(app, uuid4(), stranger, Marks(is_read=True)),
    ]
    for attempt in tries:
        with pytest.raises(NotFound):
            attempt()
    assert rows(app) == []


def test_notes_go_with_the_item(app: App, user: UUID, item: UUID) -> None:
    mark(app, item, user, Marks(is_read=True))
    deletions.delete_media_and_files(app.sessions, app.files, user, item)
    assert rows(app) == []


def noted_by_both(app: App, user: UUID, item: UUID) -> tuple[UUID, UUID]:
    """Share an item with a member, and let both note something; return the library and the member."""
    member = uuid4()
    library = share_media(app, user, item, (member, Role.MEMBER))
    for one in (user, member):
        mark(app, item, one, Marks(is_favourite=True))
    return library, member


def test_notes_go_when_a_library_gives_the_item_up_and_stay_with_those_who_still_hold_it(
    app: App, user: UUID, item: UUID
) -> None:
    library, _ = noted_by_both(app, user, item)
    with app.sessions.begin() as session:
        catalog.remove_media(session, library, item, user)
    assert rows(app) == [(user, item)]


def test_notes_go_when_their_author_leaves_the_library(app: App, user: UUID, item: UUID) -> None:
    library, member = noted_by_both(app, user, item)
    with app.sessions.begin() as session:
        members.remove_member(session, library, member, member)
    assert rows(app) == [(user, item)]


def test_notes_go_when_the_library_is_deleted(app: App, user: UUID, item: UUID) -> None:
    library, _ = noted_by_both(app, user, item)
    deletions.delete_library_and_files(app.sessions, app.files, user, library)
    assert rows(app) == [(user, item)]


def test_many_items_are_marked_at_once_and_those_of_others_refused(app: App, user: UUID, item: UUID) -> None:
    other, foreign = new_media(app, user), new_media(app)
    done = mark_each(app.sessions, user, [foreign, item, other, item], Marks(is_archived=True))
    assert set(done.done) == {item, other}
    assert [(one.media_id, one.code) for one in done.refused] == [(foreign, "E_NOT_FOUND")]
    assert listed(app, user, Wanted()) == []
    assert set(listed(app, user, Wanted(is_archived=True))) == {item, other}


def test_a_story_made_from_an_item_keeps_the_original_title(app: App, user: UUID) -> None:
    """A job is seen by others too."""
    media_id = new_media(app, user)
    attempt = start_extraction(app, media_id)
    with app.sessions.begin() as session:
        text = Extraction.plain("The original", "a sentence of its own. " * 40)
        mark_ready_for_reading(session, media_id, attempt, Found(text, "tests"))
    mark(app, media_id, user, Marks(title="Secret"))
    with app.sessions.begin() as session:
        library = access.default_library(session, user)
        job = jobs.find_job(session, drafts.create_job_from_item(session, user, library, media_id))
    assert job is not None
    assert job.extracted_title == "The original"


@pytest.mark.parametrize("rounds", [40])
def test_of_two_devices_at_once_the_later_wins_and_marks_are_not_lost(
    app: App, clock: SetClock, user: UUID, item: UUID, rounds: int
) -> None:
    crowd = Crowd(4)
    clock.forward(hours=rounds)
    try:
        for number in range(rounds):
            at = HALF.at + timedelta(minutes=2 * number)
            place = [ReadSoFar(1, 0.25, None, at), ReadSoFar(1, 0.75, None, at + timedelta(seconds=1))]
            flags = [Marks(is_favourite=number % 2 == 0), Marks(title=f"Round {number}")]

            def act(who: int, place: list[ReadSoFar] = place, flags: list[Marks] = flags) -> Shelved:
                return (
                    report(app, item, user, place[who]) if who < 2 else mark(app, item, user, flags[who - 2])
                )

            crowd.rush(act)
            found = noted(app, item, user)
            assert (found.fraction, found.title) == (0.75, f"Round {number}")
            assert (found.favourite_at is not None) == (number % 2 == 0)
    finally:
        crowd.close()


def test_no_note_outlives_the_membership_that_it_races_with(app: App, user: UUID, item: UUID) -> None:
    crowd = Crowd(4)
    member = uuid4()
    library = share_media(app, user, item, (member, Role.MEMBER))

    def act(who: int) -> None:
        try:
            if who == 0:
                with app.sessions.begin() as session:
                    members.remove_member(session, library, member, user)
            elif who == 1:
                report(app, item, member, HALF)
            else:
                mark(app, item, member, Marks(is_read=True))
        except NotFound:
            pass

    try:
        for _ in range(30):
            with app.sessions.begin() as session:
                members.join(session, library, member, Role.MEMBER)
            crowd.rush(act)
            assert rows(app) == []
    finally:
        crowd.close()


def test_no_note_outlives_the_holding_that_it_races_with(app: App, user: UUID, item: UUID) -> None:
    crowd = Crowd(4)
    member = uuid4()
    library = share_media(app, user, item, (member, Role.MEMBER))

    def act(who: int) -> None:
        try:
            if who == 0:
                with app.sessions.begin() as session:
                    catalog.remove_media(session, library, item, user)
            else:
                mark(app, item, member, Marks(is_read=True))
        except NotFound:
            pass

    try:
        for _ in range(30):
            with app.sessions.begin() as session:
                catalog.add_media(session, library, item, user)
            crowd.rush(act)
            assert rows(app) == []
    finally:
        crowd.close()
