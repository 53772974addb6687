"""Routers that know how their routes refuse and how much they take in, and routes that start quickly."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import Enum
from functools import partial
from typing import Any
from uuid import UUID

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute
from starlette.routing import Route as PlainRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from nexus.web.http.context import CALLERS
from nexus.web.http.envelope import Refuse, refuse_in_envelope
from nexus.web.http.scopes import needed_for
from nexus.web.http.threads import in_turn

#: No request but a file is larger than this.
MOST_BODY = 1024 * 1024


class Route(APIRoute):
    """FastAPI's route, but made in two steps.

    The parameters of an endpoint take FastAPI milliseconds, and Nexus has a hundred endpoints: a seventh of a start.
    Until its first request a route knows no more than what it takes to be found.
    """

    def __init__(
        self,
        path: str,
        endpoint: Callable[..., Any],
        *,
        refuse: Refuse,
        most_body: int | None,
        methods: set[str] | list[str],
        tags: list[str | Enum] | None = None,
        responses: dict[int | str, dict[str, Any]] | None = None,
        include_in_schema: bool = True,
        **options: Any,
    ) -> None:
        PlainRoute.__init__(self, path, endpoint, include_in_schema=include_in_schema)
        self.refuse = refuse
        #: In bytes; None if the endpoint itself limits what it reads.
        self.most_body = most_body
        self.methods = set(methods)
        #: What a personal token must be allowed to do; None if none opens it.
        self.needs = needed_for(endpoint, self.methods)
        self.tags = tags or []
        self.app = self._answer_first
        self._make = partial(
            super().__init__,
            path,
            methods=methods,
            tags=tags,
            include_in_schema=include_in_schema,
            **options,
        )
        self._plain_endpoint = endpoint
        self._documented_responses = responses

    async def _answer_first(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.complete()
        await self.app(scope, receive, send)

    def document(self) -> None:
        """Put its parameters and answers into the documentation, which alone needs models of the answers."""
        self.complete(responses=self._documented_responses)

    def complete(self, **options: Any) -> None:
        """Take the second step. FastAPI reads a body before it asks who sent it; this asks first."""
        self._make(endpoint=in_turn(self._plain_endpoint), **options)
        if self.takes_body and self.caller is not None:
            self.app = _asking_first(self.caller, self.app)

    @property
    def takes_body(self) -> bool:
        """Whether FastAPI reads a body for the endpoint."""
        return self.body_field is not None

    @property
    def caller(self) -> Callable[[Request], Awaitable[UUID]] | None:
        """What says who is asking, or None for a call that is open to all."""
        asked: list[Any] = [part.call for part in self.dependant.dependencies]
        return next((call for call in asked if call in CALLERS), None)


def _asking_first(caller: Callable[[Request], Awaitable[UUID]], answer: ASGIApp) -> ASGIApp:
    async def ask_and_answer(scope: Scope, receive: Receive, send: Send) -> None:
        await caller(Request(scope))
        await answer(scope, receive, send)

    return ask_and_answer


class Router(APIRouter):
    """Routes with the same shape of refusals and the same limit for bodies."""

    def __init__(
        self, *, refuse: Refuse = refuse_in_envelope, most_body: int | None = MOST_BODY, **options: Any
    ) -> None:
        made: Any = partial(Route, refuse=refuse, most_body=most_body)
        super().__init__(route_class=made, default_response_class=Response, **options)
