"""The shape of every answer, and the request id that goes with it. Pages answer with pages, the API with JSON."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from logging import DEBUG, INFO
from typing import Any
from uuid import uuid4

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nexus import logging
from nexus.db.drivers import CommitUnanswered, is_away
from nexus.db.session import Row
from nexus.errors import ApiError, Internal, InvalidRequest, NotFound, NotReady, RateLimited
from nexus.storage.local import ROUTE
from nexus.web.http.metrics import Metrics

log = logging.get(__name__)

REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
MAX_BODY = 1024 * 1024
_STAGED = re.compile(r"/imports/batches/[0-9a-f-]{36}/sources|/import/(?:sources|files)")
JSON = "application/json"
#: The answer to a request whose COMMIT was not answered.
PERHAPS_SAVED = (
    "The database was lost while this was being saved. It may be saved or not: look before you try again."
)
#: The tag of routes that answer with HTML, their errors too.
PAGE = "page"
#: And of those whose answers have the shape of editorial jobs.
EDITORIAL = "jobs"
#: Makes an error a page.
ErrorPage = Callable[[Request, ApiError, int], Response]


def answer(data: Any, status: int = 200) -> Response:
    return Response(json.dumps({"data": data}, ensure_ascii=False), status, media_type=JSON)


def picture(found: Row) -> Response:
    """A picture out of somebody's file: shown as one and never run. Its name is made from its content."""
    headers = {
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "Cache-Control": "private, max-age=31536000, immutable",
    }
    return Response(bytes(found.data), headers=headers, media_type=found.content_type)


def refusal(error: ApiError, request_id: str, status: int | None = None) -> Response:
    body = {"error": {"code": error.code, "message": error.message, "request_id": request_id}}
    return _no(body, error, status or error.status)


def editorial_refusal(error: ApiError, request_id: str, status: int) -> Response:
    body = {"success": False, "error": error.code, "message": error.message, "requestId": request_id}
    return _no(body, error, status)


def _no(body: dict[str, Any], error: ApiError, status: int) -> Response:
    headers = {}
    if error.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, RateLimited) and error.retry_after is not None:
        headers["Retry-After"] = str(error.retry_after)
    return Response(json.dumps(body, ensure_ascii=False), status, headers, media_type=JSON)


def request_id(request: Request) -> str:
    found: str = request.scope["nexus.request_id"]
    return found


def install(api: FastAPI, metrics: Metrics, error_page: ErrorPage) -> None:
    """Every error of the API leaves in the envelope; every request has an id, a log line and a count."""

    def say_no(request: Request, error: ApiError, status: int | None = None) -> Response:
        if _is_page(request):
            return error_page(request, error, status or error.status)
        if _tagged(request, EDITORIAL):
            return editorial_refusal(error, request_id(request), status or error.status)
        return refusal(error, request_id(request), status)

    async def refuse(request: Request, error: Exception) -> Response:
        return say_no(request, error if isinstance(error, ApiError) else Internal())

    async def refuse_invalid(request: Request, error: Exception) -> Response:
        return say_no(request, _explain(error))

    async def refuse_unrouted(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        no = say_no(request, _UNROUTED.get(status) or InvalidRequest(), status)
        if status == 405:
            no.headers["Allow"] = _allowed(request)
        return no

    api.add_exception_handler(ApiError, refuse)
    api.add_exception_handler(RequestValidationError, refuse_invalid)
    api.add_exception_handler(HTTPException, refuse_unrouted)
    api.add_middleware(Envelope, metrics=metrics, say_no=say_no)


_UNROUTED = {
    404: NotFound(),
    405: InvalidRequest("This address does not take that method. See /docs."),
    413: InvalidRequest("This request is too large."),
}


def _allowed(request: Request) -> str:
    """Every documented method of the address; of one that is not documented, those of the function that was found."""
    route = request.scope.get("route")
    documented = request.app.openapi()["paths"].get(getattr(route, "path", ""))
    return ", ".join(
        sorted(method.upper() for method in documented or getattr(route, "methods", None) or {"GET"})
    )


def _is_page(request: Request) -> bool:
    """A route of the pages, or, at an address that nobody serves, a browser that asks for a page."""
    if request.scope.get("route") is None:
        return "text/html" in request.headers.get("accept", "")
    return _tagged(request, PAGE)


def _tagged(request: Request, tag: str) -> bool:
    return tag in getattr(request.scope.get("route"), "tags", ())


def _explain(error: Exception) -> ApiError:
    """A path that can't name anything is not found; everything else says which field is wrong."""
    problems = error.errors() if isinstance(error, RequestValidationError) else []
    if any(problem["loc"][0] == "path" for problem in problems):
        return NotFound()
    if any(problem["type"] == "json_invalid" for problem in problems):
        return InvalidRequest("The body is not JSON. See /docs.")
    fields = ", ".join(sorted({".".join(map(str, problem["loc"][1:])) or "body" for problem in problems}))
    return InvalidRequest(f"Check these fields of the request: {fields[:200]}. See /docs.")


class Envelope:
    """Plain ASGI, because it stands before every request."""

    def __init__(self, app: ASGIApp, metrics: Metrics, say_no: Callable[..., Response]) -> None:
        self._app = app
        self._metrics = metrics
        self._say_no = say_no

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        chosen = scope["nexus.request_id"] = _chosen_id(scope)
        began, status = time.perf_counter(), 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", chosen.encode())]
            await send(message)

        with structlog.contextvars.bound_contextvars(request_id=chosen):
            try:
                await self._app(scope, _limited(scope, receive), send_with_id)
            except Exception as error:
                log.exception("request_broke")
                if status:
                    raise
                await self._say_no(Request(scope), _broken(error))(scope, receive, send_with_id)
            seconds = time.perf_counter() - began
            self._metrics.count(scope, status, seconds)
            # Reads that went well are counted, not written down one by one.
            level = DEBUG if scope["method"] == "GET" and status < 400 else INFO
            log.log(
                level,
                "request",
                method=scope["method"],
                path=scope["path"],
                status=status,
                ms=round(seconds * 1000),
            )


def _broken(error: Exception) -> ApiError:
    """What a caller is told of an error that nobody expected here."""
    if isinstance(error, CommitUnanswered):
        return NotReady(PERHAPS_SAVED)
    return NotReady() if is_away(error) else Internal()


class TooLarge(HTTPException):
    """The body is larger than any request of this API can be. FastAPI lets no other exception through."""

    def __init__(self) -> None:
        super().__init__(413)


def _limited(scope: Scope, receive: Receive) -> Receive:
    """Files go to the store by links of their own, which say how long they are; an import counts its files itself."""
    if scope["path"].startswith(ROUTE) or _STAGED.fullmatch(scope["path"]):
        return receive
    seen = 0

    async def counted() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > MAX_BODY:
            raise TooLarge
        return message

    return counted


def _chosen_id(scope: Scope) -> str:
    for name, value in scope["headers"]:
        if name == b"x-request-id":
            given = value.decode("latin-1")
            if REQUEST_ID.fullmatch(given):
                return str(given)
    return uuid4().hex
