"""Around every request: an id, a log line, a count, the host it names, a limit for its body, the headers that every
answer carries, and an answer to whatever goes wrong."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from logging import DEBUG, INFO
from uuid import UUID, uuid4

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nexus import logging
from nexus.db.drivers import CommitUnanswered, is_away
from nexus.errors import ApiError, Internal, InvalidRequest, NotFound, NotReady, RateLimited
from nexus.libraries.audit import called_from
from nexus.web.http.envelope import Refuse
from nexus.web.http.metrics import Metrics
from nexus.web.http.request_shares import Shares
from nexus.web.http.routing import MOST_BODY
from nexus.web.http.safety import Headers, Hosts
from nexus.web.http.threads import GONE

log = logging.get_logger(__name__)

REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
PERHAPS_SAVED = (
    "The database was lost while this was being saved. It may or may not be saved: look before you try again."
)
WRONG_HOST = InvalidRequest(
    "Nexus does not answer to this host name. If it should, add the name to NEXUS_HOSTS."
)
_UNROUTED = {
    404: NotFound(),
    405: InvalidRequest("This address does not support that method. See /docs."),
    413: InvalidRequest("This request is too large."),
}


def install(
    api: FastAPI, metrics: Metrics, shares: Shares, refuse_elsewhere: Refuse, hosts: Hosts, headers: Headers
) -> None:
    """Put the middleware around an API, and have its routes answer errors as their routers say.

    `refuse_elsewhere` answers for addresses that no route serves. Every answer has the headers.
    """

    def refuse(request: Request, error: ApiError, status: int | None = None) -> Response:
        chosen: Refuse = getattr(request.scope.get("route"), "refuse", refuse_elsewhere)
        return chosen(request, error, status or error.status)

    async def refuse_error(request: Request, error: Exception) -> Response:
        return refuse(request, error if isinstance(error, ApiError) else Internal())

    async def refuse_invalid(request: Request, error: Exception) -> Response:
        return refuse(request, _explain(error))

    async def refuse_unrouted(request: Request, error: Exception) -> Response:
        if isinstance(error, TooMuchAtOnce):
            return refuse(request, error.why)
        status = error.status_code if isinstance(error, HTTPException) else 500
        refused = refuse(request, _UNROUTED.get(status) or InvalidRequest(), status)
        if status == 405:
            refused.headers["Allow"] = _allowed(request)
        return refused

    api.add_exception_handler(ApiError, refuse_error)
    api.add_exception_handler(RequestValidationError, refuse_invalid)
    api.add_exception_handler(HTTPException, refuse_unrouted)
    api.add_middleware(
        Middleware, metrics=metrics, shares=shares, refuse=refuse, hosts=hosts, headers=headers
    )


def _allowed(request: Request) -> str:
    """Every documented method of the address, or those of the route that was found if it is not documented."""
    route = request.scope.get("route")
    documented = request.app.openapi()["paths"].get(getattr(route, "path", ""))
    return ", ".join(
        sorted(method.upper() for method in documented or getattr(route, "methods", None) or {"GET"})
    )


def _explain(error: Exception) -> ApiError:
    """A path that can't name anything is not found; for anything else, say which field is wrong."""
    problems = error.errors() if isinstance(error, RequestValidationError) else []
    if any(problem["loc"][0] == "path" for problem in problems):
        return NotFound()
    if any(problem["type"] == "json_invalid" for problem in problems):
        return InvalidRequest("The body is not JSON. See /docs.")
    fields = ", ".join(sorted({".".join(map(str, problem["loc"][1:])) or "body" for problem in problems}))
    return InvalidRequest(f"Check these fields of the request: {fields[:200]}. See /docs.")


class Middleware:
    """Plain ASGI: Starlette's own base class would cost every request a task and a stream."""

    def __init__(
        self,
        app: ASGIApp,
        metrics: Metrics,
        shares: Shares,
        refuse: Callable[[Request, ApiError], Response],
        hosts: Hosts,
        headers: Headers,
    ) -> None:
        self._app = app
        self._metrics = metrics
        self._shares = shares
        self._refuse = refuse
        self._hosts = hosts
        self._headers = headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given, host = _id_and_host(scope)
        chosen = scope["nexus.request_id"] = given or uuid4().hex
        began, status = time.perf_counter(), 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = self._complete(message["headers"], chosen)
            await send(message)

        with structlog.contextvars.bound_contextvars(request_id=chosen), called_from(_address(scope)):
            try:
                if self._hosts.allow(host):
                    await self._app(scope, self._limited(scope, receive), send_with_id)
                else:
                    await self._refuse(Request(scope), WRONG_HOST)(scope, receive, send_with_id)
            except ClientDisconnect:
                status = status or GONE  # in the middle of its body: nobody is there to be answered
            except Exception as error:
                log.exception("request_broke")
                if status:
                    raise
                await self._refuse(Request(scope), _unexpected(error))(scope, receive, send_with_id)
            finally:
                if (counted := scope.get("nexus.counted")) is not None:
                    self._shares.leave(counted)
                    self._shares.let_go(counted, scope.get("nexus.held", 0))
            seconds = time.perf_counter() - began
            self._metrics.count(scope, status, seconds)
            _log_request(scope, status, seconds)

    def _limited(self, scope: Scope, receive: Receive) -> Receive:
        """Count a body as it comes in. Its route, which knows the limit, has been found by then, and who sends it."""
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            size = len(message.get("body", b""))
            seen += size
            most = getattr(scope.get("route"), "most_body", MOST_BODY)
            if most is not None and seen > most:
                raise TooLarge
            if most is not None and size and (user := scope.get("nexus.counted")) is not None:
                self._hold(user, size)
                scope["nexus.held"] = scope.get("nexus.held", 0) + size
            return message

        return counted

    def _hold(self, user: UUID, size: int) -> None:
        try:
            self._shares.hold(user, size)
        except RateLimited as error:
            raise TooMuchAtOnce(error) from error

    def _complete(self, given: list[tuple[bytes, bytes]], request_id: str) -> list[tuple[bytes, bytes]]:
        """Add the headers of every answer, unless it has its own."""
        own = {name for name, _ in given}
        missing = [header for header in self._headers if header[0] not in own]
        return [*given, *missing, (b"x-request-id", request_id.encode())]


def _address(scope: Scope) -> str | None:
    """Where the request comes from, for the audit log."""
    client = scope.get("client")
    return client[0] if client else None


def _log_request(scope: Scope, status: int, seconds: float) -> None:
    """Successful reads are counted, and logged only for debugging."""
    is_read = scope["method"] == "GET" and status < 400
    if not is_read or log.isEnabledFor(DEBUG):
        said = {
            "method": scope["method"],
            "path": scope["path"],
            "status": status,
            "ms": round(seconds * 1000),
        }
        log.log(DEBUG if is_read else INFO, "request", **said, **_user(scope))


def _user(scope: Scope) -> dict[str, str]:
    """Who asked, once that is known."""
    user = scope.get("nexus.viewer")
    return {} if user is None else {"user": str(user)}


def _unexpected(error: Exception) -> ApiError:
    """What the caller is told about an error that no endpoint expected."""
    if isinstance(error, CommitUnanswered):
        return NotReady(PERHAPS_SAVED)
    return NotReady() if is_away(error) else Internal()


class TooLarge(HTTPException):
    """The body is larger than its route takes. FastAPI lets no other kind of exception through."""

    def __init__(self) -> None:
        super().__init__(413)


class TooMuchAtOnce(HTTPException):
    """The caller sends too much at once. FastAPI lets no other kind of exception through here either."""

    def __init__(self, why: RateLimited) -> None:
        super().__init__(why.status)
        self.why = why


def _id_and_host(scope: Scope) -> tuple[str | None, bytes | None]:
    """The id that the caller gave, if it may be used, and the host that was called, if there is exactly one."""
    chosen: str | None = None
    hosts: list[bytes] = []
    for name, value in scope["headers"]:
        if name == b"host":
            hosts.append(value)
        elif name == b"x-request-id":
            given = value.decode("latin-1")
            if chosen is None and REQUEST_ID.fullmatch(given):
                chosen = given
    return chosen, hosts[0] if len(hosts) == 1 else None
