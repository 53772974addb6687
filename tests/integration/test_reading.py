"""Reading: lists that show each media once and in order, pages of text and history, and robust cursors."""

import base64
import json
from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import pytest

from nexus.app import App
from nexus.db.session import Session
from nexus.errors import InvalidRequest, NotFound
from nexus.libraries import catalog
from nexus.libraries.access import Role
from nexus.media import history, queries
from nexus.media.fragments import read_text_page
from nexus.media.list_filters import Wanted
from nexus.media.listing import list_items
from nexus.states.media import MediaStatus
from tests.kit.clock import SetClock
from tests.kit.media import (
    TEXTS,
    new_file,
    new_media,
    publish_text,
    share_media,
    start_extraction,
    walk_media_to,
)


def pages(
    app: App, viewer: UUID, most: int, between: Callable[[], object] = lambda: None, **more: object
) -> list[list[UUID]]:
    """The ids on each page, to the end."""
    found: list[list[UUID]] = []
    cursor = None
    while True:
        with app.sessions.snapshot() as session:
            page = list_items(session, viewer, Wanted(**more), cursor, most)
        found.append([view.row.id for view in page.items])
        cursor = page.next_cursor
        if cursor is None:
            return found
        between()


def flat(found: list[list[UUID]]) -> list[UUID]:
    return [media_id for page in found for media_id in page]


def shelf(app: App, clock: SetClock, user: UUID, count: int) -> list[UUID]:
    """Media in the user's default library, the newest first, a second apart."""
    made = []
    for _ in range(count):
        made.append(new_media(app, user))
        clock.forward(seconds=1)
    return made[::-1]


def put_into(app: App, library: UUID, media_id: UUID, user: UUID) -> None:
    with app.sessions.begin() as session:
        catalog.add_media(session, library, media_id, user)


def new_library(app: App, user: UUID) -> UUID:
    with app.sessions.begin() as session:
        return catalog.create_library(session, user, "Another")


@pytest.mark.parametrize("most", [1, 2, 3, 6, 7, 200])
def test_lists_show_the_latest_first_on_pages_of_any_size(app: App, clock: SetClock, most: int) -> None:
    user = uuid4()
    expected = shelf(app, clock, user, 6)
    shelf(app, clock, uuid4(), 2)
    found = pages(app, user, most)
    assert flat(found) == expected
    assert all(len(page) == most for page in found[:-1])


def test_media_added_at_the_same_moment_have_one_order_across_pages(app: App) -> None:
    user = uuid4()
    made = [new_media(app, user) for _ in range(7)]
    assert flat(pages(app, user, 2)) == sorted(made, reverse=True)


@pytest.mark.parametrize("most", [1, 2, 3, 5])
def test_a_media_in_several_libraries_is_listed_once_by_its_latest_addition(
    app: App, clock: SetClock, most: int
) -> None:
    user = uuid4()
    made = shelf(app, clock, user, 5)
    one, two = new_library(app, user), new_library(app, user)
    for library, media_id in ((one, made[4]), (two, made[2]), (one, made[2]), (two, made[4])):
        put_into(app, library, media_id, user)
        clock.forward(seconds=1)
    expected = [made[4], made[2], made[0], made[1], made[3]]
    assert flat(pages(app, user, most)) == expected


def test_a_list_is_stable_while_more_is_added(app: App, clock: SetClock) -> None:
    user = uuid4()
    expected = shelf(app, clock, user, 6)
    found = pages(app, user, 2, between=lambda: shelf(app, clock, user, 3))
    assert flat(found) == expected


def test_a_media_added_to_another_library_while_paging_is_not_shown_twice(app: App, clock: SetClock) -> None:
    user = uuid4()
    expected = shelf(app, clock, user, 4)
    library = new_library(app, user)
    shown = pages(app, user, 2, between=lambda: put_into(app, library, expected[0], user))
    assert flat(shown) == expected


@pytest.mark.parametrize("most", [1, 2, 3])
def test_the_list_of_one_library_holds_all_of_it_and_nothing_else(
    app: App, clock: SetClock, most: int
) -> None:
    """Including media that were added later to another library of the viewer."""
    user = uuid4()
    library = new_library_with_user(app, user)
    made = shelf(app, clock, user, 5)
    for media_id in made[1:4]:
        put_into(app, library, media_id, user)
        clock.forward(seconds=1)
    other = new_library(app, user)
    for media_id in made:
        put_into(app, other, media_id, user)
        clock.forward(seconds=1)
    assert flat(pages(app, user, most, library_id=library)) == [made[3], made[2], made[1]]


def new_library_with_user(app: App, user: UUID) -> UUID:
    new_media(app, user)
    return new_library(app, user)


def test_only_members_can_list_a_library(app: App) -> None:
    owner, member, stranger = uuid4(), uuid4(), uuid4()
    media_id = new_media(app, owner)
    library = share_media(app, owner, media_id, (member, Role.MEMBER))
    assert flat(pages(app, member, 5, library_id=library)) == [media_id]
    for unknown in (library, uuid4()):
        with app.sessions.snapshot() as session, pytest.raises(NotFound):
            list_items(session, stranger, Wanted(library_id=unknown))


@pytest.mark.parametrize("most", [1, 2, 50])
def test_a_list_can_be_narrowed_to_a_status(app: App, clock: SetClock, most: int) -> None:
    user = uuid4()
    made = shelf(app, clock, user, 6)
    for media_id in made[::2]:
        walk_media_to(app, media_id, MediaStatus.FAILED)
    assert flat(pages(app, user, most, statuses=frozenset({MediaStatus.FAILED}))) == made[::2]
    assert flat(pages(app, user, most, statuses=frozenset({MediaStatus.PENDING}))) == made[1::2]
    assert flat(pages(app, user, most, statuses=frozenset({MediaStatus.READY}))) == []


def test_a_user_who_never_signed_in_sees_an_empty_list(app: App) -> None:
    assert pages(app, uuid4(), 5) == [[]]


def test_a_media_view_holds_its_capabilities(app: App) -> None:
    user = uuid4()
    article, waiting, stored = (
        new_media(app, user),
        new_file(app, user, None),
        new_file(app, user, "f" * 64, stored=True),
    )
    walk_media_to(app, article, MediaStatus.READY_FOR_READING)
    with app.sessions.snapshot() as session:
        views = {view.row.id: view for view in list_items(session, user).items}
        assert views[article].capabilities.can_quote
        assert not views[waiting].capabilities.can_read
        assert views[stored].capabilities.can_read
        assert views[stored].capabilities.can_download_file
        assert not views[stored].capabilities.can_quote
        single = queries.get_media(session, stored, user)
        assert single.capabilities == views[stored].capabilities
        assert not single.may_retry


@pytest.mark.parametrize("most", [1, 2, 3, 7, 8])
def test_fragments_are_listed_in_reading_order(app: App, most: int) -> None:
    user = uuid4()
    media_id = new_media(app, user)
    texts = tuple(f"piece {n}" for n in range(7))
    publish_text(app, media_id, start_extraction(app, media_id), texts)
    assert [row.text for row in numbered(app, text, media_id, user, most)] == list(texts)


def text(session: Session, media_id: UUID, viewer: UUID, *place: Any) -> queries.ItemPage[Any]:
    return read_text_page(session, queries.get_media(session, media_id, viewer), *place)


def numbered(app: App, reader: Callable[..., queries.Page], media_id: UUID, user: UUID, most: int) -> list:
    rows, cursor = [], None
    while True:
        with app.sessions.read() as session:
            page = reader(session, media_id, user, cursor, most)
        rows += page.items
        cursor = page.next_cursor
        if cursor is None:
            return rows


@pytest.mark.parametrize("most", [1, 2, 5, 6])
def test_history_is_listed_from_first_to_last(app: App, most: int) -> None:
    user = uuid4()
    media_id = new_media(app, user)
    walk_media_to(app, media_id, MediaStatus.READY)
    found = [row.entry.event for row in numbered(app, history.events, media_id, user, most)]
    assert found == ["create", "start", "readable", "embed", "embedded"]


def encoded(*parts: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode().rstrip("=")


MOMENT = "2026-01-01T00:00:00+00:00"
RUBBISH = [
    "",
    "x",
    "%%%",
    "ünïcode",
    "\x00",
    "A" * 5000,
    base64.urlsafe_b64encode(b"{").decode(),
    base64.urlsafe_b64encode(b"null").decode(),
    base64.urlsafe_b64encode(b"\xff\xfe").decode(),
    base64.urlsafe_b64encode(b"[" * 20_000).decode(),
    encoded(),
    encoded(None),
    encoded("x"),
    encoded(-1),
    encoded(1.5),
    encoded(2**63),
    encoded(10**400),
    encoded(MOMENT, "not a uuid"),
    encoded("yesterday", uuid4().hex),
    encoded("2026-01-01T00:00:00", uuid4().hex),
    encoded("0001-01-01T00:00:00+23:59", uuid4().hex),
    encoded(MOMENT, 3),
    encoded(MOMENT, None),
    encoded(3, uuid4().hex),
    encoded(MOMENT, uuid4().hex, 1),
    encoded([MOMENT], [uuid4().hex]),
    encoded({"a": 1}),
]


@pytest.mark.parametrize("cursor", RUBBISH, ids=range(len(RUBBISH)))
def test_a_forged_cursor_is_an_invalid_request(app: App, cursor: str) -> None:
    user = uuid4()
    media_id = new_media(app, user)
    publish_text(app, media_id, start_extraction(app, media_id), TEXTS)
    with app.sessions.snapshot() as session:
        with pytest.raises(InvalidRequest):
            list_items(session, user, cursor=cursor)
        for reader in (text, history.events):
            with pytest.raises(InvalidRequest):
                reader(session, media_id, user, cursor)


def test_a_cursor_of_one_list_does_not_break_another(app: App, clock: SetClock) -> None:
    user = uuid4()
    shelf(app, clock, user, 2)
    media_id = new_media(app, user)
    walk_media_to(app, media_id, MediaStatus.READY)
    with app.sessions.snapshot() as session:
        of_media = list_items(session, user, most=1).next_cursor
        of_history = history.events(session, media_id, user, most=1).next_cursor
        with pytest.raises(InvalidRequest):
            history.events(session, media_id, user, of_media)
        with pytest.raises(InvalidRequest):
            list_items(session, user, cursor=of_history)
