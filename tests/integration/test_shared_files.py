"""A file is its uploader's: nobody else puts it into a library, and the uploader's delete takes it out of all."""

from contextlib import suppress
from pathlib import Path
from uuid import UUID

import pytest

from nexus.app import App
from nexus.errors import Forbidden, NotFound
from nexus.libraries import access, catalog, members
from nexus.libraries.access import Role
from nexus.settings import Settings
from tests.kit.crowd import Crowd
from tests.kit.http import Caller, data, problem
from tests.kit.media import everything_of, new_file, new_media, share_media
from tests.kit.settings import make_settings
from tests.kit.uploads import Uploader, stored_paths, unique_pdf
from tests.kit.users import new_user

FORBIDDEN = (403, "E_FORBIDDEN")
MISSING = (404, "E_NOT_FOUND")


def put(caller: Caller, library: str, media_id: UUID) -> object:
    return caller.post(f"/libraries/{library}/media", json={"media_id": str(media_id)})


def shared_file(app: App, me: Caller) -> tuple[UUID, str]:
    """A file of mine in a library of mine."""
    media_id, library = Uploader(app, me.user).upload(unique_pdf()), me.library()
    data(put(me, library, media_id))
    return media_id, library


@pytest.mark.parametrize("role", ["member", "admin"])
def test_a_member_can_not_copy_a_file_into_a_library_of_their_own(
    app: App, me: Caller, you: Caller, role: str
) -> None:
    """The attack: join, copy, be removed, and still read it."""
    media_id, library = shared_file(app, me)
    you.get("/libraries")
    data(me.let_in(library, you.user, role))
    for own in (you.default_library(), you.library("Mine")):
        assert problem(put(you, own, media_id)) == FORBIDDEN
    data(me.delete(f"/libraries/{library}/members/{you.user}"))
    for path in (f"/media/{media_id}", f"/media/{media_id}/file", f"/media/{media_id}/fragments"):
        assert problem(you.get(path)) == MISSING


def test_an_admin_can_not_put_a_file_of_a_member_into_another_library(
    app: App, me: Caller, you: Caller
) -> None:
    media_id, library = shared_file(app, me)
    you.get("/libraries")
    data(me.let_in(library, you.user, "admin"))
    refused = put(you, you.library("Wider"), media_id)
    assert problem(refused) == FORBIDDEN
    assert "uploader" in refused.json()["error"]["message"]


def test_a_reader_may_add_an_address_to_a_library_of_their_own(me: Caller, you: Caller) -> None:
    """It stays theirs after they are removed: the page is anybody's."""
    media_id, library = me.add(), me.library()
    data(put(me, library, media_id))
    you.get("/libraries")
    data(me.let_in(library, you.user))
    data(put(you, you.library("Mine"), media_id))
    data(me.delete(f"/libraries/{library}/members/{you.user}"))
    assert data(you.get(f"/media/{media_id}"))["id"] == str(media_id)


def test_a_stranger_can_neither_copy_nor_find_a_file(app: App, me: Caller, you: Caller) -> None:
    media_id, _ = shared_file(app, me)
    assert problem(put(you, you.library("Mine"), media_id)) == MISSING


def test_deleting_a_file_takes_it_out_of_every_library(app: App, me: Caller, you: Caller) -> None:
    """Also where the uploader has become a plain member."""
    media_id, library = shared_file(app, me)
    you.get("/libraries")
    data(me.let_in(library, you.user, "admin"))
    data(you.let_in(library, me.user, "member"))
    assert problem(me.delete(f"/libraries/{library}/media/{media_id}")) == FORBIDDEN
    data(me.delete(f"/media/{media_id}"))
    assert problem(you.get(f"/media/{media_id}")) == MISSING
    assert data(you.get(f"/libraries/{library}/media"))["items"] == []
    assert everything_of(app.sessions, media_id).row is None
    assert stored_paths(app) == []


def test_an_uploader_takes_their_file_out_of_a_library_they_were_removed_from(
    app: App, me: Caller, you: Caller
) -> None:
    """Somebody who is thrown out can take back what is theirs, and nothing else."""
    media_id, library = shared_file(app, me)
    address = me.add()
    data(put(me, library, address))
    you.get("/libraries")
    data(me.let_in(library, you.user, "admin"))
    for mine in (media_id, address):
        data(me.delete(f"/libraries/{me.default_library()}/media/{mine}"))
    data(you.delete(f"/libraries/{library}/members/{me.user}"))
    assert problem(me.get(f"/media/{media_id}")) == MISSING
    assert problem(me.delete(f"/media/{address}")) == MISSING
    data(me.delete(f"/media/{media_id}"))
    assert problem(you.get(f"/media/{media_id}")) == MISSING
    assert data(you.get(f"/media/{address}"))["id"] == str(address)


def test_an_admin_deletes_a_file_only_from_their_own_libraries(app: App, me: Caller, you: Caller) -> None:
    media_id, library = shared_file(app, me)
    you.get("/libraries")
    data(me.let_in(library, you.user, "admin"))
    data(you.delete(f"/media/{media_id}"))
    assert data(me.get(f"/libraries/{library}/media"))["items"] == []
    assert data(me.get(f"/media/{media_id}"))["id"] == str(media_id)


def test_a_plain_member_can_not_delete_a_file(app: App, me: Caller, you: Caller) -> None:
    media_id, library = shared_file(app, me)
    you.get("/libraries")
    data(me.let_in(library, you.user))
    assert problem(you.delete(f"/media/{media_id}")) == FORBIDDEN
    assert data(me.get(f"/media/{media_id}"))["id"] == str(media_id)


class TestRaces:
    """On PostgreSQL: SQLite has one writer at a time."""

    ROUNDS = 40
    pytestmark = pytest.mark.wall_clock

    @pytest.fixture
    def settings(self, clean_postgres: str, tmp_path: Path) -> Settings:
        return make_settings(clean_postgres, tmp_path, database_pool=40)

    def test_a_file_that_is_shared_while_it_is_deleted_is_gone_everywhere(self, app: App) -> None:
        owner, crowd = new_user(app), Crowd(6)
        for round_ in range(self.ROUNDS):
            media_id = new_file(app, owner, f"{round_:064x}")
            with app.sessions.begin() as session:
                libraries = [catalog.create_library(session, owner, f"{n}") for n in range(5)]

            def act(place: int, media_id: UUID = media_id, libraries: list[UUID] = libraries) -> None:
                with suppress(NotFound), app.sessions.begin() as session:
                    if place == 0:
                        catalog.delete_media(session, media_id, owner)
                    else:
                        catalog.add_media(session, libraries[place - 1], media_id, owner)

            crowd.rush(act)
            left = everything_of(app.sessions, media_id)
            assert (left.row, left.holders) == (None, [])
        crowd.close()

    def test_a_page_that_is_copied_while_it_is_removed_does_not_stay(self, app: App) -> None:
        """Somebody who can't read it any more can't add it either: the check comes after the lock."""
        owner, other, crowd = new_user(app), new_user(app), Crowd(2)
        for round_ in range(self.ROUNDS):
            media_id = new_media(app, owner, f"https://example.com/{round_}")
            new_media(app, other, f"https://example.com/{round_}")
            with app.sessions.begin() as session:
                library = catalog.create_library(session, owner, "Another")

            def act(place: int, media_id: UUID = media_id, library: UUID = library) -> bool:
                try:
                    with app.sessions.begin() as session:
                        if place == 0:
                            catalog.delete_media(session, media_id, owner)
                        else:
                            catalog.add_media(session, library, media_id, owner)
                except NotFound:
                    return False
                return True

            removed, copied = crowd.rush(act)
            held = library in everything_of(app.sessions, media_id).holders
            assert removed
            # Copied first: the removal took both. Copied after: it was refused.
            assert not held, copied
        crowd.close()

    def test_a_member_who_copies_while_being_removed_never_holds_the_file(self, app: App) -> None:
        owner, member, crowd = new_user(app), new_user(app), Crowd(4)
        with app.sessions.read() as session:
            own = access.default_library(session, member)
        for round_ in range(self.ROUNDS):
            media_id = new_file(app, owner, f"{round_:064x}")
            shared = share_media(app, owner, media_id, (member, Role.MEMBER))

            def act(place: int, media_id: UUID = media_id, shared: UUID = shared) -> None:
                with suppress(NotFound, Forbidden), app.sessions.begin() as session:
                    if place == 0:
                        members.remove_member(session, shared, member, owner)
                    else:
                        catalog.add_media(session, own, media_id, member)

            crowd.rush(act)
            assert own not in everything_of(app.sessions, media_id).holders
        crowd.close()
