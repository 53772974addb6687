"""Server-sent events: every transition that the viewer may see, and the progress of their import."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any
from uuid import UUID

import anyio.to_thread
from anyio import CapacityLimiter
from fastapi import Header, Request, Response
from fastapi.responses import StreamingResponse
from fastapi.sse import format_sse_event
from starlette.types import Receive, Scope, Send

from nexus import logging
from nexus.db.rows import HistoryRow
from nexus.db.session import Sessions
from nexus.errors import Conflict, RateLimited, Unauthorized
from nexus.imports.service import ImportDesk
from nexus.upkeep import events
from nexus.upkeep.events import News, NextEvents, StreamPlace
from nexus.web.api.imports import ImportOut
from nexus.web.api.schemas import EventOut
from nexus.web.http.context import AnyViewer, app_of, gate_of
from nexus.web.http.envelope import refusals
from nexus.web.http.request_shares import OpenStreams
from nexus.web.http.routing import Router

log = logging.get_logger(__name__)
router = Router(tags=["events"])

LOOK_SECONDS = 0.25
HEARTBEAT_SECONDS = 15.0
#: How often a stream makes sure that its reader is still signed in.
CHECK_SECONDS = 5.0
#: A stream ends after this long, and its reader reconnects: anyone who is signed out by then can't.
STREAM_SECONDS = 300.0
#: How many events may wait for a slow reader. A reader who is further behind gets theirs from the history.
MOST_WAITING = 1000
_STREAM: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}, "description": "A stream."}
}


class StreamedEvent(EventOut):
    """A transition, and whose it is."""

    media_id: UUID | None = None
    job_id: UUID | None = None
    story_id: UUID | None = None
    subscription_id: UUID | None = None


@dataclass(eq=False)
class EventReader:
    """One stream: where its reader is, and what waits for them."""

    viewer: UUID
    place: StreamPlace
    #: Up to here the reader looks for their events alone; what comes later is brought by the feed.
    until: StreamPlace
    waiting: deque[HistoryRow] = field(default_factory=deque)
    woken: asyncio.Event = field(default_factory=asyncio.Event)

    def bring(self, rows: list[HistoryRow], place: StreamPlace) -> None:
        """Take new events. If too many wait for a slow reader, remember only how far they go."""
        if len(self.waiting) + len(rows) > MOST_WAITING:
            self.waiting.clear()
            self.until = place
        else:
            self.waiting.extend(row for row in rows if StreamPlace.of(row) > self.place)
        if rows:
            self.woken.set()

    async def wait(self, seconds: float) -> None:
        """Return as soon as something may be new, or when the time is over."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.woken.wait(), seconds)
        self.woken.clear()


class Feed:
    """Looks at the database once for all streams of this process, and brings each its own."""

    def __init__(self, sessions: Sessions, per_user: int) -> None:
        self._sessions = sessions
        full = f"You follow events in {per_user} places already. Close one of them first."
        self.streams = OpenStreams(per_user, RateLimited(full, int(STREAM_SECONDS)))
        self._readers: set[EventReader] = set()
        #: Everything up to here has been brought to every reader.
        self.place = StreamPlace(0, 0)
        self.ending = False
        self._task: asyncio.Task[None] | None = None
        # Threads of their own: slow requests must not hold up the events.
        self._look_thread, self._read_threads = CapacityLimiter(1), CapacityLimiter(4)

    async def open(self, viewer: UUID, place: StreamPlace | None) -> EventReader:
        """Begin to bring a reader what is new after their place, or from now on."""
        newest = await anyio.to_thread.run_sync(self._newest, limiter=self._read_threads)
        if self._task is None:
            self.place = newest
            self._task = asyncio.create_task(self._look_for_ever())
        # A place beyond the newest is from a database that was replaced since: nothing would ever follow it.
        begin = newest if place is None else min(place, newest)
        reader = EventReader(viewer, begin, max(begin, self.place))
        self._readers.add(reader)
        return reader

    def close(self, reader: EventReader) -> None:
        self._readers.discard(reader)
        if not self._readers and self._task is not None:
            self._task.cancel()
            self._task = None

    def nudge(self) -> None:
        """Wake every stream: something that is not in the database has changed."""
        for reader in self._readers:
            reader.woken.set()

    def end(self) -> None:
        """End every stream, because the server stops. Readers reconnect to the next server."""
        self.ending = True
        self.nudge()

    async def next(self, reader: EventReader) -> list[HistoryRow]:
        """Return what the reader has not seen yet, or nothing for now, and move them on."""
        if reader.place < reader.until:
            passage = await anyio.to_thread.run_sync(
                self.read, reader.viewer, reader.place, reader.until, limiter=self._read_threads
            )
            reader.place = passage.place
            return passage.rows
        rows = list(reader.waiting)
        reader.waiting.clear()
        self.pass_on(reader)
        return rows

    def pass_on(self, reader: EventReader) -> None:
        """Move a reader for whom nothing waits past what others have seen meanwhile."""
        if not reader.waiting and reader.place >= reader.until:
            reader.place = max(reader.place, self.place)

    def read(self, viewer: UUID, place: StreamPlace, until: StreamPlace) -> NextEvents:
        with self._sessions.read() as session:
            return events.events_after(session, viewer, place, until)

    async def _look_for_ever(self) -> None:
        while True:
            asked, is_full = list(self._readers), False
            try:
                news = await anyio.to_thread.run_sync(
                    self._look, {reader.viewer for reader in asked}, self.place, limiter=self._look_thread
                )
            except Exception as error:
                log.warning("feed_stumbled", reason=type(error).__name__)
            else:
                is_full = news.is_full
                self._bring(asked, news)
            if not is_full:
                await asyncio.sleep(LOOK_SECONDS)

    def _bring(self, asked: list[EventReader], news: News) -> None:
        self.place = news.place
        for reader in self._readers.difference(asked):
            # They connected during the look, which did not include them.
            reader.until = max(reader.until, news.place)
            reader.woken.set()
        for reader in self._readers.intersection(asked):
            reader.bring(news.rows.get(reader.viewer, []), news.place)

    def _look(self, viewers: set[UUID], place: StreamPlace) -> News:
        with self._sessions.read() as session:
            return events.look(session, viewers, place)

    def _newest(self) -> StreamPlace:
        if self._task is None:
            with self._sessions.read() as session:  # a single statement, which commits itself
                if count := events.disown_restored(session):
                    log.warning("history_restored", rows=count)
        with self._sessions.read() as session:
            return events.newest_place(session)


class _Followed(StreamingResponse):
    """A stream that counts towards its user's limit until it ends, even if it never began."""

    def __init__(self, counted: ExitStack, content: AsyncIterator[bytes]) -> None:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(content, media_type="text/event-stream", headers=headers)
        self._counted = counted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._counted:
            await super().__call__(scope, receive, send)


@router.get(
    "/events",
    response_class=StreamingResponse,
    responses={**_STREAM, **refusals()},
    summary="Follow what happens",
)
async def follow(
    request: Request, viewer: AnyViewer, last_event_id: Annotated[str | None, Header(max_length=64)] = None
) -> Response:
    """Each event is one transition of an item or a subscription in your libraries, or of a job or story that you may
    see. Reconnect with Last-Event-ID and you miss nothing."""
    place = None if last_event_id is None else StreamPlace.parse(last_event_id)
    try:
        desk = app_of(request).imports.served(viewer)
    except Conflict:  # another process serves the imports
        desk = None
    feed: Feed = request.app.state.feed
    counted = ExitStack()
    counted.enter_context(feed.streams.place(viewer))
    return _Followed(counted, _stream(feed, viewer, place, desk, partial(_is_let_in, request)))


async def _stream(
    feed: Feed,
    viewer: UUID,
    place: StreamPlace | None,
    desk: ImportDesk | None,
    is_let_in: Callable[[], Awaitable[bool]],
) -> AsyncIterator[bytes]:
    reader = await feed.open(viewer, place)
    # A new reader is told the state of their import, if they have one.
    shown, shown_at = (desk.version if desk is not None and desk.is_blank else 0), 0.0
    try:
        # With an id, so that even a reader who has seen no event yet can reconnect without missing any.
        yield format_sse_event(event="hello", data_str="{}", id=str(reader.place), retry=1000)
        began = quiet_since = checked = time.monotonic()
        while not feed.ending and time.monotonic() - began < STREAM_SECONDS:
            if time.monotonic() - checked >= CHECK_SECONDS:
                if not await is_let_in():
                    return
                checked = time.monotonic()
            rows = await feed.next(reader)
            for row in rows:
                yield _as_event(row, viewer)
                quiet_since = time.monotonic()
            # The state of an import has no id: it is not in the history, and only its latest counts.
            if desk is not None and desk.version != shown and time.monotonic() - shown_at >= LOOK_SECONDS:
                shown, shown_at = desk.version, time.monotonic()
                yield await anyio.to_thread.run_sync(_import_event, desk)
            if not rows and reader.place >= reader.until:
                behind = desk is not None and desk.version != shown
                await reader.wait(
                    LOOK_SECONDS if behind else quiet_since + HEARTBEAT_SECONDS - time.monotonic()
                )
            # Proxies cut connections that stay silent. With an id, a reader who reconnects searches less.
            if time.monotonic() - quiet_since >= HEARTBEAT_SECONDS:
                feed.pass_on(reader)
                yield format_sse_event(comment="still here", id=str(reader.place))
                quiet_since = time.monotonic()
    finally:
        feed.close(reader)


async def _is_let_in(request: Request) -> bool:
    """Whether the reader could still open the stream: somebody may have signed out or revoked their token."""
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
        id=str(StreamPlace.of(row)),
    )
