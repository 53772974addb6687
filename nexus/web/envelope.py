"""The shape of every answer, and the request id that goes with it."""

from __future__ import annotations

import json
import re
import time
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
from nexus.errors import ApiError, Internal, InvalidRequest, NotFound
from nexus.web.metrics import Metrics

log = logging.get(__name__)

REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
MAX_BODY = 1024 * 1024
JSON = "application/json"


def answer(data: Any, status: int = 200) -> Response:
    return Response(json.dumps({"data": data}, ensure_ascii=False), status, media_type=JSON)


def refusal(error: ApiError, request_id: str, status: int | None = None) -> Response:
    body = {"error": {"code": error.code, "message": error.message, "request_id": request_id}}
    return Response(json.dumps(body, ensure_ascii=False), status or error.status, media_type=JSON)


def request_id(request: Request) -> str:
    found: str = request.scope["nexus.request_id"]
    return found


def install(api: FastAPI, metrics: Metrics) -> None:
    """Every error of the API leaves in the envelope; every request has an id, a log line and a count."""

    async def refuse(request: Request, error: Exception) -> Response:
        return refusal(error if isinstance(error, ApiError) else Internal(), request_id(request))

    async def refuse_invalid(request: Request, error: Exception) -> Response:
        return refusal(_explain(error), request_id(request))

    async def refuse_unrouted(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        kind = (
            NotFound()
            if status == 404
            else InvalidRequest("This address does not take that method. See /docs.")
        )
        return refusal(kind, request_id(request), status)

    api.add_exception_handler(ApiError, refuse)
    api.add_exception_handler(RequestValidationError, refuse_invalid)
    api.add_exception_handler(HTTPException, refuse_unrouted)
    api.add_middleware(Envelope, metrics=metrics)


def _explain(error: Exception) -> ApiError:
    """A path that can't name anything is not found; everything else says which field is wrong."""
    problems = error.errors() if isinstance(error, RequestValidationError) else []
    if any(problem["loc"][0] == "path" for problem in problems):
        return NotFound()
    fields = ", ".join(sorted({".".join(map(str, problem["loc"][1:])) or "body" for problem in problems}))
    return InvalidRequest(f"Check these fields of the request: {fields[:200]}. See /docs.")


class Envelope:
    """Plain ASGI, because it stands before every request."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

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
                await self._app(scope, _limited(receive), send_with_id)
            except TooLarge:
                await _send(
                    refusal(InvalidRequest("This request is too large."), chosen, 413),
                    scope,
                    receive,
                    send_with_id,
                )
            except Exception:
                log.exception("request_broke")
                if status:
                    raise
                await _send(refusal(Internal(), chosen), scope, receive, send_with_id)
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


class TooLarge(Exception):
    """The body is larger than any request of this API can be."""


def _limited(receive: Receive) -> Receive:
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


async def _send(response: Response, scope: Scope, receive: Receive, send: Send) -> None:
    await response(scope, receive, send)
