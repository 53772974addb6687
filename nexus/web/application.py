"""The web application: its routers, its documentation, and what lives as long as the server does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request, Response
from starlette.routing import BaseRoute

import nexus
from nexus.app import App
from nexus.errors import ApiError, RateLimited
from nexus.settings import Settings
from nexus.web.api import (
    audit,
    bulk,
    changes,
    events,
    health,
    imports,
    jobs,
    libraries,
    listening,
    media,
    people,
    search,
    shelf,
    storage_links,
    stories,
    subscriptions,
    tokens,
    transcripts,
    uploads,
)
from nexus.web.api.events import Feed
from nexus.web.http import middleware
from nexus.web.http.auth import Gate
from nexus.web.http.envelope import refuse_in_envelope
from nexus.web.http.metrics import Metrics
from nexus.web.http.readiness import Readiness
from nexus.web.http.request_shares import OpenStreams, Shares
from nexus.web.http.routing import Route
from nexus.web.http.safety import Hosts, safe_headers
from nexus.web.http.static_files import StaticFolder
from nexus.web.http.threads import Threads
from nexus.web.pages import account as page_account
from nexus.web.pages import bulk as page_bulk
from nexus.web.pages import feeds as page_feeds
from nexus.web.pages import imports as page_imports
from nexus.web.pages import jobs as page_jobs
from nexus.web.pages import library as page_library
from nexus.web.pages import listening as page_listening
from nexus.web.pages import marks as page_marks
from nexus.web.pages import reader as page_reader
from nexus.web.pages import searching as page_searching
from nexus.web.pages import sharing as page_sharing
from nexus.web.pages import sign_in as page_sign_in
from nexus.web.pages import stories as page_stories
from nexus.web.pages import transcripts as page_transcripts
from nexus.web.pages import uploads as page_uploads
from nexus.web.pages import versions as page_versions
from nexus.web.views.render import refuse_as_page

if TYPE_CHECKING:
    from nexus.web.http.oidc import Provider

DESCRIPTION = """
Every call carries `Authorization: Bearer …`. A personal token, which you make on your account page or with
`nexus token --new`, is all it takes. Services send the JWT of a user, and with it `X-Nexus-Internal: …`;
`nexus token --json` prints both.
Success is `{"data": …}`, failure `{"error": {"code", "message", "request_id"}}`.
"""
ABOUT: dict[str, Any] = {"title": "Nexus", "version": nexus.__version__, "description": DESCRIPTION}


#: In the order in which they are asked for an address.
ROUTERS = (
    uploads.router,
    bulk.router,
    shelf.router,
    search.router,
    listening.router,
    media.router,
    changes.router,
    transcripts.router,
    libraries.router,
    subscriptions.router,
    subscriptions.feeds,
    people.router,
    audit.router,
    imports.router,
    imports.files,
    jobs.router,
    stories.router,
    tokens.router,
    events.router,
    health.router,
    storage_links.router,
    page_bulk.router,
    page_marks.router,
    page_marks.script,
    page_listening.router,
    page_listening.script,
    page_feeds.router,
    page_searching.router,
    page_reader.router,
    page_versions.router,
    page_versions.text,
    page_transcripts.router,
    page_imports.router,
    page_imports.form,
    page_imports.script,
    page_imports.script_files,
    page_jobs.router,
    page_stories.router,
    page_sharing.router,
    page_library.router,
    page_sign_in.router,
    page_account.router,
    page_uploads.router,
)


def create_application(app: App, readiness: Readiness | None = None) -> FastAPI:
    """Make the application. It is ready at once unless the caller gives a readiness."""

    @asynccontextmanager
    async def lifespan(api: FastAPI) -> AsyncIterator[None]:
        feed = api.state.feed = Feed(app.sessions, app.settings.streams_per_user)
        api.state.threads = Threads.of(app.settings)
        loop = asyncio.get_running_loop()
        app.imports.listener = partial(loop.call_soon_threadsafe, feed.nudge)
        yield
        app.imports.listener = lambda: None

    api = FastAPI(
        **ABOUT,
        lifespan=lifespan,
        routes=_routes(),
        redoc_url=None,
        docs_url=None,
        openapi_url=None,
    )
    api.state.nexus = app
    api.state.gate = Gate(app)
    api.state.provider = _provider(app.settings)
    api.state.readiness = readiness or Readiness()
    api.state.metrics = Metrics(app.sessions, app.queue)
    api.state.shares = Shares.of(app.settings)
    api.state.played = OpenStreams(
        app.settings.streams_per_user,
        RateLimited("You are playing too many recordings at once. Stop some.", 10),
    )
    api.mount("/static", StaticFolder(), name="static")
    middleware.install(
        api,
        api.state.metrics,
        api.state.shares,
        _refuse_unrouted,
        Hosts(app.settings),
        safe_headers(app.settings),
    )
    api.openapi = openapi_document  # type: ignore[method-assign]
    return api


def _provider(settings: Settings) -> Provider | None:
    if not settings.oidc_issuer:
        return None
    from nexus.web.http.oidc import Provider  # noqa: PLC0415 slow to load, and few have an identity provider

    return Provider(settings)


def _refuse_unrouted(request: Request, error: ApiError, status: int) -> Response:
    """At an address that no route serves, a browser gets a page, and anyone else JSON."""
    wants_page = "text/html" in request.headers.get("accept", "")
    return (refuse_as_page if wants_page else refuse_in_envelope)(request, error, status)


@cache
def openapi_document() -> dict[str, Any]:
    """Describe every call; add what FastAPI can't know: the headers of all but the health ones, and 400 for 422.

    Made at the first request for it, because that takes longer than the rest of a start, and once for every
    application of this process, because all have the same routes.
    """
    routes = _routes()
    for route in routes:
        if isinstance(route, Route):
            route.document()
    document = FastAPI(**ABOUT, routes=routes).openapi()
    document["components"]["securitySchemes"] = {
        "bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
        "internal": {"type": "apiKey", "in": "header", "name": "X-Nexus-Internal"},
        "token": {"type": "http", "scheme": "bearer", "description": "A personal token."},
    }
    for calls in document["paths"].values():
        for call in calls.values():
            call["responses"].pop("422", None)
            call["security"] = (
                [] if call["tags"] == ["health"] else [{"bearer": [], "internal": []}, {"token": []}]
            )
    return document


def _routes() -> list[BaseRoute]:
    """Including the routers would make every route a second time."""
    return [route for router in ROUTERS for route in router.routes]
