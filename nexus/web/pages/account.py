"""The account page: where you are signed in, personal API tokens, and addresses for feed readers."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlencode, urljoin
from uuid import UUID

from fastapi import Form, Request
from fastapi.responses import Response

from nexus.app import App
from nexus.errors import Conflict, Forbidden, InvalidRequest
from nexus.libraries import sign_ins, tokens
from nexus.libraries.sign_ins import Method, SignIn
from nexus.libraries.tokens import Scope, Token
from nexus.web.http import cookies
from nexus.web.http.context import Browser, Nexus, PageViewer, gate_of
from nexus.web.views.render import go, page, page_router

router = page_router(prefix="/account")

SCOPES = {
    Scope.ADD: "Add items, and nothing else",
    Scope.READ: "Read everything, and change nothing",
    Scope.ALL: "Everything that you can do",
}


@router.get("")
def account(request: Request, nexus: Nexus, viewer: PageViewer, browser: Browser) -> Response:
    return _account(request, nexus, viewer, browser)


@router.post("/sign-ins/end-others")
def end_others(request: Request, nexus: Nexus, viewer: PageViewer, browser: Browser) -> Response:
    _require_proven(nexus, browser)
    kept = browser.id if browser else None
    with nexus.sessions.begin() as session:
        sign_ins.end_all(session, viewer, kept)
    gate_of(request).browsers.forget(lambda one: one.user_id == viewer and one.id != kept)
    return go("/account")


@router.post("/sign-ins/end-all")
def end_all_by_form(request: Request, nexus: Nexus, viewer: PageViewer, browser: Browser) -> Response:
    _require_proven(nexus, browser)
    with nexus.sessions.begin() as session:
        sign_ins.end_all(session, viewer)
    gate_of(request).browsers.forget(lambda one: one.user_id == viewer)
    response = go("/sign-in")
    cookies.end_visit(nexus.settings, request, response)
    return response


@router.post("/sign-ins/{sign_in_id}/end")
def end_one(
    request: Request, nexus: Nexus, viewer: PageViewer, browser: Browser, sign_in_id: UUID
) -> Response:
    """It is not an error if it has ended already."""
    _require_proven(nexus, browser)
    with nexus.sessions.begin() as session:
        sign_ins.end(session, viewer, sign_in_id)
    gate_of(request).browsers.forget(lambda one: one.id == sign_in_id)
    return go("/account")


@router.post("/tokens")
def make_token_by_form(
    request: Request,
    nexus: Nexus,
    viewer: PageViewer,
    browser: Browser,
    name: Annotated[str, Form()] = "",
    scope: Annotated[str, Form()] = "",
) -> Response:
    """The page that answers shows the token, and no other ever will."""
    if scope != Scope.FEED:
        _require_proven(nexus, browser)
    try:
        with nexus.sessions.begin() as session:
            token, secret = tokens.make(session, viewer, name, scope)
    except (InvalidRequest, Conflict) as error:
        return _account(
            request, nexus, viewer, browser, error=error.message, status=error.status, form=(name, scope)
        )
    return _account(request, nexus, viewer, browser, made=token, secret=secret)


@router.post("/tokens/{token_id}/revoke")
def revoke_token_by_form(request: Request, nexus: Nexus, viewer: PageViewer, token_id: UUID) -> Response:
    with nexus.sessions.begin() as session:
        tokens.revoke_token(session, viewer, token_id)
    gate_of(request).tokens.forget(lambda one: one.id == token_id)
    return go("/account")


def _require_proven(nexus: App, browser: SignIn | None) -> None:
    """Raises Forbidden: somebody else at the user's browser could lock the user out of the others, or make a token that
    stays when this sign-in has ended."""
    if not sign_ins.is_proven(browser, nexus.sessions.clock()):
        raise Forbidden("Sign in again on your account page first, to show that it is you.")


def _sign_in_again(nexus: App, browser: SignIn | None) -> str:
    """Return where the user of a browser can show who they are."""
    if browser is not None and browser.method is Method.OIDC and nexus.settings.oidc_issuer:
        return "/sign-in/start?back=/account&again=true"
    return "/sign-in"


def feed_address(nexus: App, request: Request, secret: str) -> str:
    """Return the address of the feed of published stories for a feed reader, which sends nothing else."""
    site = nexus.settings.public_url or str(request.base_url)
    return urljoin(site, f"/api/stories.atom?{urlencode({'token': secret})}")


def _account(
    request: Request,
    nexus: App,
    viewer: UUID,
    browser: SignIn | None,
    *,
    made: Token | None = None,
    secret: str = "",
    error: str = "",
    status: int = 200,
    form: tuple[str, str] = ("", ""),
) -> Response:
    with nexus.sessions.read() as session:
        browsers = sign_ins.list_sign_ins(session, viewer)
        kept = tokens.list_tokens(session, viewer)
    if made is not None and made.scope is Scope.FEED:
        secret = feed_address(nexus, request, secret)
    return page(
        request,
        "account.html",
        status,
        own=browser and browser.id,
        is_proven=sign_ins.is_proven(browser, nexus.sessions.clock()),
        again=_sign_in_again(nexus, browser),
        browsers=browsers,
        api_tokens=[token for token in kept if token.scope is not Scope.FEED],
        feeds=[token for token in kept if token.scope is Scope.FEED],
        scopes=SCOPES,
        made=made,
        secret=secret,
        error=error,
        form=form,
    )
