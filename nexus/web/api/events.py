"""Server-sent events: every transition that the viewer may see, and the progress of their import."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Annotated, Any
from uuid import UUID

import anyio.to_thread
from fastapi import Header, Request
from fastapi.responses import StreamingResponse
from fastapi.sse import format_sse_event

from nexus import logging
from nexus.db.rows import HistoryRow
from nexus.db.session import Sessions
from nexus.errors import Conflict, Unauthorized
from nexus.imports.service import ImportDesk
from nexus.upkeep import events
from nexus.upkeep.events import StreamPlace
from nexus.web.api.imports import ImportOut
from nexus.web.api.schemas import EventOut
from nexus.web.http.context import AnyViewer, app_of, gate_of
from nexus.web.http.envelope import refusals
from nexus.web.http.routing import Router

log = logging.get(__name__)
router = Router(tags=["events"])

LOOK_SECONDS = 0.25
HEARTBEAT_SECONDS = 15.0
#: How often a stream makes sure that its reader is still signed in.
CHECK_SECONDS = 5.0
#: A stream ends after this long, and its reader reconnects: anyone who is signed out by then can't.
STREAM_SECONDS = 300.0
_STREAM: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}, "description": "A stream."}
}


class StreamedEvent(EventOut):
    """A transition, and whose it is."""

    media_id: UUID | None = None
    job_id: UUID | None = None
    story_id: UUID | None = None


class Feed:
    """Looks at the database once for all streams of this process; a stream reads only when something is new."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._newest = StreamPlace(0, 0)
        # Set once and then replaced. A condition's lock would break when a waiting connection is cut.
        self._news = asyncio.Event()
        self._readers = 0
        self.ending = False
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> StreamPlace:
        """Count a reader in, and return the newest place of the stream."""
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
        """Wake every stream: something that is not in the database has changed."""
        told, self._news = self._news, asyncio.Event()
        told.set()

    def end(self) -> None:
        """End every stream, because the server stops. Readers reconnect to the next server."""
        self.ending = True
        self._news.set()

    async def wait(self, seen: StreamPlace, seconds: float) -> StreamPlace:
        """Return the newest place as soon as it differs from the one seen, or after so many seconds."""
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

    def read(self, viewer: UUID, place: StreamPlace) -> list[HistoryRow]:
        with self._sessions.read() as session:
            return events.events_after(session, viewer, place)

    def _last(self) -> StreamPlace:
        with self._sessions.read() as session:
            return events.newest_place(session)


@router.get(
    "/events",
    response_class=StreamingResponse,
    responses={**_STREAM, **refusals()},
    summary="Follow what happens",
)
async def follow(
    request: Request, viewer: AnyViewer, last_event_id: Annotated[str | None, Header(max_length=64)] = None
) -> StreamingResponse:
    """Each event is one transition of an item in your libraries, or of a job or story that you may see. Reconnect with
    Last-Event-ID and you miss nothing."""
    place = None if last_event_id is None else StreamPlace.parse(last_event_id)
    try:
        desk = app_of(request).imports.served(viewer)
    except Conflict:  # another process serves the imports
        desk = None
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    stream = _stream(request.app.state.feed, viewer, place, desk, partial(_is_let_in, request))
    return StreamingResponse(stream, media_type="text/event-stream", headers=headers)


async def _stream(
    feed: Feed,
    viewer: UUID,
    place: StreamPlace | None,
    desk: ImportDesk | None,
    is_let_in: Callable[[], Awaitable[bool]],
) -> AsyncIterator[bytes]:
    newest = await feed.open()
    # A new reader is told the state of their import, if they have one.
    shown, shown_at = (desk.version if desk is not None and desk.is_blank else 0), 0.0
    try:
        # A place beyond the newest is from a database that was replaced since: nothing would ever follow it.
        place = newest if place is None else min(place, newest)
        # With an id, so that even a reader who has seen no event yet can reconnect without missing any.
        yield format_sse_event(event="hello", data_str="{}", id=str(place), retry=1000)
        began = quiet_since = checked = time.monotonic()
        is_news = True  # the progress of an import wakes every stream, and most have nothing to read then
        while not feed.ending and time.monotonic() - began < STREAM_SECONDS:
            if time.monotonic() - checked >= CHECK_SECONDS:
                if not await is_let_in():
                    return
                checked = time.monotonic()
            rows = await anyio.to_thread.run_sync(feed.read, viewer, place) if is_news else []
            for row in rows:
                place = StreamPlace(row.tx, row.id)
                yield _as_event(row, viewer)
                quiet_since = time.monotonic()
            # The state of an import has no id: it is not in the history, and only its latest counts.
            if desk is not None and desk.version != shown and time.monotonic() - shown_at >= LOOK_SECONDS:
                shown, shown_at = desk.version, time.monotonic()
                yield await anyio.to_thread.run_sync(_import_event, desk)
            if len(rows) < events.BATCH:
                behind = desk is not None and desk.version != shown
                rest = LOOK_SECONDS if behind else quiet_since + HEARTBEAT_SECONDS - time.monotonic()
                seen, newest = newest, await feed.wait(newest, rest)
                is_news = newest != seen
            # Also while there is news for others only: proxies cut connections that stay silent.
            if time.monotonic() - quiet_since >= HEARTBEAT_SECONDS:
                yield format_sse_event(comment="still here")
                quiet_since = time.monotonic()
    finally:
        await feed.close()


async def _is_let_in(request: Request) -> bool:
    """Whether the reader could still open the stream: somebody may have signed out or taken their token back."""
    try:
        await gate_of(request).by_either(request)
    except Unauthorized:
        return False
    return True


def _import_event(desk: ImportDesk) -> bytes:
    """Runs in a thread: there may be thousands of files."""
    return format_sse_event(event="import", data_str=ImportOut.of(desk).model_dump_json())


def _as_event(row: HistoryRow, viewer: UUID) -> bytes:
    event = StreamedEvent.of(row, viewer).model_copy(update={f"{row.subject}_id": row.subject_id})
    return format_sse_event(
        event=row.subject,
        data_str=event.model_dump_json(exclude_unset=True),
        id=str(StreamPlace(row.tx, row.id)),
    )
