"""The page with one button: choose files, put them in order, start, pause, resume. It works without scripts, too."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Annotated, Literal
from uuid import UUID

from fastapi import Form, Query, Request, UploadFile
from fastapi.responses import Response

from nexus.app import App
from nexus.errors import ApiError, CancellationFailed, Conflict, InvalidRequest, NotReady
from nexus.imports import targets
from nexus.imports.service import ImportDesk
from nexus.imports.staging import Batch
from nexus.libraries import catalog
from nexus.libraries.access import Role
from nexus.states.attempt import AttemptStatus
from nexus.web.api import imports
from nexus.web.api.imports import OrderBody
from nexus.web.http.context import Nexus, PageViewer
from nexus.web.http.files import PIECE
from nexus.web.http.forms import posted_files
from nexus.web.http.routing import Router
from nexus.web.http.threads import threads_of
from nexus.web.views.imports import show_import
from nexus.web.views.lists import ItemList
from nexus.web.views.render import go, page, page_router

router = page_router(prefix="/import")
#: What the page's form sends: whole files.
form = page_router(most_body=None, prefix="/import")
#: What static/imports.js sends. Errors are JSON, shown in place.
script = Router(prefix="/import", include_in_schema=False)
script_files = Router(most_body=None, prefix="/import", include_in_schema=False)

HOME = "/import"
LibraryName = Annotated[str, Form(max_length=200)]
#: An id, or empty for a new library: what a drop-down sends.
LibraryId = Annotated[str, Form(max_length=50)]


@router.get("")
def import_page(request: Request, nexus: Nexus, viewer: PageViewer) -> Response:
    return _import_page(request, nexus, viewer)


@router.post("/batch")
def import_target(
    request: Request, nexus: Nexus, viewer: PageViewer, library: LibraryId = "", name: LibraryName = ""
) -> Response:
    """Import into this library, or without one into that of this name, or without a name into the default one."""
    chosen = ItemList.asked({"library": library}).library
    return _act(
        request,
        nexus,
        viewer,
        lambda desk, _: targets.retarget_batch(nexus.sessions, desk, viewer, chosen, name),
    )


@form.post("/files")
async def import_add_files(request: Request, nexus: Nexus, viewer: PageViewer) -> Response:
    """Unsupported files are listed, and the others are staged."""
    desk, run = nexus.imports.served(viewer), threads_of(request).quick.of(viewer)
    batch = await run(partial(targets.current_batch, nexus.sessions, desk, viewer))
    refused: list[str] = []
    with desk.staging.copied.arriving() as count:
        async with posted_files(request, "files", imports.largest_file(nexus), count) as files:
            for file in files:
                try:
                    await imports.stage_file(nexus, run, desk, batch.id, file.filename or "", _pieces(file))
                except ApiError as error:
                    refused.append(f"{file.filename}: {error.message}")
    if refused:
        return await run(partial(_import_page, request, nexus, viewer, " ".join(refused), 400))
    return go(HOME)


@router.post("/sources/{source_id}/remove")
def import_remove(request: Request, nexus: Nexus, viewer: PageViewer, source_id: UUID) -> Response:
    return _act(request, nexus, viewer, lambda desk, batch: desk.staging.remove(batch.id, source_id))


@router.post("/sources/{source_id}/move")
def import_move(
    request: Request, nexus: Nexus, viewer: PageViewer, source_id: UUID, by: Literal["up", "down"]
) -> Response:
    places = -1 if by == "up" else 1
    return _act(
        request,
        nexus,
        viewer,
        lambda desk, batch: desk.staging.move(batch.id, source_id, places),
        f"{HOME}#source-{source_id}",
    )


@router.post("/start")
def import_start(request: Request, nexus: Nexus, viewer: PageViewer, name: LibraryName = "") -> Response:
    """Import into the library of this name if one is given, even if the page shows another."""

    def begin(desk: ImportDesk, batch: Batch) -> None:
        if name:
            targets.retarget_batch(nexus.sessions, desk, viewer, None, name)
        desk.start(batch.id)

    return _act(request, nexus, viewer, begin)


@router.post("/pause")
def import_pause(request: Request, nexus: Nexus, viewer: PageViewer) -> Response:
    return _act(request, nexus, viewer, lambda desk, _: desk.pause())


@router.post("/resume")
def import_resume(request: Request, nexus: Nexus, viewer: PageViewer) -> Response:
    return _act(request, nexus, viewer, lambda desk, _: desk.resume())


@router.post("/resume-without")
def import_resume_without(request: Request, nexus: Nexus, viewer: PageViewer) -> Response:
    """Remove what can't be imported, and import the rest."""
    return _act(request, nexus, viewer, lambda desk, batch: desk.resume_without_failed(batch.id))


@router.post("/discard")
def import_discard(request: Request, nexus: Nexus, viewer: PageViewer) -> Response:
    return _act(request, nexus, viewer, lambda desk, batch: desk.staging.discard(batch.id))


@script_files.post("/sources")
async def import_add_source(
    request: Request,
    nexus: Nexus,
    viewer: PageViewer,
    name: Annotated[str, Query(max_length=1000)],
) -> Response:
    desk = nexus.imports.served(viewer)
    run = threads_of(request).quick.of(viewer)
    batch = await run(partial(targets.current_batch, nexus.sessions, desk, viewer))
    return await imports.add_source(request, nexus, viewer, batch.id, name)


@script.put("/order")
def import_reorder(nexus: Nexus, viewer: PageViewer, body: OrderBody) -> Response:
    batch = targets.current_batch(nexus.sessions, nexus.imports.served(viewer), viewer)
    return imports.reorder(nexus, viewer, batch.id, body)


def _act(
    request: Request, nexus: App, viewer: UUID, act: Callable[[ImportDesk, Batch], object], then: str = HOME
) -> Response:
    """Do something with the current batch. A refusal stays on the page."""
    desk = nexus.imports.served(viewer)
    try:
        act(desk, targets.current_batch(nexus.sessions, desk, viewer))
    except (CancellationFailed, Conflict, InvalidRequest, NotReady) as error:
        return _import_page(request, nexus, viewer, error.message, error.status)
    return go(then)


async def _pieces(file: UploadFile) -> AsyncIterator[bytes]:
    while piece := await file.read(PIECE):
        yield piece


def _import_page(request: Request, nexus: App, viewer: UUID, said: str = "", status: int = 200) -> Response:
    desk = nexus.imports.served(viewer)
    # Read before the files: a change in between is shown again, and a file just imported is not shown as waiting.
    version, state = desk.version, desk.state
    batch = targets.current_batch(nexus.sessions, desk, viewer)
    with nexus.sessions.read() as session:
        mine = catalog.list_libraries(session, viewer)
    look = show_import(desk, batch, {row.id: row.name for row in mine}, version, state)
    return page(
        request,
        "import.html",
        status,
        look=look,
        libraries=[row for row in mine if row.role is Role.ADMIN],
        running=look.status in {AttemptStatus.RUNNING, AttemptStatus.STOPPING},
        said=said,
    )
