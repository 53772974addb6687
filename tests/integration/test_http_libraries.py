"""Libraries and their members over HTTP, and the first request of a new user."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from uuid import UUID, uuid4

import pytest

from nexus.app import build
from tests.kit.http import Caller, Site, data, problem, serve
from tests.kit.settings import make_settings

RACERS = 32


@pytest.fixture
def me(me: Caller) -> Caller:
    """Somebody who has a default library already."""
    me.get("/libraries")
    return me


@pytest.fixture
def you(you: Caller) -> Caller:
    """Somebody who has a default library already."""
    you.get("/libraries")
    return you


def names(caller: Caller) -> list[tuple[str, str]]:
    return [(item["name"], item["role"]) for item in data(caller.get("/libraries"))["items"]]


def roles(caller: Caller, library: str) -> dict[str, str]:
    return {
        item["user_id"]: item["role"] for item in data(caller.get(f"/libraries/{library}/members"))["items"]
    }


def hold(caller: Caller, library: str, media_id: UUID) -> None:
    data(caller.post(f"/libraries/{library}/media", json={"media_id": str(media_id)}))


def held(caller: Caller, library: str) -> list[str]:
    return [item["id"] for item in data(caller.get(f"/libraries/{library}/media"))["items"]]


def test_every_user_has_a_default_library(me: Caller) -> None:
    items = data(me.get("/libraries"))["items"]
    assert [(item["is_default"], item["role"]) for item in items] == [(True, "admin")]
    assert data(me.get(f"/libraries/{items[0]['id']}")) == items[0]
    assert roles(me, items[0]["id"]) == {str(me.user): "admin"}


def test_a_user_can_create_a_library(me: Caller) -> None:
    made = data(me.post("/libraries", json={"name": "  Rese\u00e4rch \n notes  "}))
    assert made["name"] == "Rese\u00e4rch notes"
    assert (made["is_default"], made["role"]) == (False, "admin")
    assert [name for name, _ in names(me)] == ["My library", "Rese\u00e4rch notes"]


def test_invalid_library_names_are_refused(me: Caller) -> None:
    bodies = ({}, {"name": ""}, {"name": " \t"}, {"name": "x" * 201}, {"name": "a\x00"}, {"name": 1})
    for body in bodies:
        assert problem(me.post("/libraries", json=body)) == (400, "E_INVALID_REQUEST"), body
    assert len(names(me)) == 1


def test_a_default_library_can_not_be_shared(me: Caller, you: Caller) -> None:
    library = me.default_library()
    refused = (403, "E_DEFAULT_LIBRARY_CANNOT_SHARE")
    assert problem(me.let_in(library, you.user)) == refused
    assert problem(me.let_in(library, uuid4())) == refused
    assert problem(me.let_in(library, me.user, "member")) == refused
    assert problem(me.delete(f"/libraries/{library}/members/{me.user}")) == refused
    assert problem(you.let_in(library, you.user)) == (404, "E_NOT_FOUND")
    assert roles(me, library) == {str(me.user): "admin"}


def test_a_default_library_can_not_be_deleted(me: Caller) -> None:
    assert problem(me.delete(f"/libraries/{me.default_library()}")) == (403, "E_FORBIDDEN")
    assert len(names(me)) == 1


def test_an_admin_adds_and_removes_members(me: Caller, you: Caller) -> None:
    """A removed member no longer sees the library's media, at once and everywhere."""
    library, media_id = me.library(), me.add()
    hold(me, library, media_id)
    paths = [f"/media/{media_id}{part}" for part in ("", "/fragments", "/history")]
    paths += [f"/libraries/{library}{part}" for part in ("", "/media", "/members")]
    assert {you.get(path).status_code for path in paths} == {404}
    data(me.let_in(library, you.user))
    assert {you.get(path).status_code for path in paths} == {200}
    assert ("Shared", "member") in names(you)
    assert [item["id"] for item in data(you.get("/media"))["items"]] == [str(media_id)]
    assert data(me.delete(f"/libraries/{library}/members/{you.user}")) == {"done": True}
    assert {you.get(path).status_code for path in paths} == {404}
    assert data(you.get("/media"))["items"] == []
    assert names(you) == [("My library", "admin")]


def test_adding_a_member_again_changes_their_role(me: Caller, you: Caller) -> None:
    library = me.library()
    for role in ("member", "member", "admin", "member"):
        data(me.let_in(library, you.user, role))
        assert roles(me, library) == {str(me.user): "admin", str(you.user): role}


def test_a_member_can_not_change_a_library(me: Caller, you: Caller, site: Site) -> None:
    library, media_id, own = me.library(), me.add(), you.add()
    third = site.caller()
    third.get("/libraries")
    hold(me, library, media_id)
    data(me.let_in(library, you.user))
    forbidden = (403, "E_FORBIDDEN")
    assert problem(you.let_in(library, third.user)) == forbidden
    assert problem(you.let_in(library, you.user, "admin")) == forbidden
    assert problem(you.delete(f"/libraries/{library}/members/{me.user}")) == forbidden
    assert problem(you.delete(f"/libraries/{library}/media/{media_id}")) == forbidden
    assert problem(you.post(f"/libraries/{library}/media", json={"media_id": str(own)})) == forbidden
    assert problem(you.delete(f"/libraries/{library}")) == forbidden
    assert held(me, library) == [str(media_id)]


def test_a_member_may_leave(me: Caller, you: Caller) -> None:
    library = me.library()
    data(me.let_in(library, you.user))
    data(you.delete(f"/libraries/{library}/members/{you.user}"))
    assert problem(you.get(f"/libraries/{library}")) == (404, "E_NOT_FOUND")
    assert problem(you.delete(f"/libraries/{library}/members/{you.user}")) == (404, "E_NOT_FOUND")


def test_the_last_admin_can_not_leave(me: Caller, you: Caller) -> None:
    library = me.library()
    data(me.let_in(library, you.user))
    conflict = (409, "E_CONFLICT")
    assert problem(me.delete(f"/libraries/{library}/members/{me.user}")) == conflict
    assert problem(me.let_in(library, me.user, "member")) == conflict
    assert roles(me, library) == {str(me.user): "admin", str(you.user): "member"}
    data(me.let_in(library, you.user, "admin"))
    data(me.delete(f"/libraries/{library}/members/{me.user}"))
    assert roles(you, library) == {str(you.user): "admin"}
    assert problem(you.delete(f"/libraries/{library}/members/{you.user}")) == conflict


def test_two_admins_who_remove_each_other_leave_one_admin(me: Caller, you: Caller) -> None:
    """However they race, one stays."""
    for _ in range(5):
        library = me.library()
        data(me.let_in(library, you.user, "admin"))
        start = Barrier(2)

        def leave(caller: Caller, library: str = library, start: Barrier = start) -> int:
            start.wait()
            return caller.delete(f"/libraries/{library}/members/{caller.user}").status_code

        with ThreadPoolExecutor(2) as pool:
            assert sorted(pool.map(leave, (me, you))) == [200, 409]


def test_unknown_users_can_not_be_removed(me: Caller) -> None:
    library = me.library()
    assert problem(me.delete(f"/libraries/{library}/members/{uuid4()}")) == (404, "E_NOT_FOUND")


def test_invalid_members_are_refused(me: Caller) -> None:
    library, user = me.library(), str(uuid4())
    bodies = ({}, {"user_id": "x"}, {"user_id": None}, {"user_id": user, "role": "owner"}, {"user": user})
    for body in bodies:
        assert problem(me.post(f"/libraries/{library}/members", json=body)) == (400, "E_INVALID_REQUEST"), (
            body
        )


def test_media_are_added_to_and_removed_from_a_library(me: Caller) -> None:
    library, media_id = me.library(), me.add()
    hold(me, library, media_id)
    hold(me, library, media_id)
    assert held(me, library) == [str(media_id)]
    data(me.delete(f"/libraries/{library}/media/{media_id}"))
    assert held(me, library) == []
    assert problem(me.delete(f"/libraries/{library}/media/{media_id}")) == (404, "E_NOT_FOUND")
    assert data(me.get(f"/media/{media_id}"))["id"] == str(media_id)


def test_removing_a_media_from_its_last_library_deletes_it(me: Caller) -> None:
    media_id = me.add()
    data(me.delete(f"/libraries/{me.default_library()}/media/{media_id}"))
    assert problem(me.get(f"/media/{media_id}")) == (404, "E_NOT_FOUND")


def test_only_readable_media_can_be_added_to_a_library(me: Caller, you: Caller) -> None:
    library, media_id = me.library(), you.add()
    given = {"media_id": str(media_id)}
    assert problem(me.post(f"/libraries/{library}/media", json=given)) == (404, "E_NOT_FOUND")
    assert problem(me.get(f"/media/{media_id}")) == (404, "E_NOT_FOUND")


def test_deleting_a_library_deletes_media_that_no_other_library_holds(me: Caller, you: Caller) -> None:
    library, alone, kept = me.library(), me.add(), me.add()
    for media_id in (alone, kept):
        hold(me, library, media_id)
    data(me.let_in(library, you.user))
    data(me.delete(f"/libraries/{me.default_library()}/media/{alone}"))
    data(me.delete(f"/libraries/{library}"))
    assert problem(me.get(f"/libraries/{library}")) == (404, "E_NOT_FOUND")
    assert problem(me.get(f"/media/{alone}")) == (404, "E_NOT_FOUND")
    assert data(me.get(f"/media/{kept}"))["id"] == str(kept)
    assert problem(you.get(f"/media/{kept}")) == (404, "E_NOT_FOUND")
    assert names(you) == [("My library", "admin")]


def test_simultaneous_first_requests_of_a_new_user_make_one_library(
    clean_postgres: str, tmp_path: Path
) -> None:
    """Many at once make one user, one library and one membership."""
    app = build(make_settings(clean_postgres, tmp_path))
    user, start = uuid4(), Barrier(RACERS)

    def knock(_: int) -> tuple[int, str]:
        with Caller(site.url, app.settings, user) as caller:
            start.wait()
            answer = caller.get("/libraries")
            return answer.status_code, answer.json()["data"]["items"][0]["id"]

    with serve(app) as site, ThreadPoolExecutor(RACERS) as pool:
        answers = set(pool.map(knock, range(RACERS)))
    with app.sessions.engine.connect() as connection:
        found = [
            connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one()
            for table in ("users", "libraries", "memberships")
        ]
    app.close()
    assert len(answers) == 1
    assert {status for status, _ in answers} == {200}
    assert found == [1, 1, 1]


def sizes(caller: Caller) -> dict[str, tuple[int, int]]:
    return {
        item["name"]: (item["members"], item["items"]) for item in data(caller.get("/libraries"))["items"]
    }


def test_libraries_say_how_many_belong_to_them_and_what_they_hold(me: Caller, you: Caller) -> None:
    library = me.library("Research")
    me.let_in(library, you.user)
    media_id = me.add()
    me.post(f"/libraries/{library}/media", json={"media_id": str(media_id)})
    assert sizes(me) == {"My library": (1, 1), "Research": (2, 1)}
    assert sizes(you)["Research"] == (2, 1)


def test_admins_rename_a_library_for_all_of_its_members(me: Caller, you: Caller) -> None:
    library = me.library("Research")
    me.let_in(library, you.user)
    assert data(me.patch(f"/libraries/{library}", json={"name": "  The  archive "}))["name"] == "The archive"
    assert ("The archive", "member") in names(you)
    assert problem(you.patch(f"/libraries/{library}", json={"name": "Mine"})) == (403, "E_FORBIDDEN")
    assert problem(me.patch(f"/libraries/{library}", json={"name": " "})) == (400, "E_INVALID_REQUEST")
    [entry] = data(me.get("/audit", params={"event": "library_renamed"}))["items"]
    assert entry["about"] == "The archive"


def test_an_item_is_moved_from_one_library_to_another(me: Caller) -> None:
    one, two, media_id = me.library("One"), me.library("Two"), str(me.add())
    me.post(f"/libraries/{one}/media", json={"media_id": media_id})
    data(me.post(f"/libraries/{two}/media", json={"media_id": media_id, "from_library_id": one}))
    data(me.post(f"/libraries/{two}/media", json={"media_id": media_id, "from_library_id": two}))
    assert sizes(me) == {"My library": (1, 1), "One": (1, 0), "Two": (1, 1)}
    again = me.post(f"/libraries/{two}/media", json={"media_id": media_id, "from_library_id": one})
    assert problem(again) == (404, "E_NOT_FOUND")
    assert sizes(me)["Two"] == (1, 1)


def test_the_last_library_that_holds_an_item_can_pass_it_on(me: Caller) -> None:
    one, media_id = me.library("One"), str(me.add())
    home = me.default_library()
    me.patch(f"/media/{media_id}/shelf", json={"favourite": True})
    data(me.post(f"/libraries/{one}/media", json={"media_id": media_id, "from_library_id": home}))
    assert sizes(me) == {"My library": (1, 0), "One": (1, 1)}
    assert data(me.get(f"/media/{media_id}"))["is_favourite"]


def test_nothing_is_moved_unless_both_libraries_can_be_changed(me: Caller, you: Caller) -> None:
    mine, yours, media_id = me.library("Mine"), you.library("Yours"), str(me.add())
    me.post(f"/libraries/{mine}/media", json={"media_id": media_id})
    me.let_in(mine, you.user)
    you.let_in(yours, me.user)
    move = {"media_id": media_id, "from_library_id": mine}
    assert problem(me.post(f"/libraries/{yours}/media", json=move)) == (403, "E_FORBIDDEN")
    assert problem(you.post(f"/libraries/{yours}/media", json=move)) == (403, "E_FORBIDDEN")
    assert (sizes(me)["Mine"], sizes(you)["Yours"]) == ((2, 1), (2, 0))


def test_an_item_with_a_text_of_ones_own_is_copied_and_not_moved(me: Caller) -> None:
    """The text may be in no other library, so moving would lose it."""
    one, home, media_id = me.library("One"), me.default_library(), str(me.add())
    me.post(f"/media/{media_id}/text", json={"text": "My own words."})
    move = {"media_id": media_id, "from_library_id": home}
    assert problem(me.post(f"/libraries/{one}/media", json=move)) == (409, "E_CONFLICT")
    data(me.post(f"/libraries/{one}/media", json={"media_id": media_id}))
    assert data(me.get(f"/media/{media_id}"))["revision"] == 1
