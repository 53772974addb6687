"""Signing in with a link, staying signed in, and signing out: on this browser, on another, and everywhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from uuid import UUID, uuid4

import httpx2
import pytest
from sqlalchemy import text

from nexus.app import App, build
from nexus.libraries import sign_ins
from nexus.web.api import events
from nexus.web.http import cookies
from nexus.web.http.auth import Gate
from nexus.web.http.lookup_cache import MEMORY_SECONDS
from nexus.web.views.devices import device_of
from tests.kit.clock import SetClock, Ticks
from tests.kit.crowd import Crowd
from tests.kit.http import Site, Stream, serve
from tests.kit.settings import make_settings
from tests.kit.sign_ins import cookie_of, link_key, session_key

PRESSED = {"Sec-Fetch-Site": "same-origin"}


def press(site: Site, key: str, cookie: str = "", **headers: str) -> httpx2.Response:
    """Press the button of a link's page."""
    given = {**PRESSED, **({"Cookie": cookie} if cookie else {}), **headers}
    return site.anyone().post("/sign-in", data={"token": key}, headers=given)


def session_of(response: httpx2.Response) -> str:
    """The session cookie that an answer sets, as a browser sends it back."""
    found = re.match(rf"{cookies.SESSION}=([^;]+);", response.headers["set-cookie"])
    assert found
    return f"{cookies.SESSION}={found[1]}"


def is_in(site: Site, cookie: str) -> bool:
    status = site.anyone(Cookie=cookie).get("/account").status_code
    assert status in {200, 401}
    return status == 200


def gate(site: Site) -> Gate:
    found: Gate = site.server.config.app.state.gate  # type: ignore[union-attr]
    return found


# --- links ---


def test_opening_a_link_signs_nobody_in_until_the_button_is_pressed(site: Site) -> None:
    """A picture in a saved article can open any address of Nexus, and must not sign its reader in as somebody."""
    key = link_key(site.app.sessions, uuid4())
    picture = {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Dest": "image", "Sec-Fetch-Mode": "no-cors"}
    for headers in (picture, {"Sec-Fetch-Site": "cross-site"}, {}):
        opened = site.anyone().get("/sign-in", params={"token": key}, headers=headers)
        assert (opened.status_code, opened.headers.get("set-cookie")) == (200, None)
        assert 'method="post" action="/sign-in"' in opened.text
    assert is_in(site, session_of(press(site, key)))


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "", "Origin": "https://elsewhere.example"},
        {"Sec-Fetch-Site": "", "Origin": "null"},
        {"Sec-Fetch-Site": ""},
    ],
    ids=str,
)
def test_another_site_can_not_press_the_button(site: Site, headers: dict[str, str]) -> None:
    """And the link is still good afterwards."""
    key = link_key(site.app.sessions, uuid4())
    refused = press(site, key, **headers)
    assert (refused.status_code, refused.headers.get("set-cookie")) == (403, None)
    assert press(site, key).status_code == 303


def test_a_link_works_once(site: Site) -> None:
    key = link_key(site.app.sessions, uuid4())
    assert press(site, key).headers["location"] == "/"
    again = press(site, key)
    assert (again.status_code, again.headers.get("set-cookie")) == (401, None)
    assert "nexus token --link" in again.text
    assert site.anyone().get("/sign-in", params={"token": key}).status_code == 401


def test_of_many_who_use_a_link_at_once_one_is_signed_in(app: App, crowd: Crowd) -> None:
    for _ in range(30):
        user = uuid4()
        key = link_key(app.sessions, user)

        def use(_: int, key: str = key) -> UUID | None:
            with app.sessions.begin() as session:
                return sign_ins.use_link(session, key)

        assert sorted(crowd.rush(use), key=str) == sorted([user] + [None] * (crowd.size - 1), key=str)


def test_a_link_expires_after_ten_minutes(site: Site, clock: SetClock) -> None:
    good, late = (link_key(site.app.sessions, uuid4()) for _ in range(2))
    clock.forward(minutes=9, seconds=59)
    assert press(site, good).status_code == 303
    clock.forward(seconds=1)
    assert press(site, late).status_code == 401


def test_a_link_of_another_user_says_so_and_ends_the_former_session(site: Site) -> None:
    mine, theirs = uuid4(), uuid4()
    cookie, key = cookie_of(site.app.sessions, mine), link_key(site.app.sessions, theirs)
    page = site.anyone(Cookie=cookie).get("/sign-in", params={"token": key})
    assert "a different user" in page.text
    assert "a different user" not in site.anyone().get("/sign-in", params={"token": key}).text
    new = session_of(press(site, key, cookie))
    gate(site).browsers.clock = Ticks(1e9)
    assert (is_in(site, cookie), is_in(site, new)) == (False, True)


def test_a_link_that_is_used_up_opens_the_library_in_a_browser_that_is_signed_in(site: Site) -> None:
    signed_in = site.anyone(Cookie=cookie_of(site.app.sessions, uuid4()))
    answer = signed_in.get("/sign-in", params={"token": "used"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")


# --- staying signed in ---


def test_a_session_ends_when_it_was_not_used_for_two_weeks(site: Site, clock: SetClock) -> None:
    ticks = gate(site).browsers.clock = Ticks()
    used, unused = (cookie_of(site.app.sessions, uuid4()) for _ in range(2))
    for _ in range(3):
        clock.forward(days=13)
        ticks.seconds += 13 * 86400
        assert is_in(site, used)
    assert not is_in(site, unused)
    clock.forward(days=14)
    ticks.seconds += 14 * 86400
    assert not is_in(site, used)


def test_a_session_ends_after_ninety_days_however_often_it_is_used(site: Site, clock: SetClock) -> None:
    ticks = gate(site).browsers.clock = Ticks()
    cookie = cookie_of(site.app.sessions, uuid4())
    days = 0
    while is_in(site, cookie):
        clock.forward(days=1)
        ticks.seconds += 86400
        days += 1
        assert days <= 90
    assert days == 90


def test_using_a_session_writes_seldom(site: Site, clock: SetClock) -> None:
    """Within five minutes, nothing is written, however many requests there are."""
    user = uuid4()
    ticks = gate(site).browsers.clock = Ticks()
    cookie = cookie_of(site.app.sessions, user)

    def last_use() -> object:
        with site.app.sessions.read() as session:
            return sign_ins.list_sign_ins(session, user)[0].used_at

    began = last_use()
    for _ in range(4):
        clock.forward(minutes=1)
        ticks.seconds += 60
        assert is_in(site, cookie)
    assert last_use() == began
    clock.forward(minutes=1)
    ticks.seconds += 60
    assert is_in(site, cookie)
    assert last_use() == clock()


def test_the_database_holds_no_key_that_opens_anything(site: Site) -> None:
    user = uuid4()
    keys = [session_key(site.app.sessions, user), link_key(site.app.sessions, user)]
    with site.app.sessions.engine.connect() as connection:
        for table in ("sign_ins", "sign_in_links"):
            rows = str(connection.execute(text(f"SELECT * FROM {table}")).all())
            assert rows != "[]"
            assert not [key for key in keys if key in rows]


@pytest.mark.parametrize("value", ["", "rubbish", "é", "x" * 5000, "null"])
def test_rubbish_in_the_cookie_is_a_browser_that_is_not_signed_in(site: Site, value: str) -> None:
    headers = {"Cookie": f"{cookies.SESSION}={value}".encode()}
    assert site.anyone().get("/account", headers=headers).status_code == 401


# --- signing out ---


def test_signing_out_ends_the_session_itself(site: Site) -> None:
    """A cookie that somebody has copied is worth nothing afterwards."""
    cookie = cookie_of(site.app.sessions, uuid4())
    assert is_in(site, cookie)
    out = site.anyone(Cookie=cookie, **PRESSED).post("/sign-out")
    assert (out.status_code, out.headers["location"]) == (303, "/sign-in")
    assert f'{cookies.SESSION}=""' in out.headers["set-cookie"]
    assert not is_in(site, cookie)


@pytest.mark.parametrize("path", ["/sign-out", "/account/sign-ins/end-all"])
def test_signing_out_has_the_browser_forget_what_it_kept(site: Site, path: str) -> None:
    """Otherwise the next person at this browser finds pictures and typed texts there."""
    cookie = cookie_of(site.app.sessions, uuid4())
    out = site.anyone(Cookie=cookie, **PRESSED).post(path)
    assert out.headers["clear-site-data"] == '"cache"'


@pytest.fixture
def other_server(app: App, clock: SetClock) -> Iterator[Site]:
    """A second server on the same database."""
    twin = build(app.settings, clock)
    with serve(twin) as running:
        yield running
    twin.close()


def test_a_session_that_ends_on_one_server_ends_on_all_within_seconds(site: Site, other_server: Site) -> None:
    ticks = gate(other_server).browsers.clock = Ticks()
    cookie = cookie_of(site.app.sessions, uuid4())
    assert is_in(other_server, cookie)
    site.anyone(Cookie=cookie, **PRESSED).post("/sign-out")
    ticks.seconds += MEMORY_SECONDS
    assert not is_in(other_server, cookie)
    assert MEMORY_SECONDS <= 5


def rows_of(page: httpx2.Response) -> list[str]:
    """The ids of the sessions that an account page offers to end."""
    return re.findall(r"/account/sign-ins/([0-9a-f-]{36})/end", page.text)


def test_the_account_page_lists_the_sessions_of_the_user_alone(site: Site) -> None:
    user, sessions = uuid4(), site.app.sessions
    session_key(sessions, user, "Chrome on Windows")
    session_key(sessions, uuid4(), "Safari on iPhone")
    page = site.anyone(Cookie=cookie_of(sessions, user)).get("/account")
    assert len(rows_of(page)) == 1
    assert "Chrome on Windows" in page.text
    assert "This browser" in page.text
    assert "Safari on iPhone" not in page.text


def test_sessions_are_ended_one_by_one(site: Site) -> None:
    user, sessions = uuid4(), site.app.sessions
    mine, other = cookie_of(sessions, user), cookie_of(sessions, user)
    assert is_in(site, other)
    me = site.anyone(Cookie=mine, **PRESSED)
    (other_id,) = rows_of(me.get("/account"))
    stranger = site.anyone(Cookie=cookie_of(sessions, uuid4()), **PRESSED)
    stranger.post(f"/account/sign-ins/{other_id}/end")
    assert is_in(site, other), "somebody else ended it"
    assert me.post(f"/account/sign-ins/{other_id}/end").headers["location"] == "/account"
    assert (is_in(site, mine), is_in(site, other)) == (True, False)
    assert me.post(f"/account/sign-ins/{other_id}/end").status_code == 303


@pytest.mark.parametrize(("verb", "stays"), [("end-others", True), ("end-all", False)])
def test_all_sessions_of_a_user_are_ended_at_once(site: Site, verb: str, stays: bool) -> None:
    user, sessions = uuid4(), site.app.sessions
    mine, others = cookie_of(sessions, user), [cookie_of(sessions, user) for _ in range(3)]
    stranger = cookie_of(sessions, uuid4())
    assert all(is_in(site, one) for one in [mine, stranger, *others])
    assert site.anyone(Cookie=mine, **PRESSED).post(f"/account/sign-ins/{verb}").status_code == 303
    assert is_in(site, mine) == stays
    assert not any(is_in(site, one) for one in others)
    assert is_in(site, stranger)


def test_other_sessions_are_ended_only_by_somebody_who_has_just_signed_in(
    site: Site, clock: SetClock
) -> None:
    """Somebody else at an open browser, or with its cookie, can't lock its user out of the others."""
    user, sessions = uuid4(), site.app.sessions
    mine, other = cookie_of(sessions, user), cookie_of(sessions, user)
    me = site.anyone(Cookie=mine, **PRESSED)
    (other_id,) = rows_of(me.get("/account"))
    clock.forward(minutes=15)
    page = me.get("/account")
    assert ("/account/sign-ins/" in page.text, "sign in again" in page.text) == (False, True)
    for verb in (f"{other_id}/end", "end-others", "end-all"):
        assert me.post(f"/account/sign-ins/{verb}").status_code == 403
    assert (is_in(site, mine), is_in(site, other)) == (True, True)
    again = site.anyone(Cookie=session_of(press(site, link_key(sessions, user), mine)), **PRESSED)
    assert again.post(f"/account/sign-ins/{other_id}/end").status_code == 303
    assert not is_in(site, other)


def test_a_browser_signs_itself_out_at_any_time(site: Site, clock: SetClock) -> None:
    cookie = cookie_of(site.app.sessions, uuid4())
    clock.forward(minutes=15)
    assert site.anyone(Cookie=cookie, **PRESSED).post("/sign-out").status_code == 303
    assert not is_in(site, cookie)


@pytest.mark.parametrize("path", ["/sign-out", "/account/sign-ins/end-all", "/account/tokens"])
def test_another_site_can_change_nothing_of_the_account(site: Site, path: str) -> None:
    cookie = cookie_of(site.app.sessions, uuid4())
    foreign = site.anyone(Cookie=cookie, **{"Sec-Fetch-Site": "cross-site"})
    assert foreign.post(path, data={"name": "x", "scope": "all"}).status_code == 403
    assert is_in(site, cookie)


def test_a_stream_ends_with_the_session_that_opened_it(
    site: Site, frequent_looks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "CHECK_SECONDS", 0.0)
    cookie = cookie_of(site.app.sessions, uuid4())
    with site.anyone(Cookie=cookie).stream("GET", "/events") as response:
        stream = Stream(response)
        assert stream.next().name == "hello"
        site.anyone(Cookie=cookie, **PRESSED).post("/sign-out")
        while stream.block():
            pass  # heartbeats, until the stream ends


# --- cookies ---


@pytest.mark.parametrize(
    ("public_url", "named", "is_secure"),
    [("https://nexus.example.com", "__Host-nexus_session", True), ("", "nexus_session", False)],
)
def test_the_cookie_is_for_https_alone_if_the_public_address_is(
    sqlite_url: str, tmp_path: object, public_url: str, named: str, is_secure: bool
) -> None:
    app = build(make_settings(sqlite_url, tmp_path, public_url=public_url))  # type: ignore[arg-type]
    with serve(app) as site:
        set_cookie = press(site, link_key(app.sessions, uuid4())).headers["set-cookie"]
        assert set_cookie.startswith(f"{named}=")
        said = {part.strip().lower() for part in set_cookie.split(";")[1:]}
        assert {"httponly", "path=/", "samesite=lax"} <= said
        assert ("secure" in said) == is_secure
        assert not [part for part in said if part.startswith("domain")]
        value = set_cookie.partition("=")[2].partition(";")[0]
        assert site.anyone(Cookie=f"{named}={value}").get("/account").status_code == 200
        other = "nexus_session" if is_secure else "__Host-nexus_session"
        assert site.anyone(Cookie=f"{other}={value}").get("/account").status_code == 401
    app.close()


@pytest.mark.parametrize(
    ("agent", "device"),
    [
        ("Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0", "Firefox on Linux"),
        (
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 "
            "Safari/537.36 Edg/126.0.0.0",
            "Edge on Windows",
        ),
        (
            "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) "
            "Version/17.5 Mobile/15E148 Safari/604.1",
            "Safari on iPhone",
        ),
        (
            "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 "
            "Safari/605.1.15",
            "Safari on macOS",
        ),
        ("curl/8.5.0", "An unknown browser"),
        ("", "An unknown browser"),
        ("<script>alert(1)</script>" * 1000, "An unknown browser"),
    ],
)
def test_a_browser_is_called_by_a_name_that_people_know(agent: str, device: str) -> None:
    assert device_of(agent) == device
