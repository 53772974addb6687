"""Invitations: people join libraries by accepting, and inviting says nothing about who is known."""

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier
from typing import Any
from uuid import UUID, uuid4

import jwt
import pytest

from nexus.app import App
from nexus.libraries import invitations, people
from nexus.libraries.people import Profile
from nexus.settings import Settings
from tests.kit.clock import SetClock
from tests.kit.http import Caller, Site, data, problem

ANN = "ann@example.com"
MISSING = (404, "E_NOT_FOUND")
FORBIDDEN = (403, "E_FORBIDDEN")
CONFLICT = (409, "E_CONFLICT")
INVALID = (400, "E_INVALID_REQUEST")


def invite(caller: Caller, library: str, **whom: object) -> Any:
    return caller.post(f"/libraries/{library}/invitations", json=whom)


def offers(caller: Caller) -> list[dict[str, Any]]:
    return list(data(caller.get("/invitations"))["items"])


def open_ones(caller: Caller, library: str) -> list[dict[str, Any]]:
    return list(data(caller.get(f"/libraries/{library}/invitations"))["items"])


def answer(caller: Caller, invitation: str, how: str = "accept") -> Any:
    return caller.post(f"/invitations/{invitation}/{how}")


def names(caller: Caller) -> list[str]:
    return [item["name"] for item in data(caller.get("/libraries"))["items"]]


def roles(caller: Caller, library: str) -> dict[str, str]:
    found = data(caller.get(f"/libraries/{library}/members"))["items"]
    return {item["user_id"]: item["role"] for item in found}


def token_with(settings: Settings, user: UUID, **claims: object) -> dict[str, str]:
    """The header of a token that says more about its user."""
    told = {
        "iss": settings.jwt_issuer,
        "aud": settings.jwt_audience,
        "sub": str(user),
        "exp": int(time.time()) + 3600,
        **claims,
    }
    return {"Authorization": f"Bearer {jwt.encode(told, settings.jwt_secret, 'HS256')}"}


def signed_in_as(site: Site, **claims: object) -> Caller:
    caller = site.caller()
    caller.headers.update(token_with(site.app.settings, caller.user, **claims))
    caller.get("/libraries")
    return caller


@pytest.fixture
def ann(site: Site) -> Caller:
    return signed_in_as(site, name="Ann Lee", email="Ann@Example.com", email_verified=True)


def test_an_invited_user_joins_by_accepting(me: Caller, you: Caller) -> None:
    """Nobody's list of libraries changes before they agree."""
    library, media_id = me.library("Research"), me.add()
    data(me.post(f"/libraries/{library}/media", json={"media_id": str(media_id)}))
    made = data(invite(me, library, user_id=str(you.user)))
    assert names(you) == ["My library"]
    assert problem(you.get(f"/media/{media_id}")) == MISSING
    assert roles(me, library) == {str(me.user): "admin"}
    [offer] = offers(you)
    assert (offer["id"], offer["library_name"], offer["role"]) == (made["id"], "Research", "member")
    assert data(answer(you, offer["id"])) == {"library_id": library}
    assert names(you) == ["My library", "Research"]
    assert data(you.get(f"/media/{media_id}"))["id"] == str(media_id)
    assert roles(me, library) == {str(me.user): "admin", str(you.user): "member"}
    assert (offers(you), open_ones(me, library)) == ([], [])


def test_adding_a_member_by_the_old_call_makes_an_invitation(me: Caller, you: Caller) -> None:
    library = me.library()
    given = {"user_id": str(you.user), "role": "admin"}
    done = data(me.post(f"/libraries/{library}/members", json=given))
    assert done["invitation"]["role"] == "admin"
    assert roles(me, library) == {str(me.user): "admin"}
    data(answer(you, done["invitation"]["id"]))
    assert data(me.post(f"/libraries/{library}/members", json={**given, "role": "member"})) == {"done": True}
    assert roles(me, library)[str(you.user)] == "member"


def test_an_invitation_to_an_unknown_email_waits_until_its_owner_signs_in(me: Caller, site: Site) -> None:
    library = me.library("Research")
    made = data(invite(me, library, email=" ANN@example.COM "))
    assert made["email"] == ANN
    ann = signed_in_as(site, email=ANN, email_verified=True)
    assert [offer["id"] for offer in offers(ann)] == [made["id"]]
    data(answer(ann, made["id"]))
    assert names(ann) == ["My library", "Research"]


@pytest.mark.parametrize(
    "claims",
    [
        {"email": ANN},
        {"email": ANN, "email_verified": False},
        {"email": ANN, "email_verified": "true"},
        {"email": ANN, "email_verified": 1},
        {"email": [ANN], "email_verified": True},
        {"email": f"{ANN}, x@example.com", "email_verified": True},
        {"email": "an\u0274@example.com", "email_verified": True},
        {"email": "ann@example.com.evil.example", "email_verified": True},
        {"preferred_username": ANN, "email_verified": True},
        {"name": ANN},
    ],
)
def test_only_a_verified_email_opens_an_invitation(me: Caller, site: Site, claims: dict[str, object]) -> None:
    made = data(invite(me, me.library(), email=ANN))
    pretender = signed_in_as(site, **claims)
    assert offers(pretender) == []
    for how in ("accept", "decline"):
        assert problem(answer(pretender, made["id"], how)) == MISSING


def test_letters_that_only_look_alike_are_different_emails(me: Caller, site: Site) -> None:
    """ß and ss are two mailboxes, and so are ı and i."""
    library = me.library()
    for mine, theirs in (("stra\u00dfe@x.de", "strasse@x.de"), ("tim@x.de", "t\u0131m@x.de")):
        made = data(invite(me, library, email=mine))
        assert problem(answer(signed_in_as(site, email=theirs, email_verified=True), made["id"])) == MISSING


def test_an_email_that_is_no_longer_verified_opens_nothing(me: Caller, site: Site, ann: Caller) -> None:
    made = data(invite(me, me.library(), email=ANN))
    assert len(offers(ann)) == 1
    ann.headers.update(token_with(site.app.settings, ann.user, email=ANN, email_verified=False))
    assert offers(ann) == []
    assert problem(answer(ann, made["id"])) == MISSING


def test_a_token_that_says_nothing_about_its_user_forgets_nothing(site: Site, ann: Caller) -> None:
    ann.headers.update(token_with(site.app.settings, ann.user))
    assert data(ann.get("/me")) == {"user_id": str(ann.user), "name": "Ann Lee", "email": ANN}


def test_inviting_says_nothing_about_who_is_known(me: Caller, ann: Caller, you: Caller) -> None:
    """The same answer for somebody who has signed in and for somebody who has not, by email and by id."""
    library = me.library()
    pairs = [
        ({"email": ANN}, {"email": "nobody@example.com"}),
        ({"user_id": str(you.user)}, {"user_id": str(uuid4())}),
    ]
    for known, unknown in pairs:
        first, second = (data(invite(me, library, **whom)) for whom in (known, unknown))
        varying = {"id", "email", "user_id"}
        assert {k: v for k, v in first.items() if k not in varying} == {
            k: v for k, v in second.items() if k not in varying
        }
        assert {name: type(value) for name, value in first.items()} == {
            name: type(value) for name, value in second.items()
        }
    listed = {item["email"]: item["user_id"] for item in open_ones(me, library) if item["email"]}
    assert listed == {ANN: None, "nobody@example.com": None}
    assert "Ann" not in me.get(f"/libraries/{library}/invitations").text


def test_a_decline_does_not_name_who_declined(me: Caller, ann: Caller) -> None:
    library = me.library()
    made = data(invite(me, library, email=ANN))
    data(answer(ann, made["id"], "decline"))
    assert (offers(ann), open_ones(me, library)) == ([], [])
    assert str(ann.user) not in me.get("/audit").text
    assert problem(answer(ann, made["id"])) == MISSING
    assert names(ann) == ["My library"]


def test_nobody_else_can_answer_an_invitation(me: Caller, you: Caller, ann: Caller) -> None:
    library = me.library()
    for made in (data(invite(me, library, email=ANN)), data(invite(me, library, user_id=str(you.user)))):
        for how in ("accept", "decline"):
            assert problem(answer(me, made["id"], how)) == MISSING
        other = you if made["email"] else ann
        assert problem(answer(other, made["id"])) == MISSING
    assert problem(answer(you, str(uuid4()))) == MISSING


def test_an_invitation_can_be_taken_back(me: Caller, you: Caller) -> None:
    library = me.library()
    made = data(invite(me, library, user_id=str(you.user)))
    place = f"/libraries/{library}/invitations/{made['id']}"
    assert problem(you.delete(place)) == MISSING
    data(me.delete(place))
    assert problem(answer(you, made["id"])) == MISSING
    assert problem(me.delete(place)) == MISSING
    assert names(you) == ["My library"]


def test_an_invitation_of_another_library_can_not_be_taken_back(me: Caller, you: Caller) -> None:
    made = data(invite(me, me.library(), user_id=str(uuid4())))
    assert problem(you.delete(f"/libraries/{you.library()}/invitations/{made['id']}")) == MISSING


def test_an_invitation_expires(app: App, me: Caller, you: Caller, clock: SetClock) -> None:
    library = me.library()
    made = data(invite(me, library, user_id=str(you.user)))
    clock.forward(days=app.settings.invitation_days)
    assert (offers(you), open_ones(me, library)) == ([], [])
    assert problem(answer(you, made["id"])) == MISSING
    again = data(invite(me, library, user_id=str(you.user)))
    data(answer(you, again["id"]))
    with app.sessions.begin() as session:
        assert invitations.forget_expired(session) == 0


def test_expired_invitations_are_forgotten(app: App, me: Caller, clock: SetClock) -> None:
    library = me.library()
    invite(me, library, email=ANN)
    clock.forward(days=1)
    invite(me, library, email="ben@example.com")
    clock.forward(days=app.settings.invitation_days - 1)
    with app.sessions.begin() as session:
        assert invitations.forget_expired(session) == 1
    assert [item["email"] for item in open_ones(me, library)] == ["ben@example.com"]


def test_inviting_again_renews_the_invitation(me: Caller, you: Caller, clock: SetClock) -> None:
    library = me.library()
    first = data(invite(me, library, email=ANN))
    clock.forward(days=3)
    second = data(invite(me, library, email="Ann@example.com", role="admin"))
    assert (second["id"], second["role"]) == (first["id"], "admin")
    assert second["expires_at"] > first["expires_at"]
    assert len(open_ones(me, library)) == 1


def test_a_plain_member_invites_nobody(me: Caller, you: Caller) -> None:
    library = me.library()
    data(me.let_in(library, you.user))
    made = data(invite(me, library, email=ANN))
    assert problem(invite(you, library, email="ben@example.com")) == FORBIDDEN
    assert problem(you.get(f"/libraries/{library}/invitations")) == FORBIDDEN
    assert problem(you.delete(f"/libraries/{library}/invitations/{made['id']}")) == FORBIDDEN


def test_a_stranger_learns_nothing_of_a_library(me: Caller, you: Caller) -> None:
    library = me.library()
    assert problem(invite(you, library, email=ANN)) == MISSING
    assert problem(you.get(f"/libraries/{library}/invitations")) == MISSING


def test_nobody_is_invited_into_a_default_library(me: Caller, you: Caller) -> None:
    refused = (403, "E_DEFAULT_LIBRARY_CANNOT_SHARE")
    for whom in ({"email": ANN}, {"user_id": str(you.user)}):
        assert problem(invite(me, me.default_library(), **whom)) == refused


def test_a_member_is_not_invited_again(me: Caller, ann: Caller) -> None:
    """Members see each other's email, so this tells nothing new."""
    library = me.library()
    data(answer(ann, data(invite(me, library, email=ANN))["id"]))
    assert problem(invite(me, library, email=ANN)) == CONFLICT
    assert problem(invite(me, library, user_id=str(ann.user))) == CONFLICT
    assert problem(invite(me, library, user_id=str(me.user))) == CONFLICT


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"email": None},
        {"email": ""},
        {"email": "ann"},
        {"email": "ann@"},
        {"email": "@example.com"},
        {"email": "a@b@c"},
        {"email": "ann lee@example.com"},
        {"email": "ann@example.com\r\nBcc: x@example.com"},
        {"email": "a\u202enn@example.com"},
        {"email": "x" * 250 + "@example.com"},
        {"email": ANN, "user_id": str(uuid4())},
        {"email": ANN, "role": "owner"},
        {"user_id": "somebody"},
        {"email": ANN, "libary": "x"},
    ],
)
def test_bad_invitations_are_refused(me: Caller, body: dict[str, object]) -> None:
    library = me.library()
    assert problem(me.post(f"/libraries/{library}/invitations", json=body)) == INVALID
    assert open_ones(me, library) == []


def test_a_person_has_a_limited_number_of_open_invitations(
    me: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(invitations, "MOST_OPEN", 2)
    library, other = me.library(), me.library("Other")
    data(invite(me, library, email="a@example.com"))
    data(invite(me, other, email="b@example.com"))
    assert problem(invite(me, library, email="c@example.com")) == CONFLICT
    data(invite(me, library, email="a@example.com"))
    assert len(open_ones(me, library)) == 1


class TestVoid:
    """Somebody who loses a library leaves no way back into it."""

    @pytest.mark.parametrize("how", ["removed", "demoted", "left"])
    def test_invitations_of_a_former_admin_are_void(
        self, me: Caller, you: Caller, site: Site, how: str
    ) -> None:
        library, puppet = me.library(), site.caller()
        data(me.let_in(library, you.user, "admin"))
        planted = data(invite(you, library, user_id=str(puppet.user), role="admin"))
        place = f"/libraries/{library}/members/{you.user}"
        match how:
            case "removed":
                data(me.delete(place))
            case "demoted":
                data(me.let_in(library, you.user, "member"))
            case "left":
                data(you.delete(place))
        assert problem(answer(puppet, planted["id"])) == MISSING
        assert open_ones(me, library) == []

    def test_a_removed_member_has_no_second_invitation_to_come_back_with(
        self, me: Caller, ann: Caller
    ) -> None:
        library = me.library()
        by_email = data(invite(me, library, email=ANN))
        by_id = data(invite(me, library, user_id=str(ann.user)))
        data(answer(ann, by_id["id"]))
        data(me.delete(f"/libraries/{library}/members/{ann.user}"))
        assert problem(answer(ann, by_email["id"])) == MISSING

    def test_invitations_go_with_their_library(self, me: Caller, you: Caller) -> None:
        library = me.library()
        made = data(invite(me, library, user_id=str(you.user)))
        data(me.delete(f"/libraries/{library}"))
        assert offers(you) == []
        assert problem(answer(you, made["id"])) == MISSING


class TestPeople:
    """Names are known only among people who share a library."""

    def test_members_see_each_others_names_and_roles(self, me: Caller, ann: Caller) -> None:
        data(me.patch("/me", json={"name": "  Max \u202e\n Muster "}))
        library = me.library()
        data(me.let_in(library, ann.user))
        seen = data(ann.get(f"/libraries/{library}/members"))["items"]
        assert {(item["name"], item["email"], item["role"]) for item in seen} == {
            ("Max Muster", None, "admin"),
            ("Ann Lee", ANN, "member"),
        }

    def test_people_are_found_only_by_those_who_share_a_library_with_them(
        self, me: Caller, ann: Caller, you: Caller
    ) -> None:
        library = me.library()
        data(me.let_in(library, ann.user))
        for wanted in ("lee", "ANN@", "n L", ""):
            found = [item["user_id"] for item in data(me.get("/people", params={"q": wanted}))["items"]]
            assert str(ann.user) in found
        for wanted in ("lee", "ann", "", "%", "_"):
            found = [item["user_id"] for item in data(you.get("/people", params={"q": wanted}))["items"]]
            assert found in ([], [str(you.user)])
        data(me.delete(f"/libraries/{library}/members/{ann.user}"))
        assert data(me.get("/people", params={"q": "lee"}))["items"] == []

    def test_an_open_invitation_shares_only_the_name_of_who_sent_it(self, ann: Caller, you: Caller) -> None:
        library = ann.library("Research")
        data(invite(ann, library, user_id=str(you.user)))
        [offer] = offers(you)
        assert (offer["inviter_name"], offer["inviter_email"]) == ("Ann Lee", ANN)
        assert data(you.get("/people", params={"q": "ann"}))["items"] == []
        assert data(ann.get("/people"))["items"] == [
            {"user_id": str(ann.user), "name": "Ann Lee", "email": ANN}
        ]

    def test_an_own_name_comes_before_the_claimed_one(self, ann: Caller) -> None:
        assert data(ann.patch("/me", json={"name": "Annie"}))["name"] == "Annie"
        ann.get("/libraries")
        assert data(ann.get("/me"))["name"] == "Annie"
        assert data(ann.patch("/me", json={"name": " "}))["name"] == "Ann Lee"

    @pytest.mark.parametrize("body", [{}, {"name": "x" * 101}, {"name": None}, {"email": ANN}, {"name": 3}])
    def test_bad_names_are_refused(self, ann: Caller, body: dict[str, object]) -> None:
        """An email is not the user's to say: it must be verified."""
        assert problem(ann.patch("/me", json=body)) == INVALID
        assert data(ann.get("/me"))["name"] == "Ann Lee"

    @pytest.mark.parametrize(
        ("claims", "profile"),
        [
            ({}, Profile()),
            ({"name": "A" * 300}, Profile(name="A" * 100)),
            ({"name": "\x00\x1b[31m"}, Profile(name="[31m")),
            ({"name": 7, "email": 7, "email_verified": True}, Profile()),
            ({"email": "x", "email_verified": True}, Profile()),
            ({"email": "A@B.c", "email_verified": True}, Profile(email="a@b.c")),
            ({"email": "A@B.c"}, Profile(unverified="a@b.c")),
        ],
    )
    def test_claims_become_a_profile(self, claims: dict[str, object], profile: Profile) -> None:
        assert Profile.of(claims) == profile

    def test_an_operator_sets_an_email(self, app: App, me: Caller, you: Caller) -> None:
        you.get("/libraries")
        with app.sessions.begin() as session:
            people.set_email(session, you.user, "You@Example.com")
        data(invite(me, me.library(), email="you@example.com"))
        assert len(offers(you)) == 1


RACERS = 8


class TestRaces:
    """However they race, over HTTP, on PostgreSQL."""

    @pytest.fixture
    def database_url(self, clean_postgres: str) -> str:
        return clean_postgres

    def rush(self, *acts: Any) -> list[int]:
        start = Barrier(len(acts))

        def go(act: Any) -> int:
            start.wait(30)
            return int(act().status_code)

        with ThreadPoolExecutor(len(acts)) as pool:
            return list(pool.map(go, acts))

    def test_an_invitation_is_accepted_once(self, me: Caller, site: Site) -> None:
        """Several people may have the same verified email; one of them gets in."""
        for number in range(8):
            email = f"shared{number}@example.com"
            library = me.library()
            made = data(invite(me, library, email=email))
            crowd = [signed_in_as(site, email=email, email_verified=True) for _ in range(RACERS)]
            said = self.rush(*(partial(answer, one, made["id"]) for one in crowd))
            assert sorted(said) == [200] + [404] * (RACERS - 1)
            assert len(roles(me, library)) == 2

    def test_an_invitation_that_is_accepted_and_taken_back_at_once_has_one_outcome(
        self, me: Caller, you: Caller
    ) -> None:
        you.get("/libraries")
        for _ in range(20):
            library = me.library()
            made = data(invite(me, library, user_id=str(you.user)))
            place = f"/libraries/{library}/invitations/{made['id']}"
            accepted, revoked = self.rush(partial(answer, you, made["id"]), partial(me.delete, place))
            assert sorted((accepted, revoked)) == [200, 404]
            assert (str(you.user) in roles(me, library)) == (accepted == 200)

    def test_an_admin_who_invites_while_being_removed_leaves_no_invitation(
        self, me: Caller, you: Caller
    ) -> None:
        you.get("/libraries")
        for _ in range(20):
            library = me.library()
            data(me.let_in(library, you.user, "admin"))
            place = f"/libraries/{library}/members/{you.user}"
            removed, invited = self.rush(
                partial(me.delete, place), partial(invite, you, library, email="puppet@example.com")
            )
            assert (removed, invited in {200, 404}) == (200, True)
            assert open_ones(me, library) == []

    def test_many_invitations_of_the_same_person_are_one(self, me: Caller) -> None:
        for _ in range(10):
            library = me.library()
            acts = [partial(invite, me, library, email=ANN)] * RACERS
            assert set(self.rush(*acts)) == {200}
            assert len(open_ones(me, library)) == 1

    def test_accepting_while_the_library_is_deleted_leaves_nothing(self, me: Caller, you: Caller) -> None:
        you.get("/libraries")
        for _ in range(20):
            library = me.library()
            made = data(invite(me, library, user_id=str(you.user)))
            accepted, deleted = self.rush(
                partial(answer, you, made["id"]), partial(me.delete, f"/libraries/{library}")
            )
            assert (accepted in {200, 404}, deleted) == (True, 200)
            assert names(you) == ["My library"]
