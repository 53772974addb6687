"""The page with one button: choose files, put them in order, start, pause, go on. It works without scripts, too."""

from __future__ import annotations

import shutil
from typing import Annotated, Literal
from uuid import UUID, uuid4

import anyio.to_thread
from fastapi import APIRouter, Form, Query, Request, UploadFile
from fastapi.responses import Response

from nexus.app import App
from nexus.errors import ApiError, CancellationFailed, Conflict, FileTooLarge, InvalidRequest, NotReady
from nexus.imports.checking import most_bytes
from nexus.imports.service import Desk
from nexus.imports.staging import Batch
from nexus.imports.workspaces import WorkspaceFailed
from nexus.libraries import access, catalog
from nexus.media.uploads import safe_name
from nexus.states.attempt import Status
from nexus.states.media import Kind
from nexus.web.api import imports
from nexus.web.api.imports import NO_ROOM, OrderBody
from nexus.web.http.context import Nexus, PageViewer
from nexus.web.http.envelope import PAGE
from nexus.web.views import imports as import_looks
from nexus.web.views.render import go, page

router = APIRouter(prefix="/import", tags=[PAGE], include_in_schema=False)
#: What static/imports.js sends: its errors are JSON, to be shown in place.
quick = APIRouter(
    prefix="/import", tags=["page imports"], default_response_class=Response, include_in_schema=False
)

HOME = "/import"
Where = Annotated[str, Form(max_length=200)]


@router.get("")
def show(request: Request, nexus: Nexus, viewer: PageViewer) -> Response:
    return _page(request, nexus, viewer)


@router.post("/batch")
def open_batch(request: Request, nexus: Nexus, viewer: PageViewer, name: Where = "") -> Response:
    """Into the library of this name, or into the default one where none is given."""
    return _done(request, nexus, viewer, lambda desk, _: _retarget(nexus, viewer, desk, name))


@router.post("/files")
async def add_files(request: Request, nexus: Nexus, viewer: PageViewer, files: list[UploadFile]) -> Response:
    """As a form sends them. What is no book is named, and the others stay."""
    desk = nexus.imports.served(viewer)
    refused: list[str] = []
    for file in files:
        try:
            await anyio.to_thread.run_sync(_stage, nexus, viewer, desk, file)
        except ApiError as error:
            refused.append(f"{file.filename}: {error.message}")
    if refused:
        return await anyio.to_thread.run_sync(lambda: _page(request, nexus, viewer, " ".join(refused), 400))
    return go(HOME)


@router.post("/sources/{source_id}/remove")
def remove(request: Request, nexus: Nexus, viewer: PageViewer, source_id: UUID) -> Response:
    return _done(request, nexus, viewer, lambda desk, batch: desk.staging.remove(batch.id, source_id))


@router.post("/sources/{source_id}/move")
def move(
    request: Request, nexus: Nexus, viewer: PageViewer, source_id: UUID, by: Literal["up", "down"]
) -> Response:
    def swap(desk: Desk, batch: Batch) -> None:
        order = [source.id for source in batch.sources]
        at = order.index(batch.source(source_id).id)
        other = at - 1 if by == "up" else at + 1
        if 0 <= other < len(order):
            order[at], order[other] = order[other], order[at]
            desk.staging.reorder(batch.id, order)

    return _done(request, nexus, viewer, swap, f"{HOME}#source-{source_id}")


@router.post("/start")
def start(request: Request, nexus: Nexus, viewer: PageViewer, name: Where = "") -> Response:
    """Into the library of this name where one is given, and where the page says otherwise."""

    def begin(desk: Desk, batch: Batch) -> None:
        if name:
            _retarget(nexus, viewer, desk, name)
        desk.start(batch.id)

    return _done(request, nexus, viewer, begin)


@router.post("/pause")
def pause(request: Request, nexus: Nexus, viewer: PageViewer) -> Response:
    return _done(request, nexus, viewer, lambda desk, _: desk.pause())


@router.post("/resume")
def resume(request: Request, nexus: Nexus, viewer: PageViewer) -> Response:
    return _done(request, nexus, viewer, lambda desk, _: desk.resume())


@router.post("/discard")
def discard(request: Request, nexus: Nexus, viewer: PageViewer) -> Response:
    return _done(request, nexus, viewer, lambda desk, batch: desk.staging.discard(batch.id))


@quick.post("/sources")
async def add_source(
    request: Request,
    nexus: Nexus,
    viewer: PageViewer,
    name: Annotated[str, Query(max_length=1000)],
) -> Response:
    batch = await anyio.to_thread.run_sync(lambda: _batch(nexus, viewer, nexus.imports.served(viewer)))
    return await imports.add_source(request, nexus, viewer, batch.id, name)


@quick.put("/order")
def reorder(nexus: Nexus, viewer: PageViewer, body: OrderBody) -> Response:
    batch = _batch(nexus, viewer, nexus.imports.served(viewer))
    return imports.reorder(nexus, viewer, batch.id, body)


def _retarget(nexus: App, viewer: UUID, desk: Desk, name: str) -> None:
    with nexus.sessions.begin() as session:
        default = access.ensure_user(session, viewer)
        library_id = catalog.named(session, viewer, name) if name.strip() else default
    desk.staging.retarget(library_id, None if library_id else catalog.proper_name(name))


def _batch(nexus: App, viewer: UUID, desk: Desk) -> Batch:
    """The one that the page shows: the last that was opened; at first that of the default library."""
    found = desk.staging.latest()
    if found is not None:
        return found
    with nexus.sessions.begin() as session:
        default = access.ensure_user(session, viewer)
    return desk.staging.open(default, None)


def _done(request: Request, nexus: App, viewer: UUID, act: import_looks.Act, there: str = HOME) -> Response:
    """A refusal stays on the page."""
    desk = nexus.imports.served(viewer)
    try:
        act(desk, _batch(nexus, viewer, desk))
    except (CancellationFailed, Conflict, InvalidRequest) as error:
        return _page(request, nexus, viewer, error.message, error.status)
    except WorkspaceFailed:
        return _page(request, nexus, viewer, "There is no room to work in. Free some disk space.", 503)
    return go(there)


def _stage(nexus: App, viewer: UUID, desk: Desk, file: UploadFile) -> None:
    batch = _batch(nexus, viewer, desk)
    desk.staging.require_open(batch.id)
    most = max(most_bytes(nexus.files, kind) for kind in (Kind.PDF, Kind.EPUB))
    if (file.size or 0) > most:
        raise FileTooLarge(f"This file is larger than {most // 2**20} MiB. Nexus can't take it in.")
    try:
        path = nexus.imports.room() / uuid4().hex
        try:
            with path.open("wb") as copy:
                shutil.copyfileobj(file.file, copy)
            desk.staging.add(batch.id, safe_name(file.filename or ""), path, ours=True)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
    except (WorkspaceFailed, OSError) as error:
        raise NotReady(NO_ROOM) from error


def _page(request: Request, nexus: App, viewer: UUID, said: str = "", status: int = 200) -> Response:
    desk = nexus.imports.served(viewer)
    # Before the files are looked at: what changes meanwhile is shown again, and what has just been imported is not
    # shown as if it waited.
    version, state = desk.version, desk.state
    batch = _batch(nexus, viewer, desk)
    with nexus.sessions.read() as session:
        names = {row.id: row.name for row in catalog.mine(session, viewer)}
    look = import_looks.look(desk, batch, names, version, state)
    return page(
        request,
        "import.html",
        status,
        look=look,
        running=look.status in {Status.RUNNING, Status.STOPPING},
        said=said,
    )
