"""The links of a store that Nexus serves itself. A link allows what its signature covers, and nothing else."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Annotated

import anyio.to_thread
from fastapi import Header, Query, Request, Response
from fastapi.responses import FileResponse
from starlette.requests import ClientDisconnect

from nexus.errors import Conflict, Forbidden, InvalidRequest, NotFound
from nexus.media.files import refusal
from nexus.storage import ROUTE, Arriving, Grant, LinkServer, ObjectExists, StorageError
from nexus.storage.names import disposition
from nexus.web.api.schemas import Done
from nexus.web.http.context import app_of
from nexus.web.http.envelope import answer
from nexus.web.http.files import UNTRUSTED
from nexus.web.http.routing import Router

router = Router(most_body=None, prefix=ROUTE, include_in_schema=False)  # a link says how long its file is

#: How much of an upload may wait to be written.
IN_FLIGHT = 4 * 1024 * 1024
Signature = Annotated[str, Query(max_length=128)]
Expires = Annotated[int, Query(ge=0, lt=2**40)]


@router.put("/{path:path}")
async def put_object(
    request: Request,
    path: str,
    expires: Expires,
    size: Annotated[int, Query(ge=1, lt=2**50)],
    signature: Signature,
    content_type: Annotated[str, Header()] = "",
) -> Response:
    store = _link_server(request)
    _require(store, Grant("PUT", path, expires, content_type, size), signature)
    if request.headers.get("content-length", str(size)) != str(size):
        raise InvalidRequest(f"This link takes a file of exactly {size} bytes.")
    try:
        await _store_whole(request, store.receive(path), size)
    except ObjectExists as error:
        raise Conflict("The file has already been uploaded. Confirm it, or start a new upload.") from error
    except StorageError as error:
        raise refusal(error) from error
    return answer(Done(done=True))


@router.get("/{path:path}")
def get_object(
    request: Request,
    path: str,
    expires: Expires,
    signature: Signature,
    content_type: Annotated[str, Query(alias="type", max_length=200)],
    filename: Annotated[str, Query(max_length=1000)],
) -> Response:
    store = _link_server(request)
    _require(store, Grant("GET", path, expires, content_type, filename=filename), signature)
    try:
        if store.head(path) is None:
            raise NotFound
    except StorageError as error:
        raise refusal(error) from error
    headers = {
        **UNTRUSTED,
        "Cache-Control": "no-store",
        "Content-Disposition": disposition(filename),
    }
    return FileResponse(store.locate(path), media_type=content_type, headers=headers)


async def _store_whole(request: Request, incoming: Arriving, size: int) -> None:
    await anyio.to_thread.run_sync(incoming.__enter__)
    try:
        if await _receive(request, incoming, size) != size:
            raise InvalidRequest(f"This link takes a file of exactly {size} bytes.")
        await anyio.to_thread.run_sync(incoming.publish)
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(incoming.__exit__)


async def _receive(request: Request, incoming: Arriving, most: int) -> int:
    """Write what has arrived while more arrives; no more than `IN_FLIGHT` is ever in memory. Return how much came."""
    loop = asyncio.get_running_loop()
    received, pieces = 0, deque[bytes]()
    writing = loop.run_in_executor(None, incoming.write_all, pieces)
    try:
        async for piece in request.stream():
            received += len(piece)
            if received > most:
                break
            pieces.append(piece)
            if received - incoming.written > IN_FLIGHT or writing.done():
                await writing
                writing = loop.run_in_executor(None, incoming.write_all, pieces)
    except ClientDisconnect as error:
        raise InvalidRequest("The upload broke off. Send the file again while the link is valid.") from error
    finally:
        await writing
    await loop.run_in_executor(None, incoming.write_all, pieces)
    return received


def _link_server(request: Request) -> LinkServer:
    server = app_of(request).files.storage.link_server
    if server is None:
        raise NotFound
    return server


def _require(store: LinkServer, grant: Grant, signature: str) -> None:
    if not store.allows(grant, signature):
        raise Forbidden("This link is not valid, or has expired. Ask for a new one.")
