"""Is it alive, is it ready, how is it doing. Open to anyone who can reach the port."""

from __future__ import annotations

from fastapi import Request, Response

from nexus import logging
from nexus.db import migrate
from nexus.errors import NotReady
from nexus.upkeep import counts
from nexus.web.api.schemas import Health
from nexus.web.http.context import app_of
from nexus.web.http.envelope import Data, Refusal, answer
from nexus.web.http.routing import Router

log = logging.get(__name__)
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
        migrated = migrate.current(nexus.settings.database) == migrate.head()
    except Exception as error:
        log.warning("not_ready", reason=type(error).__name__)
        raise NotReady("The database can't be reached. Check NEXUS_DATABASE_URL.") from error
    if not migrated:
        raise NotReady("The database is not migrated. Run: nexus db upgrade")
    return answer(Health(status="ok"))


@router.get("/metrics", responses={200: {"content": {"text/plain": {}}}}, summary="Counters for Prometheus")
def metrics(request: Request) -> Response:
    return Response(request.app.state.metrics.page(), media_type="text/plain; version=0.0.4; charset=utf-8")
