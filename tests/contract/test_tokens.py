"""Personal API tokens: what each scope opens, over every endpoint, and how they are made and taken back."""

from __future__ import annotations

from uuid import uuid4

import httpx2
import pytest
from sqlalchemy import text
from structlog.testing import capture_logs

from nexus.libraries import tokens
from nexus.web.http.lookup_cache import MEMORY_SECONDS
from tests.contract.test_authorization import GUARDED, call
from tests.kit.clock import SetClock
from tests.kit.http import NO_CERTIFICATES, Caller, Site, data, job_problem, problem
from tests.kit.sign_ins import cookie_of, token_of

#: What adds items. Everything else that changes something needs the scope `all`.
ADDING = {
    "POST /media",
    "POST /media/url",
    "POST /media/upload/init",
    "POST /media/{media_id}/ingest",
}
#: What no personal token may do.
FOR_PEOPLE = {"GET /tokens", "POST /tokens", "DELETE /tokens/{token_id}"}


def scopes_of(endpoint: str) -> set[str]:
    """The scopes that open an endpoint."""
    if endpoint in FOR_PEOPLE:
        return set()
    if endpoint.startswith("GET "):
        return {"read", "all"}
    return {"add", "all"} if endpoint in ADDING else {"all"}


@pytest.mark.parametrize("scope", ["read", "add", "all"])
def test_a_scope_opens_exactly_the_endpoints_that_it_should(site: Site, scope: str) -> None:
    """Every endpoint, for somebody who has nothing: they are never forbidden anything but by their scope."""
    expected, seen = {}, {}
    headers = {"Authorization": f"Bearer {token_of(site.app.sessions, uuid4(), scope)}"}
    for endpoint, may in GUARDED.items():
        answer = call(site.anyone(), endpoint, headers, uuid4(), uuid4(), uuid4())
        seen[endpoint] = answer.status_code
        expected[endpoint] = may.stranger if scope in scopes_of(endpoint) else 403
        if answer.status_code == 403:
            said = job_problem if "/api/" in endpoint else problem
            assert said(answer) == (403, "E_FORBIDDEN")
    assert seen == expected


def by(site: Site, secret: str, **headers: str) -> httpx2.Client:
    return site.anyone(Authorization=f"Bearer {secret}", **headers)


def test_a_token_is_made_listed_and_taken_back(site: Site, me: Caller, clock: SetClock) -> None:
    made = data(me.post("/tokens", json={"name": "  My   phone ", "scope": "read"}))
    assert (made["name"], made["scope"], made["last_used_at"]) == ("My phone", "read", None)
    assert made["token"].startswith(tokens.PREFIX)
    assert len(made["token"]) > 40
    (listed,) = data(me.get("/tokens"))["items"]
    assert listed == {name: value for name, value in made.items() if name != "token"}
    assert data(by(site, made["token"]).get("/libraries"))["items"][0]["is_default"]
    (used,) = data(me.get("/tokens"))["items"]
    assert used["last_used_at"] == clock().isoformat()
    assert data(me.delete(f"/tokens/{made['id']}")) == {"done": True}
    assert problem(by(site, made["token"]).get("/libraries")) == (401, "E_UNAUTHORIZED")
    assert problem(me.delete(f"/tokens/{made['id']}")) == (404, "E_NOT_FOUND")
    assert data(me.get("/tokens"))["items"] == []


def test_a_token_acts_as_its_owner(site: Site, me: Caller) -> None:
    secret = token_of(site.app.sessions, me.user, "add")
    added = data(
        by(site, secret).post("/media/url", json={"kind": "web_article", "url": "https://example.com/x"})
    )
    assert data(me.get(f"/media/{added['media_id']}"))["id"] == added["media_id"]


def test_nobody_sees_or_takes_back_the_tokens_of_others(site: Site, me: Caller, you: Caller) -> None:
    made = data(me.post("/tokens", json={"name": "Mine", "scope": "all"}))
    assert data(you.get("/tokens"))["items"] == []
    assert problem(you.delete(f"/tokens/{made['id']}")) == (404, "E_NOT_FOUND")
    assert by(site, made["token"]).get("/media").status_code == 200


def test_the_database_and_the_log_hold_no_token(site: Site, me: Caller) -> None:
    with capture_logs() as lines:
        secret = data(me.post("/tokens", json={"name": "Mine", "scope": "all"}))["token"]
        by(site, secret).get("/media")
        by(site, secret + "x").get("/media")
    assert secret not in str(lines)
    with site.app.sessions.engine.connect() as connection:
        rows = str(connection.execute(text("SELECT * FROM api_tokens")).all())
    assert "Mine" in rows
    assert secret.removeprefix(tokens.PREFIX) not in rows


@pytest.mark.parametrize(
    "body",
    [
        {"name": "", "scope": "read"},
        {"name": " \t", "scope": "read"},
        {"name": "x" * 101, "scope": "read"},
        {"name": "a\x00b", "scope": "read"},
        {"name": "x", "scope": "everything"},
        {"name": "x", "scope": ""},
        {"name": "x"},
        {"scope": "read"},
        {"name": 7, "scope": "read"},
    ],
    ids=str,
)
def test_a_bad_name_or_scope_makes_no_token(me: Caller, body: dict[str, object]) -> None:
    assert problem(me.post("/tokens", json=body)) == (400, "E_INVALID_REQUEST")
    assert data(me.get("/tokens"))["items"] == []


def test_a_user_has_a_hundred_tokens_at_most(site: Site, me: Caller) -> None:
    for _ in range(tokens.MOST):
        token_of(site.app.sessions, me.user)
    assert problem(me.post("/tokens", json={"name": "One more", "scope": "read"})) == (409, "E_CONFLICT")


def test_the_last_use_is_written_seldom(site: Site, me: Caller, clock: SetClock) -> None:
    gate = site.server.config.app.state.gate  # type: ignore[union-attr]
    seconds = 0.0
    gate.tokens.clock = lambda: seconds
    secret = token_of(site.app.sessions, me.user, "read")
    written = set()
    for _ in range(30):
        assert by(site, secret).get("/libraries").status_code == 200
        written.add(data(me.get("/tokens"))["items"][0]["last_used_at"])
        clock.forward(minutes=1)
        seconds += 60
    assert len(written) == 3


def test_a_token_that_is_taken_back_elsewhere_stops_working_within_seconds(site: Site, me: Caller) -> None:
    seconds = 0.0
    gate = site.server.config.app.state.gate  # type: ignore[union-attr]
    gate.tokens.clock = lambda: seconds
    secret = token_of(site.app.sessions, me.user, "read")
    assert by(site, secret).get("/media").status_code == 200
    with site.app.sessions.begin() as session:
        for token in tokens.list_tokens(session, me.user):
            tokens.revoke_token(session, me.user, token.id)
    seconds += MEMORY_SECONDS
    assert by(site, secret).get("/media").status_code == 401


def test_a_token_does_not_open_the_pages(site: Site, me: Caller) -> None:
    secret = token_of(site.app.sessions, me.user)
    assert by(site, secret).get("/account").status_code == 401
    assert site.anyone(Cookie=f"nexus_session={secret}").get("/account").status_code == 401


# --- on the account page ---


@pytest.fixture
def browser(site: Site, me: Caller) -> httpx2.Client:
    return site.anyone(Cookie=cookie_of(site.app.sessions, me.user), **{"Sec-Fetch-Site": "same-origin"})


def shown_secret(page: httpx2.Response) -> str:
    return page.text.partition('id="secret"')[2].partition('value="')[2].partition('"')[0]


def test_the_account_page_shows_a_new_token_once(site: Site, browser: httpx2.Client, me: Caller) -> None:
    page = browser.post("/account/tokens", data={"name": "My <b>phone</b>", "scope": "read"})
    assert (page.status_code, page.headers["cache-control"]) == (200, "no-store")
    secret = shown_secret(page)
    assert by(site, secret).get("/media").status_code == 200
    assert "<b>" not in page.text
    later = browser.get("/account").text
    assert secret not in later
    (token,) = data(me.get("/tokens"))["items"]
    assert f"/account/tokens/{token['id']}/revoke" in later
    assert browser.post(f"/account/tokens/{token['id']}/revoke").headers["location"] == "/account"
    assert by(site, secret).get("/media").status_code == 401


def test_the_account_page_says_what_is_wrong_with_a_token(browser: httpx2.Client, me: Caller) -> None:
    page = browser.post("/account/tokens", data={"name": "", "scope": "read"})
    assert (page.status_code, "needs a name" in page.text) == (400, True)
    assert data(me.get("/tokens"))["items"] == []


def test_nobody_makes_a_token_at_a_browser_that_was_left_open(
    browser: httpx2.Client, me: Caller, clock: SetClock
) -> None:
    """It would stay when the user ends this sign-in."""
    assert "Make a token" in browser.get("/account").text
    clock.forward(minutes=16)
    refused = browser.post("/account/tokens", data={"name": "Mine now", "scope": "all"})
    assert (refused.status_code, "Sign in again" in refused.text) == (403, True)
    assert data(me.get("/tokens"))["items"] == []
    shown = browser.get("/account").text
    assert "Make a token" not in shown
    assert "Make an address" in shown


def test_addresses_of_feeds_are_taken_back_one_by_one(site: Site, browser: httpx2.Client, me: Caller) -> None:
    addresses = [
        shown_secret(browser.post("/account/tokens", data={"name": name, "scope": "feed"}))
        for name in ("Laptop", "Phone")
    ]
    assert all(address.startswith(f"{site.url}/api/stories.atom?token=") for address in addresses)
    assert [httpx2.get(address, verify=NO_CERTIFICATES).status_code for address in addresses] == [200, 200]
    ids = {token["name"]: token["id"] for token in data(me.get("/tokens"))["items"]}
    browser.post(f"/account/tokens/{ids['Laptop']}/revoke")
    assert [httpx2.get(address, verify=NO_CERTIFICATES).status_code for address in addresses] == [401, 200]
