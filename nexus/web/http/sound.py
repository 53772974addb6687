"""Recordings over HTTP: whole or in part, as browsers ask for them to play and to jump."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from uuid import UUID

from fastapi import Request, Response
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from nexus.app import App
from nexus.fetch.ranges import parse_range
from nexus.media.recordings.sound import Sound, find_sound, open_sound
from nexus.web.http.files import UNTRUSTED
from nexus.web.http.request_shares import OpenStreams
from nexus.web.http.threads import taken_in_turn, threads_of


class _ClosedAtEnd(StreamingResponse):
    """Lets go of what it reads from as soon as its reader is gone, and does not wait to be collected."""

    def __init__(self, close: Callable[[], None], *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._close = close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._close()


def sound_response(request: Request, nexus: App, viewer: UUID, media_id: UUID) -> Response:
    """Answer with the recording of an item, or with the part that the request asks for.

    Each holds a connection to a site and some memory, so a user plays only so many at once.
    """
    asked = parse_range(request.headers.get("range"))
    with nexus.sessions.read() as session:
        place = find_sound(session, media_id, viewer)
    played: OpenStreams = request.app.state.played
    with ExitStack() as opened:
        opened.enter_context(played.place(viewer))
        sound = open_sound(nexus.tools.fetcher, nexus.files, place, asked)
        opened.callback(sound.pieces.close)
        headers = _headers(sound)
        if sound.is_out_of_range:
            return Response(status_code=416, headers=headers)
        return _ClosedAtEnd(
            opened.pop_all().close,
            taken_in_turn(threads_of(request).site.of(viewer), sound.pieces),
            status_code=200 if sound.part is None else 206,
            headers=headers,
            media_type=sound.content_type,
        )


def _headers(sound: Sound) -> dict[str, str]:
    headers = {
        **UNTRUSTED,
        "Cache-Control": "no-store",
        "Content-Disposition": "inline",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Accept-Ranges": "bytes" if sound.takes_ranges else "none",
    }
    if sound.length is not None:
        headers["Content-Length"] = str(sound.length)
    if sound.part is not None:
        headers["Content-Range"] = sound.part.header
    elif sound.is_out_of_range:
        headers["Content-Range"] = f"bytes */{'*' if sound.size is None else sound.size}"
    return headers
