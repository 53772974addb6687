"""Libraries: who is in them, what they hold, and what goes when nobody holds it any more."""

from uuid import UUID, uuid4

import pytest

from nexus.app import App
from nexus.db.session import Session
from nexus.errors import Conflict, DefaultLibrary, Forbidden, InvalidRequest, NotFound
from nexus.libraries import access, catalog
from nexus.libraries.access import Role
from nexus.libraries.catalog import (
    add_media,
    create,
    delete_library,
    delete_media,
    get,
    members,
    mine,
    remove_media,
    remove_member,
    set_member,
)
from nexus.media import queries
from nexus.media.add import add_url, hold
from nexus.states.media import Status
from tests.support import SetClock, history_of, new_media, row_of
from tests.walks import new_file, put, whole


def new_user(app: App) -> UUID:
    user = uuid4()
    with app.sessions.begin() as session:
        access.ensure_user(session, user)
    return user


def default_of(app: App, user: UUID) -> UUID:
    with app.sessions.read() as session:
        return access.default_library(session, user)


def new_library(app: App, owner: UUID, **guests: Role) -> UUID:
    with app.sessions.begin() as session:
        return create(session, owner, "Shared")


def invite(app: App, library: UUID, owner: UUID, role: Role) -> UUID:
    guest = new_user(app)
    with app.sessions.begin() as session:
        set_member(session, library, guest, role, owner)
    return guest


def roles(app: App, library: UUID, viewer: UUID) -> dict[UUID, str]:
    with app.sessions.read() as session:
        return {row.user_id: row.role for row in members(session, library, viewer)}


# the default library


def test_the_first_visit_makes_a_user_with_a_default_library(app: App) -> None:
    user = new_user(app)
    with app.sessions.begin() as session:
        [library] = mine(session, user)
        assert access.ensure_user(session, user) == library.id
        assert len(mine(session, user)) == 1
    assert (library.is_default, library.role) == (True, "admin")
    assert roles(app, library.id, user) == {user: "admin"}


def test_someone_who_has_never_been_here_has_nothing(app: App) -> None:
    with app.sessions.read() as session:
        assert mine(session, uuid4()) == []
        with pytest.raises(NotFound):
            access.default_library(session, uuid4())


def test_a_default_library_is_neither_shared_nor_left_nor_deleted(app: App) -> None:
    owner, other = new_user(app), new_user(app)
    library = default_of(app, owner)
    with app.sessions.begin() as session:
        for role in Role:
            with pytest.raises(DefaultLibrary):
                set_member(session, library, other, role, owner)
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
            lambda: set_member(session, library, stranger, Role.ADMIN, stranger),
            lambda: delete_library(session, library, stranger),
            lambda: remove_member(session, library, stranger, stranger),
            lambda: members(session, library, stranger),
            lambda: get(session, library, stranger),
        ):
            with pytest.raises(NotFound):
                act()


# libraries


def test_whoever_makes_a_library_is_its_admin(app: App, clock: SetClock) -> None:
    user = new_user(app)
    clock.forward(seconds=1)
    with app.sessions.begin() as session:
        library = create(session, user, "  Reading\n list ")
        assert get(session, library, user).name == "Reading list"
        assert [row.id for row in mine(session, user)][1:] == [library]
    assert roles(app, library, user) == {user: "admin"}


@pytest.mark.parametrize("name", ["", "   ", "\n", "x" * 201, "a\x00b"])
def test_a_library_needs_a_name(app: App, name: str) -> None:
    user = new_user(app)
    with app.sessions.begin() as session, pytest.raises(InvalidRequest):
        create(session, user, name)


def test_a_name_of_200_characters_is_enough(app: App) -> None:
    user = new_user(app)
    with app.sessions.begin() as session:
        assert len(get(session, create(session, user, "ä" * 200), user).name) == 200


# members


def test_admins_let_people_in_and_change_their_roles(app: App) -> None:
    owner = new_user(app)
    library = new_library(app, owner)
    guest = invite(app, library, owner, Role.MEMBER)
    assert roles(app, library, guest) == {owner: "admin", guest: "member"}
    with app.sessions.begin() as session:
        set_member(session, library, guest, Role.ADMIN, owner)
        set_member(session, library, owner, Role.MEMBER, guest)
    assert roles(app, library, owner) == {owner: "member", guest: "admin"}


def test_members_change_nothing(app: App) -> None:
    owner = new_user(app)
    library = new_library(app, owner)
    member = invite(app, library, owner, Role.MEMBER)
    media_id = new_media(app, member)
    held = new_media(app, owner)
    with app.sessions.begin() as session:
        add_media(session, library, held, owner)
        for act in (
            lambda: set_member(session, library, member, Role.ADMIN, member),
            lambda: set_member(session, library, owner, Role.MEMBER, member),
            lambda: remove_member(session, library, owner, member),
            lambda: delete_library(session, library, member),
            lambda: add_media(session, library, media_id, member),
            lambda: remove_media(session, library, held, member),
            lambda: delete_media(session, held, member),
        ):
            with pytest.raises(Forbidden):
                act()
    assert roles(app, library, owner) == {owner: "admin", member: "member"}
    assert len(whole(app.sessions, held).holders) == 2


def test_a_user_who_never_signed_in_cannot_be_let_in(app: App) -> None:
    owner = new_user(app)
    library = new_library(app, owner)
    with app.sessions.begin() as session, pytest.raises(NotFound):
        set_member(session, library, uuid4(), Role.MEMBER, owner)


def undone(app: App, act: object) -> None:
    """The verb raises Conflict, and its transaction leaves nothing."""
    with pytest.raises(Conflict), app.sessions.begin() as session:
        act(session)


def test_the_last_admin_can_neither_leave_nor_step_down(app: App) -> None:
    owner = new_user(app)
    library = new_library(app, owner)
    invite(app, library, owner, Role.MEMBER)
    before = roles(app, library, owner)
    undone(app, lambda session: remove_member(session, library, owner, owner))
    undone(app, lambda session: set_member(session, library, owner, Role.MEMBER, owner))
    assert roles(app, library, owner) == before


def test_everyone_may_leave_and_sees_nothing_afterwards(app: App) -> None:
    owner = new_user(app)
    library = new_library(app, owner)
    member, admin = invite(app, library, owner, Role.MEMBER), invite(app, library, owner, Role.ADMIN)
    media_id = new_media(app, owner)
    with app.sessions.begin() as session:
        add_media(session, library, media_id, owner)
        assert queries.get(session, media_id, member)
        remove_member(session, library, member, member)
        remove_member(session, library, admin, owner)
        for user in (member, admin):
            with pytest.raises(NotFound):
                queries.get(session, media_id, user)
            with pytest.raises(NotFound):
                get(session, library, user)
        with pytest.raises(NotFound):
            remove_member(session, library, member, owner)


# what they hold


def test_an_admin_puts_in_only_what_he_may_read(app: App) -> None:
    owner = new_user(app)
    library = new_library(app, owner)
    of_another = new_media(app)
    with app.sessions.begin() as session:
        for unseen in (of_another, uuid4()):
            with pytest.raises(NotFound):
                add_media(session, library, unseen, owner)
    assert library not in whole(app.sessions, of_another).holders


def test_putting_in_twice_is_putting_in_once(app: App) -> None:
    owner = new_user(app)
    library, media_id = new_library(app, owner), new_media(app, owner)
    with app.sessions.begin() as session:
        add_media(session, library, media_id, owner)
        add_media(session, library, media_id, owner)
    assert sorted(whole(app.sessions, media_id).holders) == sorted([library, default_of(app, owner)])


def test_taking_out_keeps_a_media_that_another_library_holds(app: App) -> None:
    owner = new_user(app)
    library, media_id = new_library(app, owner), new_media(app, owner)
    default = default_of(app, owner)
    with app.sessions.begin() as session:
        add_media(session, library, media_id, owner)
        remove_media(session, default, media_id, owner)
        with pytest.raises(NotFound):
            remove_media(session, default, media_id, owner)
    assert whole(app.sessions, media_id).holders == [library]
    with app.sessions.begin() as session:
        remove_media(session, library, media_id, owner)
    assert_gone(app, media_id)


def assert_gone(app: App, media_id: UUID) -> None:
    after = whole(app.sessions, media_id)
    assert (after.row, after.history, after.texts, after.files, after.holders) == (None, [], [], [], [])


@pytest.mark.parametrize("status", Status)
def test_deleting_the_last_copy_takes_every_row_with_it(app: App, status: Status) -> None:
    user = new_user(app)
    media_id = new_file(app, user, "e" * 64, stored=True)
    attempt = put(app, media_id, status)
    with app.sessions.begin() as session:
        delete_media(session, media_id, user)
    assert_gone(app, media_id)
    with app.sessions.begin() as session, pytest.raises(NotFound):
        delete_media(session, media_id, user)
    assert attempt >= 0


def test_deleting_takes_it_out_of_the_libraries_that_the_viewer_administers(app: App) -> None:
    owner = new_user(app)
    library, media_id = new_library(app, owner), new_media(app, owner, "https://example.com/shared")
    other = new_user(app)
    new_media(app, other, "https://example.com/shared")
    with app.sessions.begin() as session:
        add_media(session, library, media_id, owner)
        delete_media(session, media_id, owner)
        with pytest.raises(NotFound):
            queries.get(session, media_id, owner)
        assert queries.get(session, media_id, other)
    assert whole(app.sessions, media_id).holders == [default_of(app, other)]


def test_what_was_deleted_can_be_added_anew(app: App) -> None:
    user = new_user(app)
    first = new_media(app, user, "https://example.com/again")
    put(app, first, Status.READY)
    with app.sessions.begin() as session:
        delete_media(session, first, user)
        again = add_url(session, user, "web_article", "https://example.com/again", {})
    assert again.created
    assert again.media_id != first
    assert row_of(app.sessions, again.media_id).processing_attempts == 0
    assert len(history_of(app.sessions, again.media_id)) == 1


def test_deleting_a_library_takes_what_nobody_else_holds(app: App) -> None:
    owner = new_user(app)
    library = new_library(app, owner)
    kept = new_media(app, owner)
    with app.sessions.begin() as session:
        add_media(session, library, kept, owner)
        alone = add_url(session, owner, "web_article", "https://example.com/alone", {}).media_id
        hold(session, library, alone)
        catalog.remove_media(session, access.default_library(session, owner), alone, owner)
        delete_library(session, library, owner)
        with pytest.raises(NotFound):
            get(session, library, owner)
    assert_gone(app, alone)
    assert whole(app.sessions, kept).holders == [default_of(app, owner)]


# visibility


def test_a_viewer_reads_what_a_library_holds_with_him(app: App) -> None:
    owner, stranger = new_user(app), new_user(app)
    library, media_id = new_library(app, owner), new_media(app, owner)
    member = invite(app, library, owner, Role.MEMBER)
    put(app, media_id, Status.FAILED)

    def seen(session: Session, viewer: UUID) -> bool:
        try:
            queries.get(session, media_id, viewer)
        except NotFound:
            return False
        return True

    with app.sessions.begin() as session:
        assert [seen(session, user) for user in (owner, member, stranger)] == [True, False, False]
        catalog.add_media(session, library, media_id, owner)
        assert [seen(session, user) for user in (owner, member, stranger)] == [True, True, False]
        assert queries.get(session, media_id, owner).may_retry
        assert not queries.get(session, media_id, member).may_retry
        assert queries.newest(session, member).items[0].row.id == media_id
        assert queries.newest(session, stranger).items == []
        for refused in (queries.text, queries.events):
            with pytest.raises(NotFound):
                refused(session, media_id, stranger)


def test_a_creator_who_lost_sight_of_his_media_may_not_retry_it(app: App) -> None:
    """Acting needs reading, also for the creator."""
    creator, keeper = new_user(app), new_user(app)
    media_id = new_media(app, creator, "https://example.com/x")
    new_media(app, keeper, "https://example.com/x")
    put(app, media_id, Status.FAILED)
    with app.sessions.begin() as session:
        delete_media(session, media_id, creator)
        with pytest.raises(NotFound):
            access.require_manager(session, media_id, creator)
        access.require_manager(session, media_id, keeper)
