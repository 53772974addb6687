"""Users' files over HTTP: received a piece at a time, and never run by the browser that shows them."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable
from functools import partial
from pathlib import Path
from uuid import UUID

from fastapi import Request, Response
from fastapi.responses import StreamingResponse
from starlette.requests import ClientDisconnect

from nexus.errors import FileTooLarge, InvalidRequest
from nexus.media import reader
from nexus.media.files import Files
from nexus.media.reader import Picture
from nexus.web.http.threads import RunInTurn, taken_in_turn, threads_of

#: How much of a file is written at a time.
PIECE = 1024 * 1024
#: For answers that hold a user's bytes: no guessing of their type, no scripts, no access to anything.
UNTRUSTED = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": (
        "default-src 'none'; base-uri 'none'; frame-ancestors 'none'; object-src 'none'; sandbox"
    ),
}


def picture_response(request: Request, viewer: UUID, files: Files, found: Picture) -> Response:
    """A picture in a text. Other sites may not show it: what they can show, they can tell who has it."""
    pieces = taken_in_turn(threads_of(request).store.of(viewer), reader.picture_bytes(files, found))
    headers = {
        **UNTRUSTED,
        "Cache-Control": "no-store",
        "Content-Length": str(found.size_bytes),
        "Cross-Origin-Resource-Policy": "same-origin",
    }
    return StreamingResponse(pieces, headers=headers, media_type=found.content_type)


async def receive_file(
    pieces: AsyncIterable[bytes], path: Path, most: int, run: RunInTurn, count: Callable[[int], None]
) -> None:
    """Write a file as it comes in, and count its pieces.

    Raises FileTooLarge, InvalidRequest for one that breaks off or is empty, and what counting raises.
    """
    received = 0
    with path.open("wb") as file:
        held = bytearray()
        try:
            async for piece in pieces:
                received += len(piece)
                if received > most:
                    raise FileTooLarge(f"This file is larger than {most // 2**20} MiB. Nexus can't add it.")
                count(len(piece))
                held += piece
                if len(held) >= PIECE:
                    await run(partial(file.write, bytes(held)))
                    held.clear()
        except ClientDisconnect as error:
            raise InvalidRequest(
                "The connection broke off before the file was complete. Send it again."
            ) from error
        await run(partial(file.write, bytes(held)))
    if not received:
        raise InvalidRequest("An empty file can't be imported.")
