"""Is it alive, is it ready, how is it doing, what can it do. The first two are open to anyone who can reach it."""

from __future__ import annotations

import json

from fastapi import Request, Response

from nexus import logging
from nexus.db import migrate
from nexus.errors import NotReady
from nexus.upkeep import counts
from nexus.web.api.schemas import Health
from nexus.web.http.context import Operator, app_of
from nexus.web.http.envelope import JSON, Data, Refusal, answer
from nexus.web.http.routing import Router

log = logging.get_logger(__name__)
router = Router(tags=["health"])


@router.get("/healthz", responses={200: {"model": Data[Health]}}, summary="Is the process alive")
async def healthz() -> Response:
    return answer(Health(status="ok"))


@router.get(
    "/readyz",
    responses={200: {"model": Data[Health]}, 503: {"model": Refusal}},
    summary="Is it ready to work",
)
def readyz(request: Request) -> Response:
    """Whether it has started, and the database answers and is migrated."""
    nexus = app_of(request)
    if request.app.state.readiness.reason is not None:
        raise NotReady(request.app.state.readiness.reason)
    try:
        with nexus.sessions.read() as session:
            counts.is_alive(session)
        migrated = migrate.schema_version(nexus.settings.database) == migrate.head()
    except Exception as error:
        log.warning("not_ready", reason=type(error).__name__)
        raise NotReady("The database can't be reached. Check NEXUS_DATABASE_URL.") from error
    if not migrated:
        raise NotReady("The database is not migrated. Run: nexus db upgrade")
    return answer(Health(status="ok"))


@router.get(
    "/metrics",
    responses={200: {"content": {"text/plain": {}}}, 401: {"model": Refusal}},
    summary="Counters for Prometheus",
)
def metrics(request: Request, _: Operator) -> Response:
    """In prod only for callers who are signed in, or send X-Nexus-Internal."""
    return Response(request.app.state.metrics.page(), media_type="text/plain; version=0.0.4; charset=utf-8")


@router.get("/openapi.json", include_in_schema=False)
def openapi(request: Request, _: Operator) -> Response:
    return Response(json.dumps(request.app.openapi()), media_type=JSON)
