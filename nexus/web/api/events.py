"""Server-sent events of the transitions that the viewer may see."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Annotated, Any
from uuid import UUID

import anyio.to_thread
from fastapi import APIRouter, Header, Request
from fastapi.responses import StreamingResponse

from nexus import logging
from nexus.db.session import Row, Sessions
from nexus.errors import Conflict
from nexus.imports.service import Desk
from nexus.upkeep import events
from nexus.upkeep.events import Place
from nexus.web.api import imports
from nexus.web.api.schemas import event_json
from nexus.web.http.context import AnyViewer, app_of, refusals
from nexus.web.http.routing import Route

log = logging.get(__name__)
router = APIRouter(route_class=Route, tags=["events"])

LOOK_SECONDS = 0.25
HEARTBEAT_SECONDS = 15.0
#: A stream ends now and then, so that who is not signed in any more does not stay: others come back by themselves.
STREAM_SECONDS = 300.0
_STREAM: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}, "description": "A stream."}
}


class Feed:
    """One look at the database for all streams of this process; a stream reads only when something is new."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._newest = Place(0, 0)
        # Set once and then replaced; a lock would break when the connection of who waits for it is cut.
        self._news = asyncio.Event()
        self._readers = 0
        self.ending = False
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> Place:
        """Count a reader in; the newest place that everybody could have seen by now."""
        newest = await anyio.to_thread.run_sync(self._last)
        self._readers += 1
        if self._task is None:
            self._task = asyncio.create_task(self._look_for_ever())
        return newest

    async def close(self) -> None:
        self._readers -= 1
        if self._readers == 0 and self._task is not None:
            self._task.cancel()
            self._task = None

    def nudge(self) -> None:
        """Something that is not in the database has changed: every stream looks."""
        told, self._news = self._news, asyncio.Event()
        told.set()

    def end(self) -> None:
        """The server stops: every stream ends, and its reader comes back to the next server."""
        self.ending = True
        self._news.set()

    async def wait(self, seen: Place, seconds: float) -> Place:
        """The newest place, as soon as it differs from the one seen, or after a while."""
        if self._newest == seen:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), seconds)
        return self._newest

    async def _look_for_ever(self) -> None:
        while True:
            try:
                newest = await anyio.to_thread.run_sync(self._last)
            except Exception as error:
                log.warning("feed_stumbled", reason=type(error).__name__)
            else:
                if newest != self._newest:
                    told, self._newest, self._news = self._news, newest, asyncio.Event()
                    told.set()
            await asyncio.sleep(LOOK_SECONDS)

    def read(self, viewer: UUID, place: Place) -> list[Row]:
        with self._sessions.read() as session:
            return events.after(session, viewer, place)

    def _last(self) -> Place:
        with self._sessions.read() as session:
            return events.last(session)


@router.get(
    "/events",
    response_class=StreamingResponse,
    responses={**_STREAM, **refusals()},
    summary="Follow what happens",
)
async def follow(
    request: Request, viewer: AnyViewer, last_event_id: Annotated[str | None, Header(max_length=64)] = None
) -> StreamingResponse:
    """Each event is one transition of a media in your libraries, or of a job or story that you may see. Reconnect with
    Last-Event-ID and nothing is lost."""
    place = None if last_event_id is None else Place.parse(last_event_id)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(
        stream(request.app.state.feed, viewer, place, _import_of(request, viewer)),
        media_type="text/event-stream",
        headers=headers,
    )


def _import_of(request: Request, viewer: UUID) -> Desk | None:
    """None where another process has the imports."""
    try:
        return app_of(request).imports.served(viewer)
    except Conflict:
        return None


async def stream(
    feed: Feed, viewer: UUID, place: Place | None, desk: Desk | None = None
) -> AsyncIterator[str]:
    newest = await feed.open()
    # Who comes new is told how his import is, if he has one.
    shown, shown_at = (desk.version if desk is not None and desk.is_blank else 0), 0.0
    try:
        # A place beyond the newest is from before the database was replaced: it would wait for ever.
        place = newest if place is None else min(place, newest)
        # An id at once, so that even a reader who has seen no event yet knows where to go on.
        yield f"retry: 1000\nid: {place}\nevent: hello\ndata: {{}}\n\n"
        began = quiet_since = time.monotonic()
        is_news = True  # progress of imports wakes every stream, often, and most have nothing to read then
        while not feed.ending and time.monotonic() - began < STREAM_SECONDS:
            rows = await anyio.to_thread.run_sync(feed.read, viewer, place) if is_news else []
            for row in rows:
                place = Place(row.tx, row.id)
                yield _as_event(row, viewer)
                quiet_since = time.monotonic()
            # What an import is like now, without an id: it is not in the history, and only the last of it counts.
            if desk is not None and desk.version != shown and time.monotonic() - shown_at >= LOOK_SECONDS:
                shown, shown_at = desk.version, time.monotonic()
                yield await anyio.to_thread.run_sync(_import_event, desk)
            if len(rows) < events.BATCH:
                behind = desk is not None and desk.version != shown
                rest = LOOK_SECONDS if behind else quiet_since + HEARTBEAT_SECONDS - time.monotonic()
                seen, newest = newest, await feed.wait(newest, rest)
                is_news = newest != seen
            # News of others are none to this reader: he is told that the stream lives all the same.
            if time.monotonic() - quiet_since >= HEARTBEAT_SECONDS:
                yield ": still here\n\n"
                quiet_since = time.monotonic()
    finally:
        await feed.close()


def _import_event(desk: Desk) -> str:
    """Thousands of lines, maybe: not for the loop that serves everybody."""
    return f"event: import\ndata: {json.dumps(imports.snapshot(desk))}\n\n"


def _as_event(row: Row, viewer: UUID) -> str:
    data = {f"{row.subject}_id": str(row.subject_id), **event_json(row, viewer)}
    return f"id: {Place(row.tx, row.id)}\nevent: {row.subject}\ndata: {json.dumps(data)}\n\n"
