"""Signing in with a link or at the team's identity provider, and signing out."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urljoin
from uuid import UUID

from fastapi import Form, Query, Request
from fastapi.responses import Response

from nexus import logging
from nexus.app import App
from nexus.db.session import Session
from nexus.errors import ApiError, NotFound
from nexus.libraries import access, people, sign_ins
from nexus.libraries.sign_ins import Method, SignIn
from nexus.web.http import cookies
from nexus.web.http.auth import require_same_origin
from nexus.web.http.context import Browser, Nexus, PageViewer, gate_of
from nexus.web.http.threads import waits_for_site
from nexus.web.views.devices import device_of
from nexus.web.views.render import go, page, page_router, sign_in_page

if TYPE_CHECKING:
    from nexus.web.http.oidc import Provider

log = logging.get_logger(__name__)
router = page_router()

Back = Annotated[str, Query(max_length=2000, description="Where to go afterwards.")]
USED_UP = "This sign-in link has been used or has expired, or is not complete."


@router.get("/sign-in")
def show_sign_in(
    request: Request,
    nexus: Nexus,
    browser: Browser,
    token: Annotated[str, Query(max_length=200)] = "",
    back: Back = "/",
    left: str = "",
) -> Response:
    """With a link's token, a page with a button: a picture in an article can open this address, but not press it.

    In a browser that is signed in already, a link that is used up opens the library.
    """
    if not token:
        return sign_in_page(request, 200, back=local_path(back), elsewhere=_elsewhere(request, nexus, left))
    with nexus.sessions.read() as session:
        user = sign_ins.see_link(session, token)
    if user is None:
        return go("/") if browser is not None else _used_up(request)
    is_other = browser is not None and browser.user_id != user
    return page(request, "sign_in_link.html", token=token, is_other=is_other)


@router.post("/sign-in")
def sign_in_by_link(
    request: Request, nexus: Nexus, browser: Browser, token: Annotated[str, Form(max_length=200)] = ""
) -> Response:
    """Raises Forbidden if another site has sent the form."""
    require_same_origin(request)
    with nexus.sessions.begin() as session:
        user = sign_ins.use_link(session, token)
        if user is None:
            return _used_up(request)
        key = begin_in_browser(request, nexus, session, browser, user, Method.LINK, session.now)
    return signed_in_at(request, nexus, key, "/")


@router.get("/sign-in/start")
@waits_for_site
def send_to_provider(request: Request, nexus: Nexus, back: Back = "/", again: bool = False) -> Response:
    """Another site that leads here gets the page with the button: nobody is signed in who did not ask for it."""
    if request.headers.get("sec-fetch-site") in {"cross-site", "same-site"}:
        return sign_in_page(request, 200, back=local_path(back))
    try:
        pending = _provider(request).begin(_return_address(request, nexus), local_path(back), again=again)
    except ApiError as error:
        return sign_in_page(request, error.status, error.message, back=local_path(back))
    response = go(pending.address)
    cookies.put(
        nexus.settings, request, response, cookies.PENDING_SIGN_IN, pending.memo, cookies.PENDING_SECONDS
    )
    return response


@router.get("/sign-in/back")
@waits_for_site
def return_from_provider(request: Request, nexus: Nexus, browser: Browser) -> Response:
    memo = cookies.read_cookie(nexus.settings, request, cookies.PENDING_SIGN_IN)
    try:
        answer = dict(request.query_params)
        arrival = _provider(request).finish(_return_address(request, nexus), memo, answer)
    except ApiError as error:
        response = sign_in_page(request, error.status, error.message)
    else:
        with nexus.sessions.begin() as session:
            access.ensure_user(session, arrival.user_id)
            people.remember(session, arrival.user_id, arrival.profile)
            key = begin_in_browser(
                request, nexus, session, browser, arrival.user_id, Method.OIDC, arrival.proven_at
            )
        response = signed_in_at(request, nexus, key, arrival.back)
    cookies.drop_cookie(nexus.settings, request, response, cookies.PENDING_SIGN_IN)
    return response


@router.post("/sign-out")
def sign_out(request: Request, nexus: Nexus, viewer: PageViewer, browser: Browser) -> Response:
    if browser is not None:
        with nexus.sessions.begin() as session:
            sign_ins.end(session, viewer, browser.id)
        gate_of(request).browsers.forget(lambda kept: kept.id == browser.id)
    by_provider = browser is not None and browser.method is Method.OIDC
    response = go(f"/sign-in?left={Method.OIDC}" if by_provider else "/sign-in")
    cookies.end_visit(nexus.settings, request, response)
    return response


def begin_in_browser(
    request: Request,
    nexus: App,
    session: Session,
    browser: SignIn | None,
    user: UUID,
    method: Method,
    proven_at: datetime | None,
) -> str:
    """Sign the browser in, and out of whatever it was signed in as before; return the key for its cookie."""
    if browser is not None:
        sign_ins.end(session, browser.user_id, browser.id)
    device = device_of(request.headers.get("user-agent", ""))
    return sign_ins.begin_sign_in(session, user, method, device, nexus.settings.sign_in_lives, proven_at)


def signed_in_at(request: Request, nexus: App, key: str, address: str) -> Response:
    """Give the browser its cookie and send it on. How long the key works is decided on the server."""
    response = go(address)
    seconds = int(nexus.settings.sign_in_lives.most.total_seconds())
    cookies.put(nexus.settings, request, response, cookies.SESSION, key, seconds)
    return response


def local_path(address: str) -> str:
    """Return an address of Nexus itself, or that of the library: nobody is sent to another site after signing in."""
    is_local = address.startswith("/") and not address.startswith(("//", "/\\")) and address.isprintable()
    return address if is_local else "/"


def _provider(request: Request) -> Provider:
    found: Provider | None = request.app.state.provider
    if found is None:
        raise NotFound("No identity provider is set up here. Set NEXUS_OIDC_ISSUER to use one.")
    return found


def _return_address(request: Request, nexus: App) -> str:
    return urljoin(nexus.settings.public_url or str(request.base_url), "/sign-in/back")


def _elsewhere(request: Request, nexus: App, left: str) -> str | None:
    """Where somebody who has just signed out of Nexus can sign out at the provider too."""
    provider: Provider | None = request.app.state.provider
    if provider is None or left != Method.OIDC:
        return None
    return provider.sign_out_address(urljoin(_return_address(request, nexus), "/sign-in"))


def _used_up(request: Request) -> Response:
    log.warning("token_refused", purpose="sign-in", reason="It was used, has expired or never existed.")
    return sign_in_page(request, 401, USED_UP)
