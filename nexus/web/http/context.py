"""What an endpoint is given: the app, and who is asking."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import Depends, Query, Request

from nexus.app import App
from nexus.media import queries
from nexus.web.http.auth import Gate


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


async def _api_viewer(request: Request) -> UUID:
    return await gate_of(request).by_token(request)


async def _page_viewer(request: Request) -> UUID:
    return await gate_of(request).by_cookie(request)


async def _either_viewer(request: Request) -> UUID:
    return await gate_of(request).by_either(request)


# Dependencies are `async def` so that FastAPI calls them in place, not each in a thread.
Nexus = Annotated[App, Depends(_app)]
Viewer = Annotated[UUID, Depends(_api_viewer)]
PageViewer = Annotated[UUID, Depends(_page_viewer)]
AnyViewer = Annotated[UUID, Depends(_either_viewer)]
Cursor = Annotated[str | None, Query(max_length=200, description="`next_cursor` of the previous page.")]
Limit = Annotated[int, Query(ge=1, le=queries.MOST, description="How many at most.")]
