"""Signing in at an identity provider: the way there and back, and the provider's bad days."""

from __future__ import annotations

import base64
import hashlib
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit
from uuid import UUID, uuid4

import httpx2
import pytest
from structlog.testing import capture_logs

from nexus.app import App, build
from nexus.libraries import people, sign_ins
from nexus.settings import Settings
from nexus.web.http import cookies, published_keys
from nexus.web.http.bearer import user_of
from tests.kit.http import NO_CERTIFICATES, PATIENCE, Site, serve
from tests.kit.servers.oidc_provider import SpoiltProvider, oidc_provider
from tests.kit.settings import make_settings

#: The provider uses what its own library has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:get_jwt_config")
CLIENT = "nexus-of-the-tests"
LONG_AGO, FAR_AHEAD = 1_000_000_000, 4_000_000_000


@pytest.fixture
def provider() -> Iterator[SpoiltProvider]:
    with oidc_provider() as running:
        yield running


@pytest.fixture
def settings(sqlite_url: str, tmp_path: Path, provider: SpoiltProvider) -> Settings:
    return make_settings(
        sqlite_url,
        tmp_path,
        oidc_issuer=provider.url,
        oidc_client_id=CLIENT,
        oidc_client_secret="a secret of the client",
        oidc_name="Example ID",
    )


@pytest.fixture
def browser(site: Site) -> httpx2.Client:
    """Keeps cookies, and follows nothing by itself."""
    return site.clients.enter_context(
        httpx2.Client(base_url=site.url, timeout=PATIENCE, verify=NO_CERTIFICATES)
    )


def start(browser: httpx2.Client, back: str = "/") -> str:
    """Begin to sign in; the address to which the browser is sent."""
    answer = browser.get("/sign-in/start", params={"back": back})
    assert answer.status_code == 303, answer.text
    return answer.headers["location"]


def come_back(browser: httpx2.Client, brought: dict[str, str]) -> httpx2.Response:
    return browser.get("/sign-in/back", params=brought)


def sign_in(browser: httpx2.Client, provider: SpoiltProvider, subject: str) -> httpx2.Response:
    return come_back(browser, provider.sign_in(start(browser), subject))


def is_in(browser: httpx2.Client) -> bool:
    status = browser.get("/account").status_code
    assert status in {200, 401}
    return status == 200


def refused(browser: httpx2.Client, answer: httpx2.Response, says: str, status: int = 401) -> None:
    """A page that says what happened, offers to begin again, and signs nobody in."""
    assert answer.status_code == status, answer.text
    assert says in unescape(answer.text)
    assert "/sign-in/start?" in answer.text
    assert cookies.SESSION not in browser.cookies
    assert cookies.PENDING_SIGN_IN not in browser.cookies
    assert not is_in(browser)


def test_somebody_signs_in_and_comes_back_to_where_they_were(
    browser: httpx2.Client, provider: SpoiltProvider, app: App
) -> None:
    wanted = f"/items/{uuid4()}"
    shown = browser.get(wanted)
    assert shown.status_code == 401
    assert "Sign in with Example ID" in shown.text
    link = re.search(r'href="(/sign-in/start\?[^"]+)"', shown.text)
    assert link
    address = browser.get(link[1]).headers["location"]
    back = come_back(browser, provider.sign_in(address, "alice"))
    assert (back.status_code, back.headers["location"]) == (303, wanted)
    assert is_in(browser)
    with app.sessions.read() as session:
        (kept,) = sign_ins.list_sign_ins(session, user_of(provider.url, "alice"))
    assert kept.method is sign_ins.Method.OIDC


def test_a_person_is_the_same_user_as_by_a_bearer_token(
    browser: httpx2.Client, provider: SpoiltProvider, app: App
) -> None:
    """A subject that is a UUID is that user; any other is a name of the issuer's."""
    mine = str(uuid4())
    for subject, user in ((mine, UUID(mine)), ("auth0|7", user_of(provider.url, "auth0|7"))):
        assert sign_in(browser, provider, subject).status_code == 303
        with app.sessions.read() as session:
            assert len(sign_ins.list_sign_ins(session, user)) == 1


def test_the_way_there_carries_state_nonce_and_a_challenge(
    browser: httpx2.Client, provider: SpoiltProvider, site: Site
) -> None:
    address = start(browser)
    sent = dict(parse_qsl(urlsplit(address).query))
    assert (sent["response_type"], sent["client_id"]) == ("code", CLIENT)
    assert set(sent["scope"].split()) == {"openid", "profile", "email"}
    assert sent["redirect_uri"] == f"{site.url}/sign-in/back"
    assert sent["code_challenge_method"] == "S256"
    assert come_back(browser, provider.sign_in(address, "alice")).status_code == 303
    verifier = provider.form("/token")["code_verifier"]
    digest = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest())
    assert sent["code_challenge"] == digest.decode().rstrip("=")
    again = dict(parse_qsl(urlsplit(start(browser)).query))
    for name in ("state", "nonce", "code_challenge"):
        assert len(sent[name]) >= 40
        assert sent[name] != again[name]
    assert len({sent["state"], sent["nonce"], verifier}) == 3


def test_the_cookie_of_a_pending_sign_in_tells_neither_nonce_nor_verifier(
    browser: httpx2.Client, provider: SpoiltProvider
) -> None:
    address = start(browser)
    memo = browser.cookies[cookies.PENDING_SIGN_IN]
    shown = base64.urlsafe_b64decode(memo.split(".")[1] + "==").decode()
    sent = dict(parse_qsl(urlsplit(address).query))
    assert come_back(browser, provider.sign_in(address, "alice")).status_code == 303
    for secret in (sent["state"], sent["nonce"], provider.form("/token")["code_verifier"]):
        assert secret not in shown


# --- what is known of a person ---


def known(app: App, subject: str) -> tuple[str | None, str | None]:
    """The name and the email that are kept of a person."""
    with app.sessions.read() as session:
        person = people.get_person(session, UUID(subject))
    return person.name, person.email


@pytest.mark.parametrize(
    ("claims", "name", "email"),
    [
        ({"name": "Alice", "email": "a@example.com", "email_verified": True}, "Alice", "a@example.com"),
        ({"name": "Alice", "email": "a@example.com", "email_verified": False}, "Alice", None),
        ({"name": "Alice", "email": "a@example.com", "email_verified": "true"}, "Alice", None),
        ({"name": "Alice", "email": "a@example.com"}, "Alice", None),
        ({"preferred_username": "ali", "email": "no address", "email_verified": True}, "ali", None),
        ({"name": " \n ", "email": 7, "email_verified": True}, None, None),
        ({"name": ["Alice"]}, None, None),
    ],
    ids=str,
)
def test_a_name_and_a_verified_email_are_kept(
    app: App,
    browser: httpx2.Client,
    provider: SpoiltProvider,
    claims: dict[str, object],
    name: str | None,
    email: str | None,
) -> None:
    subject = str(uuid4())
    provider.knows(subject, **claims)
    assert sign_in(browser, provider, subject).status_code == 303
    assert known(app, subject) == (name, email)


def test_a_name_that_is_told_only_on_request_is_asked_for(
    app: App, browser: httpx2.Client, provider: SpoiltProvider
) -> None:
    subject = str(uuid4())
    provider.knows(subject, name="Alice", email="a@example.com", email_verified=True)
    provider.claims = {"name": None, "email": None, "email_verified": None}
    assert sign_in(browser, provider, subject).status_code == 303
    assert known(app, subject) == ("Alice", "a@example.com")


def test_a_person_whose_name_can_not_be_asked_for_is_signed_in_all_the_same(
    browser: httpx2.Client, provider: SpoiltProvider
) -> None:
    provider.down = {"/userinfo"}
    assert sign_in(browser, provider, "alice").status_code == 303
    assert is_in(browser)


# --- bad days ---


def test_a_wrong_state_signs_nobody_in(browser: httpx2.Client, provider: SpoiltProvider) -> None:
    brought = provider.sign_in(start(browser), "alice")
    refused(browser, come_back(browser, {**brought, "state": "x" * 43}), "not started in this browser")
    asked = len(provider.asked)
    refused(browser, come_back(browser, brought), "not started in this browser")
    assert len(provider.asked) == asked, "the code was used without the cookie"


@pytest.mark.parametrize("left_out", ["state", "code"])
def test_an_incomplete_answer_signs_nobody_in(
    browser: httpx2.Client, provider: SpoiltProvider, left_out: str
) -> None:
    brought = provider.sign_in(start(browser), "alice")
    del brought[left_out]
    refused(browser, come_back(browser, brought), "Start again below")


def test_an_answer_for_another_browser_signs_nobody_in(
    browser: httpx2.Client, site: Site, provider: SpoiltProvider
) -> None:
    """Somebody sends the answer of their own sign-in to a victim, who would work in their account."""
    with httpx2.Client(base_url=site.url, verify=NO_CERTIFICATES) as attacker:
        brought = provider.sign_in(start(attacker), "mallory")
    refused(browser, come_back(browser, brought), "not started in this browser")
    start(browser)
    refused(browser, come_back(browser, brought), "not started in this browser")


def test_a_code_works_once(browser: httpx2.Client, provider: SpoiltProvider, site: Site) -> None:
    """Even with the cookie that it belongs to."""
    brought = provider.sign_in(start(browser), "alice")
    memo = browser.cookies[cookies.PENDING_SIGN_IN]
    assert come_back(browser, brought).status_code == 303
    thief = site.anyone(Cookie=f"{cookies.PENDING_SIGN_IN}={memo}")
    again = thief.get("/sign-in/back", params=brought)
    assert (again.status_code, "used before" in again.text) == (401, True)
    assert cookies.SESSION not in thief.cookies


def test_a_client_whom_the_provider_does_not_know_is_told_what_to_set(
    sqlite_url: str, tmp_path: Path, provider: SpoiltProvider
) -> None:
    """This provider wants a secret."""
    app = build(make_settings(sqlite_url, tmp_path, oidc_issuer=provider.url, oidc_client_id=CLIENT))
    with (
        serve(app) as site,
        httpx2.Client(base_url=site.url, timeout=PATIENCE, verify=NO_CERTIFICATES) as browser,
    ):
        refused(browser, sign_in(browser, provider, "alice"), "NEXUS_OIDC_CLIENT_SECRET")
    app.close()


def test_a_sign_in_that_takes_too_long_is_begun_again(
    browser: httpx2.Client, provider: SpoiltProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nexus.web.http.oidc.PENDING_SECONDS", -1)
    brought = provider.sign_in(start(browser), "alice")
    refused(browser, come_back(browser, brought), "ten minutes")


def test_somebody_who_is_denied_is_told_so(browser: httpx2.Client, provider: SpoiltProvider) -> None:
    address = start(browser)
    state = dict(parse_qsl(urlsplit(address).query))["state"]
    brought = {**provider.deny(address), "state": state}
    assert brought["error"] == "access_denied"
    refused(browser, come_back(browser, brought), "Example ID did not sign you in")


@pytest.mark.parametrize(
    ("spoilt", "logged"),
    [
        ({"nonce": "another"}, "nonce"),
        ({"nonce": None}, "nonce"),
        ({"iss": "https://elsewhere.example"}, "iss"),
        ({"iss": None}, "iss"),
        ({"aud": "another-client"}, "aud"),
        ({"aud": [CLIENT, "another-client"]}, "azp"),
        ({"aud": [CLIENT, "another-client"], "azp": "another-client"}, "azp"),
        ({"aud": None}, "aud"),
        ({"exp": LONG_AGO}, "Expired"),
        ({"exp": None}, "exp"),
        ({"exp": "tomorrow"}, ""),
        ({"iat": FAR_AHEAD}, ""),
        ({"nbf": FAR_AHEAD}, ""),
        ({"at_hash": "of another token"}, "at_hash"),
        ({"sub": None}, "sub"),
        ({"sub": ""}, "sub"),
        ({"sub": "x" * 256}, "sub"),
        ({"sub": 42}, ""),
    ],
    ids=str,
)
def test_an_id_token_that_is_not_meant_for_nexus_signs_nobody_in(
    browser: httpx2.Client, provider: SpoiltProvider, spoilt: dict[str, object], logged: str
) -> None:
    provider.claims = spoilt
    with capture_logs() as lines:
        answer = sign_in(browser, provider, "alice")
    refused(browser, answer, "not meant for this Nexus")
    (line,) = [one for one in lines if one["event"] == "sign_in_refused"]
    assert logged in line["reason"]


def test_an_id_token_with_a_forged_signature_signs_nobody_in(
    browser: httpx2.Client, provider: SpoiltProvider
) -> None:
    provider.is_forged = True
    refused(browser, sign_in(browser, provider, "alice"), "not meant for this Nexus")


def test_an_answer_that_names_another_issuer_signs_nobody_in(
    browser: httpx2.Client, provider: SpoiltProvider
) -> None:
    brought = {**provider.sign_in(start(browser), "alice"), "iss": "https://elsewhere.example"}
    refused(browser, come_back(browser, brought), "not meant for this Nexus")


@pytest.mark.parametrize("part", ["openid-configuration", "/token", "/jwks"])
def test_a_provider_that_is_down_is_named_and_the_same_browser_signs_in_later(
    browser: httpx2.Client, provider: SpoiltProvider, site: Site, part: str
) -> None:
    seconds = 0.0
    site.server.config.app.state.provider.clock = lambda: seconds  # type: ignore[union-attr]
    provider.down = {part}
    answer = browser.get("/sign-in/start")
    if answer.status_code == 303:
        answer = come_back(browser, provider.sign_in(answer.headers["location"], "alice"))
    refused(browser, answer, "Example ID can't be reached", 503)
    provider.down = set()
    seconds += published_keys.PAUSE_SECONDS
    assert sign_in(browser, provider, "alice").status_code == 303
    assert is_in(browser)


def test_a_provider_that_is_down_is_not_asked_at_every_request(
    browser: httpx2.Client, provider: SpoiltProvider
) -> None:
    provider.down = {"/"}
    for _ in range(10):
        assert browser.get("/sign-in/start").status_code == 503
    assert len(provider.asked) == 1


@pytest.mark.parametrize(
    "discovery",
    [
        {"issuer": "https://elsewhere.example"},
        {"issuer": None},
        {"jwks_uri": None},
        {"token_endpoint": 7},
        {"authorization_endpoint": "javascript:alert(1)"},
    ],
    ids=str,
)
def test_a_discovery_document_that_does_not_fit_is_not_used(
    browser: httpx2.Client, provider: SpoiltProvider, discovery: dict[str, object]
) -> None:
    provider.discovery = discovery
    answer = browser.get("/sign-in/start")
    assert (answer.status_code, "can't be reached" in unescape(answer.text)) == (503, True)


@pytest.mark.parametrize(
    "back", ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)", "", "/a\nb"]
)
def test_nobody_is_sent_to_another_site_after_signing_in(
    browser: httpx2.Client, provider: SpoiltProvider, back: str
) -> None:
    answer = come_back(browser, provider.sign_in(start(browser, back), "alice"))
    assert answer.headers["location"] == "/"


# --- signing out ---


def sign_out(browser: httpx2.Client) -> httpx2.Response:
    return browser.post("/sign-out", headers={"Sec-Fetch-Site": "same-origin"}, follow_redirects=True)


def test_signing_out_offers_to_sign_out_at_the_provider_too(
    browser: httpx2.Client, provider: SpoiltProvider, site: Site
) -> None:
    sign_in(browser, provider, "alice")
    page = sign_out(browser)
    link = re.search(r'href="([^"]+)">Sign out there too', page.text)
    assert link
    address = link[1].replace("&amp;", "&")
    assert address.startswith(f"{provider.url}/oauth2/end_session?")
    sent = dict(parse_qsl(urlsplit(address).query))
    assert sent == {"client_id": CLIENT, "post_logout_redirect_uri": f"{site.url}/sign-in"}
    assert httpx2.get(address, verify=NO_CERTIFICATES).status_code == 200
    assert not is_in(browser)


@pytest.mark.parametrize("place", [None, "javascript:alert(1)"])
def test_signing_out_works_with_a_provider_that_offers_nothing(
    browser: httpx2.Client, provider: SpoiltProvider, place: str | None
) -> None:
    provider.discovery = {"end_session_endpoint": place}
    sign_in(browser, provider, "alice")
    page = sign_out(browser)
    assert (page.status_code, "Sign out there too" in page.text) == (200, False)
    assert not is_in(browser)


# --- without a provider ---


@pytest.mark.parametrize("site_of", ["cross-site", "same-site"])
def test_another_site_can_not_start_a_sign_in(browser: httpx2.Client, site_of: str) -> None:
    """The provider may know the reader, and would sign them in without a word."""
    answer = browser.get("/sign-in/start?back=/account", headers={"Sec-Fetch-Site": site_of})
    assert (answer.status_code, answer.headers.get("set-cookie")) == (200, None)
    assert "/sign-in/start?back=/account" in unescape(answer.text).replace("%2F", "/")


AGAIN = "/sign-in/start?back=/account&again=true"


def may_end_others(browser: httpx2.Client) -> bool:
    answer = browser.post("/account/sign-ins/end-others", headers={"Sec-Fetch-Site": "same-origin"})
    assert answer.status_code in {303, 403}
    return answer.status_code == 303


def test_somebody_whom_the_provider_did_not_ask_signs_in_again_to_sign_out_other_browsers(
    browser: httpx2.Client, provider: SpoiltProvider
) -> None:
    provider.claims = {"auth_time": None}
    sign_in(browser, provider, "alice")
    assert not may_end_others(browser)
    assert AGAIN in unescape(browser.get("/account").text)
    address = browser.get(AGAIN).headers["location"]
    sent = dict(parse_qsl(urlsplit(address).query))
    assert (sent["prompt"], sent["max_age"]) == ("login", "0")
    assert come_back(browser, provider.sign_in(address, "alice")).headers["location"] == "/account"
    assert may_end_others(browser)


def test_a_provider_that_asked_a_moment_ago_need_not_ask_again(
    browser: httpx2.Client, provider: SpoiltProvider, true_time: None
) -> None:
    for age, expected in ((3600, False), (30, True), (-3600, True)):
        provider.claims = {"auth_time": int(time.time()) - age}
        sign_in(browser, provider, "alice")
        assert may_end_others(browser) == expected, age


@pytest.mark.parametrize(
    ("auth_time", "says"),
    [
        (1000, "did not ask who you are"),
        (10**400, "not meant for this Nexus"),
        ([], "not meant for this Nexus"),
    ],
    ids=["old", "huge", "none"],
)
def test_a_provider_that_did_not_ask_again_signs_nobody_in_again(
    browser: httpx2.Client, provider: SpoiltProvider, auth_time: object, says: str
) -> None:
    provider.claims = {"auth_time": auth_time}
    refused(
        browser, come_back(browser, provider.sign_in(browser.get(AGAIN).headers["location"], "alice")), says
    )


def test_without_a_provider_there_is_no_such_button(sqlite_url: str, tmp_path: Path) -> None:
    app = build(make_settings(sqlite_url, tmp_path))
    with serve(app) as site:
        assert "/sign-in/start" not in site.anyone().get("/sign-in").text
        assert site.anyone().get("/sign-in/start").status_code == 404
        assert site.anyone().get("/sign-in/back").status_code == 404
    app.close()


def test_a_start_does_not_wait_for_the_library() -> None:
    program = (
        "import sys; from nexus.web import application;"
        "print([name for name in sys.modules if name.split('.')[0] in {'authlib', 'joserfc'}])"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
