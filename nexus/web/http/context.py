"""What an endpoint is given: the app and who asks."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from fastapi import Depends, Query, Request

from nexus.app import App
from nexus.media import queries
from nexus.web.api.schemas import Refusal
from nexus.web.http.auth import Gate


def app_of(request: Request) -> App:
    found: App = request.app.state.nexus
    return found


def gate_of(request: Request) -> Gate:
    """Raises NotReady while a starting server waits for its database: the gate looks there."""
    request.app.state.readiness.require_open()
    found: Gate = request.app.state.gate
    return found


async def _api_viewer(request: Request) -> UUID:
    return await gate_of(request).by_token(request)


async def _page_viewer(request: Request) -> UUID:
    return await gate_of(request).by_cookie(request)


async def _either_viewer(request: Request) -> UUID:
    return await gate_of(request).by_either(request)


async def _app(request: Request) -> App:
    request.app.state.readiness.require_open()
    return app_of(request)


# Dependencies are `async def` so that FastAPI calls them in place, not in a thread each.
Nexus = Annotated[App, Depends(_app)]
Viewer = Annotated[UUID, Depends(_api_viewer)]
PageViewer = Annotated[UUID, Depends(_page_viewer)]
AnyViewer = Annotated[UUID, Depends(_either_viewer)]
Cursor = Annotated[str | None, Query(max_length=200, description="`next_cursor` of the page before.")]
Limit = Annotated[int, Query(ge=1, le=queries.MOST, description="How many at most.")]

_MEANINGS = {
    400: "The request is not well-formed; the code says how.",
    401: "No valid token, or no internal secret.",
    403: "Visible, but not yours to change.",
    404: "No such thing, or not visible to you.",
    409: "Not possible in the present state.",
    413: "The request is too large.",
    429: "The day's allowance is used up.",
    502: "The file store gave no place to upload to.",
    503: "A part of the server is away.",
    504: "The file store was too slow.",
}


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The documented refusals of an endpoint; every API call may also be refused for who asks."""
    return {
        status: {"model": Refusal, "description": _MEANINGS[status]}
        for status in sorted({400, 401, 503, *statuses})
    }


def answers(model: object, *statuses: int) -> dict[int | str, dict[str, Any]]:
    """What an endpoint may answer: the model in the envelope, or one of the refusals."""
    return {200: {"model": model, "description": "Done."}, **refusals(*statuses)}
