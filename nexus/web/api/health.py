"""Is it alive, is it ready, how is it doing. Open to whoever can reach the port."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from nexus import logging
from nexus.db import migrate
from nexus.errors import NotReady
from nexus.upkeep import counts
from nexus.web.api.schemas import Data, Health, Refusal
from nexus.web.http.context import app_of
from nexus.web.http.envelope import answer
from nexus.web.http.routing import Route

log = logging.get(__name__)
router = APIRouter(route_class=Route, tags=["health"], default_response_class=Response)


@router.get("/healthz", responses={200: {"model": Data[Health]}}, summary="Is the process alive")
async def healthz() -> Response:
    return answer({"status": "ok"})


@router.get(
    "/readyz", responses={200: {"model": Data[Health]}, 503: {"model": Refusal}}, summary="Can it do its work"
)
def readyz(request: Request) -> Response:
    """It has started, and the database answers and is migrated."""
    nexus = app_of(request)
    if request.app.state.readiness.reason is not None:
        raise NotReady(request.app.state.readiness.reason)
    try:
        with nexus.sessions.read() as session:
            counts.is_alive(session)
        migrated = migrate.current(nexus.settings.database) == migrate.head()
    except Exception as error:
        log.warning("not_ready", reason=type(error).__name__)
        raise NotReady("The database can't be reached. Check NEXUS_DATABASE_URL.") from error
    if not migrated:
        raise NotReady("The database is not migrated. Run: nexus db upgrade")
    return answer({"status": "ok"})


@router.get("/metrics", responses={200: {"content": {"text/plain": {}}}}, summary="Counters for Prometheus")
def metrics(request: Request) -> Response:
    return Response(request.app.state.metrics.page(), media_type="text/plain; version=0.0.4; charset=utf-8")
