"""Imports: files are staged, put in order and imported at once; the attempt is started, paused and resumed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal
from uuid import UUID, uuid4

import anyio.to_thread
from fastapi import APIRouter, Query, Request, Response
from pydantic import Field
from starlette.requests import ClientDisconnect

from nexus.errors import FileTooLarge, InvalidRequest, NotReady
from nexus.imports.checking import most_bytes
from nexus.imports.progress import Line, new_line
from nexus.imports.service import Desk
from nexus.imports.staging import MOST_SOURCES, Batch, Source
from nexus.imports.workspaces import WorkspaceFailed
from nexus.libraries import access, catalog
from nexus.media.uploads import safe_name
from nexus.states.media import Kind
from nexus.web.api.schemas import Answer, Body, Data
from nexus.web.http.context import Nexus, Viewer, answers
from nexus.web.http.envelope import answer
from nexus.web.http.routing import Route

router = APIRouter(route_class=Route, prefix="/imports", tags=["imports"], default_response_class=Response)

#: How much of a file is written at a time.
PIECE = 1024 * 1024
NO_ROOM = "There is no room for files. Free some disk space, then try again."


FileName = Annotated[str, Query(max_length=1000, examples=["book.epub"])]


class BatchBody(Body):
    """Into a library by its id, or into yours of this name, which is made with the import where there is none."""

    library_id: UUID | None = None
    name: str | None = Field(None, max_length=200, examples=["Research"])


class OrderBody(Body):
    source_ids: list[UUID] = Field(max_length=MOST_SOURCES)


class SourceOut(Answer):
    id: UUID
    name: str = Field(examples=["book.epub"])
    kind: str = Field(examples=["epub"])
    size: int
    outcome: str = Field(examples=["parsed"])
    code: str | None
    message: str | None


class BatchOut(Answer):
    id: UUID
    library_id: UUID | None
    name: str | None
    sources: list[SourceOut]


class TroubleOut(Answer):
    code: str = Field(examples=["E_INTERNAL"])
    message: str


class ImportOut(Answer):
    status: Literal["IDLE", "RUNNING", "STOPPING", "PAUSED", "COMPLETE"]
    phase: str = Field(examples=["parsing"])
    attempt_id: UUID | None
    batch_id: UUID | None = Field(description="What the attempt works on.")
    share: float = Field(description="How much of it is done, from 0 to 1.")
    library_id: UUID | None = Field(description="Where the last import went.")
    error: TroubleOut | None = Field(description="What stopped all of it, where that is no file's fault.")
    batches: list[BatchOut]
    lines: list[SourceOut] = Field(description="The files of the last attempt, as they ended.")


class LeaveOut(Answer):
    safe: bool
    should_warn: bool
    would_discard: bool


@router.get("", responses=answers(Data[ImportOut], 409), summary="How the import is doing")
def get_import(nexus: Nexus, viewer: Viewer) -> Response:
    return _shown(nexus.imports.served(viewer))


@router.post("/batches", responses=answers(Data[BatchOut], 403, 404, 409, 413), summary="Open a batch")
def open_batch(nexus: Nexus, viewer: Viewer, body: BatchBody) -> Response:
    """The same one however often it is asked for. Without a library or a name it is your default library's."""
    if body.library_id is not None and body.name is not None:
        raise InvalidRequest("Give a library_id or a name, not both.")
    name = None if body.name is None else catalog.proper_name(body.name)
    desk = nexus.imports.served(viewer)
    with nexus.sessions.begin() as session:
        default = access.ensure_user(session, viewer)
        library_id = body.library_id or (default if name is None else None)
        if library_id is not None:
            access.require_admin(session, library_id, viewer)
    return answer(_batch(desk, desk.staging.open(library_id, name)))


@router.post(
    "/batches/{batch_id}/sources", responses=answers(Data[SourceOut], 404, 409, 413), summary="Stage a file"
)
async def add_source(
    request: Request, nexus: Nexus, viewer: Viewer, batch_id: UUID, name: FileName
) -> Response:
    """The body is the file itself. A PDF, an EPUB or a text, by its name and by what is in it."""
    desk = nexus.imports.served(viewer)

    def add(path: Path) -> Source:
        return desk.staging.add(batch_id, safe_name(name), path, ours=True)

    return await _staged(request, nexus, desk, batch_id, add)


@router.put(
    "/batches/{batch_id}/sources/{source_id}",
    responses=answers(Data[SourceOut], 404, 409, 413),
    summary="Put another file in the place of one",
)
async def replace_source(
    request: Request, nexus: Nexus, viewer: Viewer, batch_id: UUID, source_id: UUID, name: FileName
) -> Response:
    """The body is the file itself. It has an id of its own."""
    desk = nexus.imports.served(viewer)

    def replace(path: Path) -> Source:
        return desk.staging.replace(batch_id, source_id, safe_name(name), path, ours=True)

    return await _staged(request, nexus, desk, batch_id, replace)


@router.delete(
    "/batches/{batch_id}/sources/{source_id}",
    responses=answers(Data[ImportOut], 404, 409),
    summary="Take a file out",
)
def remove_source(nexus: Nexus, viewer: Viewer, batch_id: UUID, source_id: UUID) -> Response:
    desk = nexus.imports.served(viewer)
    desk.staging.remove(batch_id, source_id)
    return _shown(desk)


@router.put(
    "/batches/{batch_id}/order",
    responses=answers(Data[BatchOut], 404, 409, 413),
    summary="Put the files in order",
)
def reorder(nexus: Nexus, viewer: Viewer, batch_id: UUID, body: OrderBody) -> Response:
    """The id of every file, once."""
    desk = nexus.imports.served(viewer)
    return answer(_batch(desk, desk.staging.reorder(batch_id, body.source_ids)))


@router.post(
    "/batches/{batch_id}/start", responses=answers(Data[ImportOut], 404, 409), summary="Start the import"
)
def start(nexus: Nexus, viewer: Viewer, batch_id: UUID) -> Response:
    desk = nexus.imports.served(viewer)
    try:
        desk.start(batch_id)
    except WorkspaceFailed as error:
        raise NotReady("There is no room to work in. Free some disk space, then start again.") from error
    return _shown(desk)


@router.post("/attempt/pause", responses=answers(Data[ImportOut], 409), summary="Pause the import")
def pause(nexus: Nexus, viewer: Viewer) -> Response:
    """STOPPING until what is under way has ended; then PAUSED, or IDLE if everything was committed before. An import
    that can't be told to stop is still RUNNING: `E_CANCELLATION_FAILED`."""
    desk = nexus.imports.served(viewer)
    desk.pause()
    return _shown(desk)


@router.post("/attempt/resume", responses=answers(Data[ImportOut], 409), summary="Go on with the import")
def resume(nexus: Nexus, viewer: Viewer) -> Response:
    desk = nexus.imports.served(viewer)
    desk.resume()
    return _shown(desk)


@router.delete("/batches/{batch_id}", responses=answers(Data[ImportOut], 404, 409), summary="Discard a batch")
def discard(nexus: Nexus, viewer: Viewer, batch_id: UUID) -> Response:
    """And the attempt that is paused on it."""
    desk = nexus.imports.served(viewer)
    desk.staging.discard(batch_id)
    return _shown(desk)


@router.get(
    "/batches/{batch_id}/leave",
    responses=answers(Data[LeaveOut], 404, 409),
    summary="Ask what would be lost by going away",
)
def leave(nexus: Nexus, viewer: Viewer, batch_id: UUID) -> Response:
    return answer(vars(nexus.imports.served(viewer).leave(batch_id)))


def snapshot(desk: Desk) -> dict[str, Any]:
    """All that there is to show."""
    state, trouble = desk.state, desk.trouble
    return {
        "status": state.status.value,
        "phase": state.phase.value,
        "attempt_id": state.attempt_id and str(state.attempt_id),
        "batch_id": desk.staging.active and str(desk.staging.active),
        "share": round(desk.share, 3),
        "library_id": desk.library_id and str(desk.library_id),
        "batches": [_batch(desk, batch) for batch in desk.staging.all()],
        "error": trouble and vars(trouble),
        "lines": [_line(line) for line in desk.ended],
    }


def _line(line: Line) -> dict[str, Any]:
    return {
        "id": str(line.source_id),
        "name": line.name,
        "kind": line.kind.value,
        "size": line.size,
        "outcome": line.outcome.value,
        "code": line.code,
        "message": line.message,
    }


def _shown(desk: Desk) -> Response:
    return answer(snapshot(desk))


def _batch(desk: Desk, batch: Batch) -> dict[str, Any]:
    return {
        "id": str(batch.id),
        "library_id": batch.library_id and str(batch.library_id),
        "name": batch.name,
        "sources": _sources(desk, batch),
    }


def _sources(desk: Desk, batch: Batch) -> list[dict[str, Any]]:
    active = desk.staging.active == batch.id
    known = {line.source_id: line for line in desk.progress.lines()} if active else {}
    return [_line(known.get(source.id) or new_line(source)) for source in batch.sources]


async def _staged(
    request: Request, nexus: Nexus, desk: Desk, batch_id: UUID, stage: Callable[[Path], Source]
) -> Response:
    """What comes in is staged; what is refused is not kept."""
    if request.headers.get("content-type", "").startswith("multipart/"):
        raise InvalidRequest("Send the file itself as the body, not a form with the file in it.")
    await anyio.to_thread.run_sync(desk.staging.require_open, batch_id)
    try:
        path = await anyio.to_thread.run_sync(nexus.imports.room) / uuid4().hex
        try:
            most = max(most_bytes(nexus.files, kind) for kind in (Kind.PDF, Kind.EPUB))
            await _receive(request, path, most)
            source = await anyio.to_thread.run_sync(stage, path)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
    except (WorkspaceFailed, OSError) as error:
        raise NotReady(NO_ROOM) from error
    return answer(_line(new_line(source)))


async def _receive(request: Request, path: Path, most: int) -> None:
    """To disk as it comes, a piece at a time."""
    received = 0
    loop = asyncio.get_running_loop()
    with path.open("wb") as file:
        held = bytearray()
        try:
            async for piece in request.stream():
                received += len(piece)
                if received > most:
                    raise FileTooLarge(
                        f"This file is larger than {most // 2**20} MiB. Nexus can't take it in."
                    )
                held += piece
                if len(held) >= PIECE:
                    await loop.run_in_executor(None, file.write, bytes(held))
                    held.clear()
        except ClientDisconnect as error:
            raise InvalidRequest("The file broke off. Send it again.") from error
        await loop.run_in_executor(None, file.write, bytes(held))
    if not received:
        raise InvalidRequest("An empty file can't be imported.")
