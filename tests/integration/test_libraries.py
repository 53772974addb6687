"""Libraries: their members, their media, and what is deleted when no library holds it."""

from uuid import UUID, uuid4

import pytest

from nexus.app import App
from nexus.db.session import Session
from nexus.errors import Conflict, DefaultLibrary, Forbidden, InvalidRequest, NotFound
from nexus.libraries import access, catalog
from nexus.libraries.access import Role
from nexus.libraries.catalog import (
    add_media,
    create_library,
    delete_library,
    delete_media,
    get_library,
    list_libraries,
    remove_media,
)
from nexus.libraries.members import join, list_members, remove_member, set_role
from nexus.media import history, queries
from nexus.media.add import add_url, hold_media
from nexus.media.listing import list_items
from nexus.states.media import MediaStatus
from tests.kit.clock import SetClock
from tests.kit.media import everything_of, history_of, new_file, new_media, row_of, walk_media_to
from tests.kit.users import new_user


def default_of(app: App, user: UUID) -> UUID:
    with app.sessions.read() as session:
        return access.default_library(session, user)


def new_library(app: App, owner: UUID, **guests: Role) -> UUID:
    with app.sessions.begin() as session:
        return create_library(session, owner, "Shared")


def invite(app: App, library: UUID, owner: UUID, role: Role) -> UUID:
    guest = new_user(app)
    with app.sessions.begin() as session:
        join(session, library, guest, role)
    return guest


def roles(app: App, library: UUID, viewer: UUID) -> dict[UUID, str]:
    with app.sessions.read() as session:
        return {row.user_id: row.role for row in list_members(session, library, viewer)}


# the default library


def test_the_first_visit_makes_a_user_with_a_default_library(app: App) -> None:
    user = new_user(app)
    with app.sessions.begin() as session:
        [library] = list_libraries(session, user)
        assert access.ensure_user(session, user) == library.id
        assert len(list_libraries(session, user)) == 1
    assert (library.is_default, library.role) == (True, "admin")
    assert roles(app, library.id, user) == {user: "admin"}


def test_a_user_who_never_signed_in_has_no_libraries(app: App) -> None:
    with app.sessions.read() as session:
        assert list_libraries(session, uuid4()) == []
        with pytest.raises(NotFound):
            access.default_library(session, uuid4())


def test_a_default_library_is_neither_shared_nor_left_nor_deleted(app: App) -> None:
    owner, other = new_user(app), new_user(app)
    library = default_of(app, owner)
    with app.sessions.begin() as session:
        for role in Role:
            with pytest.raises(DefaultLibrary):
                set_role(session, library, other, role, owner)
        with pytest.raises(DefaultLibrary):
            remove_member(session, library, owner, owner)
        with pytest.raises(Forbidden):
            delete_library(session, library, owner)
    assert roles(app, library, owner) == {owner: "admin"}
    assert (DefaultLibrary.code, DefaultLibrary.status) == ("E_DEFAULT_LIBRARY_CANNOT_SHARE", 403)


def test_strangers_are_not_told_that_a_default_library_exists(app: App) -> None:
    library, stranger = default_of(app, new_user(app)), new_user(app)
    with app.sessions.begin() as session:
        for act in (
            lambda: set_role(session, library, stranger, Role.ADMIN, stranger),
            lambda: delete_library(session, library, stranger),
            lambda: remove_member(session, library, stranger, stranger),
            lambda: list_members(session, library, stranger),
            lambda: get_library(session, library, stranger),
        ):
            with pytest.raises(NotFound):
                act()


# libraries


def test_the_creator_of_a_library_is_its_admin(app: App, clock: SetClock) -> None:
    user = new_user(app)
    clock.forward(seconds=1)
    with app.sessions.begin() as session:
        library = create_library(session, user, "  Reading\n list ")
        assert get_library(session, library, user).name == "Reading list"
        assert [row.id for row in list_libraries(session, user)][1:] == [library]
    assert roles(app, library, user) == {user: "admin"}


@pytest.mark.parametrize("name", ["", "   ", "\n", "x" * 201, "a\x00b"])
def test_a_library_needs_a_name(app: App, name: str) -> None:
    user = new_user(app)
    with app.sessions.begin() as session, pytest.raises(InvalidRequest):
        create_library(session, user, name)


def test_a_library_name_has_at_most_200_characters(app: App) -> None:
    user = new_user(app)
    with app.sessions.begin() as session:
        assert len(get_library(session, create_library(session, user, "ä" * 200), user).name) == 200


# members


def test_admins_change_the_roles_of_members(app: App) -> None:
    owner = new_user(app)
    library = new_library(app, owner)
    guest = invite(app, library, owner, Role.MEMBER)
    assert roles(app, library, guest) == {owner: "admin", guest: "member"}
    with app.sessions.begin() as session:
        set_role(session, library, guest, Role.ADMIN, owner)
        set_role(session, library, owner, Role.MEMBER, guest)
    assert roles(app, library, owner) == {owner: "member", guest: "admin"}


def test_members_can_not_change_a_library(app: App) -> None:
    owner = new_user(app)
    library = new_library(app, owner)
    member = invite(app, library, owner, Role.MEMBER)
    media_id = new_media(app, member)
    held = new_media(app, owner)
    with app.sessions.begin() as session:
        add_media(session, library, held, owner)
        for act in (
            lambda: set_role(session, library, member, Role.ADMIN, member),
            lambda: set_role(session, library, owner, Role.MEMBER, member),
            lambda: remove_member(session, library, owner, member),
            lambda: delete_library(session, library, member),
            lambda: add_media(session, library, media_id, member),
            lambda: remove_media(session, library, held, member),
            lambda: delete_media(session, held, member),
        ):
            with pytest.raises(Forbidden):
                act()
    assert roles(app, library, owner) == {owner: "admin", member: "member"}
    assert len(everything_of(app.sessions, held).holders) == 2


def test_only_a_member_has_a_role_to_change(app: App) -> None:
    owner = new_user(app)
    library = new_library(app, owner)
    others = (uuid4(), new_user(app))
    with app.sessions.begin() as session:
        for other in others:
            assert not set_role(session, library, other, Role.ADMIN, owner)
    assert roles(app, library, owner) == {owner: "admin"}


def test_joining_again_never_lowers_a_role(app: App) -> None:
    owner = new_user(app)
    library = new_library(app, owner)
    guest = invite(app, library, owner, Role.MEMBER)
    with app.sessions.begin() as session:
        join(session, library, guest, Role.ADMIN)
        join(session, library, guest, Role.MEMBER)
    assert roles(app, library, owner) == {owner: "admin", guest: "admin"}


def undone(app: App, act: object) -> None:
    """The verb raises Conflict and changes nothing."""
    with pytest.raises(Conflict), app.sessions.begin() as session:
        act(session)


def test_the_last_admin_can_neither_leave_nor_step_down(app: App) -> None:
    owner = new_user(app)
    library = new_library(app, owner)
    invite(app, library, owner, Role.MEMBER)
    before = roles(app, library, owner)
    undone(app, lambda session: remove_member(session, library, owner, owner))
    undone(app, lambda session: set_role(session, library, owner, Role.MEMBER, owner))
    assert roles(app, library, owner) == before


def test_everyone_may_leave_and_sees_nothing_afterwards(app: App) -> None:
    owner = new_user(app)
    library = new_library(app, owner)
    member, admin = invite(app, library, owner, Role.MEMBER), invite(app, library, owner, Role.ADMIN)
    media_id = new_media(app, owner)
    with app.sessions.begin() as session:
        add_media(session, library, media_id, owner)
        assert queries.get_media(session, media_id, member)
        remove_member(session, library, member, member)
        remove_member(session, library, admin, owner)
        for user in (member, admin):
            with pytest.raises(NotFound):
                queries.get_media(session, media_id, user)
            with pytest.raises(NotFound):
                get_library(session, library, user)
        with pytest.raises(NotFound):
            remove_member(session, library, member, owner)


# what they hold


def test_an_admin_can_only_add_media_they_may_read(app: App) -> None:
    owner = new_user(app)
    library = new_library(app, owner)
    of_another = new_media(app)
    with app.sessions.begin() as session:
        for unseen in (of_another, uuid4()):
            with pytest.raises(NotFound):
                add_media(session, library, unseen, owner)
    assert library not in everything_of(app.sessions, of_another).holders


def test_adding_a_media_twice_adds_it_once(app: App) -> None:
    owner = new_user(app)
    library, media_id = new_library(app, owner), new_media(app, owner)
    with app.sessions.begin() as session:
        add_media(session, library, media_id, owner)
        add_media(session, library, media_id, owner)
    assert sorted(everything_of(app.sessions, media_id).holders) == sorted([library, default_of(app, owner)])


def test_removing_a_media_keeps_it_if_another_library_holds_it(app: App) -> None:
    owner = new_user(app)
    library, media_id = new_library(app, owner), new_media(app, owner)
    default = default_of(app, owner)
    with app.sessions.begin() as session:
        add_media(session, library, media_id, owner)
        remove_media(session, default, media_id, owner)
        with pytest.raises(NotFound):
            remove_media(session, default, media_id, owner)
    assert everything_of(app.sessions, media_id).holders == [library]
    with app.sessions.begin() as session:
        remove_media(session, library, media_id, owner)
    assert_gone(app, media_id)


def assert_gone(app: App, media_id: UUID) -> None:
    after = everything_of(app.sessions, media_id)
    assert (after.row, after.history, after.texts, after.files, after.holders) == (None, [], [], [], [])


@pytest.mark.parametrize("status", MediaStatus)
def test_removing_a_media_from_its_last_library_deletes_every_row(app: App, status: MediaStatus) -> None:
    user = new_user(app)
    media_id = new_file(app, user, "e" * 64, stored=True)
    attempt = walk_media_to(app, media_id, status)
    with app.sessions.begin() as session:
        delete_media(session, media_id, user)
    assert_gone(app, media_id)
    with app.sessions.begin() as session, pytest.raises(NotFound):
        delete_media(session, media_id, user)
    assert attempt >= 0


def test_deleting_a_media_removes_it_from_every_library_that_the_viewer_administers(app: App) -> None:
    owner = new_user(app)
    library, media_id = new_library(app, owner), new_media(app, owner, "https://example.com/shared")
    other = new_user(app)
    new_media(app, other, "https://example.com/shared")
    with app.sessions.begin() as session:
        add_media(session, library, media_id, owner)
        delete_media(session, media_id, owner)
        with pytest.raises(NotFound):
            queries.get_media(session, media_id, owner)
        assert queries.get_media(session, media_id, other)
    assert everything_of(app.sessions, media_id).holders == [default_of(app, other)]


def test_a_deleted_media_can_be_added_again(app: App) -> None:
    user = new_user(app)
    first = new_media(app, user, "https://example.com/again")
    walk_media_to(app, first, MediaStatus.READY)
    with app.sessions.begin() as session:
        delete_media(session, first, user)
        again = add_url(session, user, "web_article", "https://example.com/again", {})
    assert again.created
    assert again.media_id != first
    assert row_of(app.sessions, again.media_id).processing_attempts == 0
    assert len(history_of(app.sessions, again.media_id)) == 1


def test_deleting_a_library_deletes_media_that_nobody_else_holds(app: App) -> None:
    owner = new_user(app)
    library = new_library(app, owner)
    kept = new_media(app, owner)
    with app.sessions.begin() as session:
        add_media(session, library, kept, owner)
        alone = add_url(session, owner, "web_article", "https://example.com/alone", {}).media_id
        hold_media(session, library, alone)
        catalog.remove_media(session, access.default_library(session, owner), alone, owner)
        delete_library(session, library, owner)
        with pytest.raises(NotFound):
            get_library(session, library, owner)
    assert_gone(app, alone)
    assert everything_of(app.sessions, kept).holders == [default_of(app, owner)]


# visibility


def test_a_viewer_reads_only_media_in_their_libraries(app: App) -> None:
    owner, stranger = new_user(app), new_user(app)
    library, media_id = new_library(app, owner), new_media(app, owner)
    member = invite(app, library, owner, Role.MEMBER)
    walk_media_to(app, media_id, MediaStatus.FAILED)

    def seen(session: Session, viewer: UUID) -> bool:
        try:
            queries.get_media(session, media_id, viewer)
        except NotFound:
            return False
        return True

    with app.sessions.begin() as session:
        assert [seen(session, user) for user in (owner, member, stranger)] == [True, False, False]
        catalog.add_media(session, library, media_id, owner)
        assert [seen(session, user) for user in (owner, member, stranger)] == [True, True, False]
        assert queries.get_media(session, media_id, owner).may_retry
        assert not queries.get_media(session, media_id, member).may_retry
        assert list_items(session, member).items[0].row.id == media_id
        assert list_items(session, stranger).items == []
        for refused in (queries.get_media, history.events):
            with pytest.raises(NotFound):
                refused(session, media_id, stranger)


def test_a_creator_who_can_no_longer_see_a_media_may_not_retry_it(app: App) -> None:
    """Acting on a media requires reading it, even for its creator."""
    creator, keeper = new_user(app), new_user(app)
    media_id = new_media(app, creator, "https://example.com/x")
    new_media(app, keeper, "https://example.com/x")
    walk_media_to(app, media_id, MediaStatus.FAILED)
    with app.sessions.begin() as session:
        delete_media(session, media_id, creator)
        with pytest.raises(NotFound):
            access.require_manager(session, media_id, creator)
        access.require_manager(session, media_id, keeper)
