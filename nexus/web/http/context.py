"""What an endpoint is given: the app, and who is asking."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from typing import Annotated, Any
from uuid import UUID

from fastapi import Depends, Path, Query, Request

from nexus import logging
from nexus.app import App
from nexus.libraries.sign_ins import SignIn
from nexus.media import queries
from nexus.web.http.auth import Gate
from nexus.web.http.request_shares import Shares

log = logging.get_logger(__name__)


def app_of(request: Request) -> App:
    found: App = request.app.state.nexus
    return found


def gate_of(request: Request) -> Gate:
    """Raises NotReady while a starting server waits for its database, which the gate needs."""
    request.app.state.readiness.require_open()
    found: Gate = request.app.state.gate
    return found


async def _app(request: Request) -> App:
    request.app.state.readiness.require_open()
    return app_of(request)


async def admit_caller(request: Request, identify: Callable[[Gate, Request], Awaitable[UUID]]) -> UUID:
    """Say who is asking, and count the request for them. Raises RateLimited for one too many.

    Asks only once: a route with a body has to know before it reads the body, and its endpoint asks again.
    """
    scope = request.scope
    found: UUID | None = scope.get("nexus.viewer")
    if found is None:
        found = scope["nexus.viewer"] = await identify(gate_of(request), request)
        shares: Shares = request.app.state.shares
        shares.enter(found)
        scope["nexus.counted"] = found
    return found


async def _api_viewer(request: Request) -> UUID:
    return await admit_caller(request, Gate.by_token)


async def _page_viewer(request: Request) -> UUID:
    return await admit_caller(request, Gate.by_cookie)


async def _either_viewer(request: Request) -> UUID:
    return await admit_caller(request, Gate.by_either)


async def _operator(request: Request) -> None:
    """In prod, raises Unauthorized for callers who are neither signed in nor know the internal secret."""
    chosen = app_of(request).settings
    given = request.headers.get("x-nexus-internal", "")
    if chosen.env == "prod" and not hmac.compare_digest(given.encode(), chosen.internal_secret.encode()):
        await _either_viewer(request)


#: Dependencies that say who is asking. A route that has one asks it before it reads a body.
CALLERS: frozenset[Callable[[Request], Awaitable[UUID]]] = frozenset(
    {_api_viewer, _page_viewer, _either_viewer}
)


async def _browser(request: Request) -> SignIn | None:
    """A page that anyone may open must not fail because nobody can look up who opens it."""
    if not request.app.state.readiness.is_open:
        return None
    try:
        return await gate_of(request).sign_in_of(request)
    except Exception as error:
        log.warning("browser_not_known", reason=type(error).__name__)
        return None


# Dependencies are `async def` so that FastAPI calls them in place, not each in a thread.
Nexus = Annotated[App, Depends(_app)]
Viewer = Annotated[UUID, Depends(_api_viewer)]
PageViewer = Annotated[UUID, Depends(_page_viewer)]
AnyViewer = Annotated[UUID, Depends(_either_viewer)]
#: For what tells operators and developers about Nexus itself.
Operator = Annotated[None, Depends(_operator)]
#: The sign-in of the browser that asks, if it has one.
Browser = Annotated[SignIn | None, Depends(_browser)]
Cursor = Annotated[str | None, Query(max_length=600, description="`next_cursor` of the previous page.")]
Limit = Annotated[int, Query(ge=1, le=queries.MOST, description="How many at most.")]
_NUMBERS: dict[str, Any] = {"ge": 1, "lt": 2**31}
Number = Annotated[int, Path(**_NUMBERS, description="The number of a version.")]
OtherNumber = Annotated[int, Query(alias="with", **_NUMBERS, description="The version to compare it with.")]
Revision = Annotated[int | None, Query(**_NUMBERS, description="Another version than the one that you read.")]
