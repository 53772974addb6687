"""Imports: files are staged, put in order and imported together; the attempt is started, paused and resumed."""

from __future__ import annotations

from collections.abc import AsyncIterable
from functools import partial
from typing import Annotated, Literal
from uuid import UUID, uuid4

from fastapi import Query, Request, Response
from pydantic import Field

from nexus.app import App
from nexus.errors import InvalidRequest, NotReady, WorkspaceFailed
from nexus.imports import targets
from nexus.imports.progress import FileProgress
from nexus.imports.service import ImportDesk
from nexus.imports.staging import MOST_SOURCES, Batch, StagedSource
from nexus.media.inspect import safe_name
from nexus.web.api.schemas import Body
from nexus.web.http.context import Nexus, Viewer
from nexus.web.http.envelope import Answer, Data, answer, answers
from nexus.web.http.files import receive_file
from nexus.web.http.routing import Router
from nexus.web.http.threads import RunInTurn, threads_of

router = Router(prefix="/imports", tags=["imports"])
#: Takes whole files, and counts them itself.
files = Router(most_body=None, prefix="/imports", tags=["imports"])

NO_ROOM = "The disk is full. Free some disk space, then try again."

FileName = Annotated[str, Query(max_length=1000, examples=["book.epub"])]


class BatchBody(Body):
    """A library by its id, or your library of this name, which the import creates if there is none."""

    library_id: UUID | None = None
    name: str | None = Field(None, max_length=200, examples=["Research"])


class OrderBody(Body):
    source_ids: list[UUID] = Field(max_length=MOST_SOURCES)


class StagedFileOut(Answer):
    id: UUID = Field(validation_alias="source_id")
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
    sources: list[StagedFileOut]

    @classmethod
    def of(cls, desk: ImportDesk, batch: Batch) -> BatchOut:
        active = desk.staging.active == batch.id
        known = {line.source_id: line for line in desk.progress.lines()} if active else {}
        lines = [known.get(source.id) or FileProgress.waiting(source) for source in batch.sources]
        return cls(
            id=batch.id, library_id=batch.library_id, name=batch.name, sources=list(map(_staged, lines))
        )


class TroubleOut(Answer):
    code: str = Field(examples=["E_INTERNAL"])
    message: str


class ImportOut(Answer):
    status: Literal["IDLE", "RUNNING", "STOPPING", "PAUSED", "COMPLETE"]
    phase: str = Field(examples=["parsing"])
    attempt_id: UUID | None
    batch_id: UUID | None = Field(description="The batch that the attempt works on.")
    share: float = Field(description="How much of it is done, from 0 to 1.")
    library_id: UUID | None = Field(description="The library of the last import.")
    error: TroubleOut | None = Field(description="What stopped the whole import, if it was not a file.")
    batches: list[BatchOut]
    lines: list[StagedFileOut] = Field(description="The files of the last attempt, as they ended.")

    @classmethod
    def of(cls, desk: ImportDesk) -> ImportOut:
        """Everything there is to show of a user's import."""
        state, trouble = desk.state, desk.trouble
        return cls.model_validate(
            {
                "status": state.status.value,
                "phase": state.phase,
                "attempt_id": state.attempt_id,
                "batch_id": desk.staging.active,
                "share": round(desk.share, 3),
                "library_id": desk.library_id,
                "error": trouble,
                "batches": [BatchOut.of(desk, batch) for batch in desk.staging.all()],
                "lines": desk.ended,
            }
        )


def _staged(line: FileProgress) -> StagedFileOut:
    return StagedFileOut.model_validate(line)


class LeaveOut(Answer):
    safe: bool
    should_warn: bool
    would_discard: bool


@router.get("", responses=answers(Data[ImportOut], 409), summary="Get the state of the import")
def get_import(nexus: Nexus, viewer: Viewer) -> Response:
    return answer(ImportOut.of(nexus.imports.served(viewer)))


@router.post("/batches", responses=answers(Data[BatchOut], 403, 404, 409, 413), summary="Open a batch")
def open_batch(nexus: Nexus, viewer: Viewer, body: BatchBody) -> Response:
    """Always the same batch for the same library. Without a library or a name it is for your default library."""
    desk = nexus.imports.served(viewer)
    batch = targets.open_batch(nexus.sessions, desk, viewer, body.library_id, body.name)
    return answer(BatchOut.of(desk, batch))


@files.post(
    "/batches/{batch_id}/sources",
    responses=answers(Data[StagedFileOut], 404, 409, 413, 507),
    summary="Stage a file",
)
async def add_source(
    request: Request, nexus: Nexus, viewer: Viewer, batch_id: UUID, name: FileName
) -> Response:
    """The body is the file itself: a PDF, an EPUB or a text, by its name and by its content."""
    return await _stage_body(request, nexus, viewer, batch_id, name)


@files.put(
    "/batches/{batch_id}/sources/{source_id}",
    responses=answers(Data[StagedFileOut], 404, 409, 413, 507),
    summary="Replace a file",
)
async def replace_source(
    request: Request, nexus: Nexus, viewer: Viewer, batch_id: UUID, source_id: UUID, name: FileName
) -> Response:
    """The body is the file itself. It takes the place of the other one, with a new id."""
    return await _stage_body(request, nexus, viewer, batch_id, name, replaces=source_id)


@router.delete(
    "/batches/{batch_id}/sources/{source_id}",
    responses=answers(Data[ImportOut], 404, 409),
    summary="Remove a file",
)
def remove_source(nexus: Nexus, viewer: Viewer, batch_id: UUID, source_id: UUID) -> Response:
    desk = nexus.imports.served(viewer)
    desk.staging.remove(batch_id, source_id)
    return answer(ImportOut.of(desk))


@router.put(
    "/batches/{batch_id}/order",
    responses=answers(Data[BatchOut], 404, 409, 413),
    summary="Put the files in order",
)
def reorder(nexus: Nexus, viewer: Viewer, batch_id: UUID, body: OrderBody) -> Response:
    """Takes the id of every file, once."""
    desk = nexus.imports.served(viewer)
    return answer(BatchOut.of(desk, desk.staging.reorder(batch_id, body.source_ids)))


@router.post(
    "/batches/{batch_id}/start", responses=answers(Data[ImportOut], 404, 409), summary="Start the import"
)
def start(nexus: Nexus, viewer: Viewer, batch_id: UUID) -> Response:
    desk = nexus.imports.served(viewer)
    desk.start(batch_id)
    return answer(ImportOut.of(desk))


@router.post("/attempt/pause", responses=answers(Data[ImportOut], 409), summary="Pause the import")
def pause(nexus: Nexus, viewer: Viewer) -> Response:
    """STOPPING until the work under way has ended; then PAUSED, or IDLE if everything was committed already. An import
    that can't be told to stop is still RUNNING: `E_CANCELLATION_FAILED`."""
    desk = nexus.imports.served(viewer)
    desk.pause()
    return answer(ImportOut.of(desk))


@router.post("/attempt/resume", responses=answers(Data[ImportOut], 409), summary="Resume the import")
def resume(nexus: Nexus, viewer: Viewer) -> Response:
    desk = nexus.imports.served(viewer)
    desk.resume()
    return answer(ImportOut.of(desk))


@router.delete("/batches/{batch_id}", responses=answers(Data[ImportOut], 404, 409), summary="Discard a batch")
def discard(nexus: Nexus, viewer: Viewer, batch_id: UUID) -> Response:
    """With the attempt that is paused on it, if there is one."""
    desk = nexus.imports.served(viewer)
    desk.staging.discard(batch_id)
    return answer(ImportOut.of(desk))


@router.get(
    "/batches/{batch_id}/leave",
    responses=answers(Data[LeaveOut], 404, 409),
    summary="What would be lost by leaving",
)
def leave(nexus: Nexus, viewer: Viewer, batch_id: UUID) -> Response:
    return answer(LeaveOut.model_validate(nexus.imports.served(viewer).leave(batch_id)))


def largest_file(nexus: App) -> int:
    """How large a file of any kind may be; the limit of its own kind comes when the kind is known."""
    return max(nexus.files.most_bytes.values())


async def stage_file(
    nexus: App,
    run: RunInTurn,
    desk: ImportDesk,
    batch_id: UUID,
    name: str,
    pieces: AsyncIterable[bytes],
    replaces: UUID | None = None,
) -> StagedSource:
    """Write a file as it comes in, and stage it, for both doors; a file that is refused is not kept.

    Raises what is wrong with the file, NotFound, InvalidState, StorageFull if the user has sent too much, and NotReady
    if the disk is full.
    """

    def stage() -> StagedSource:
        if replaces is None:
            return desk.staging.add(batch_id, safe_name(name), path, ours=True)
        return desk.staging.replace(batch_id, replaces, safe_name(name), path, ours=True)

    await run(partial(desk.staging.require_open, batch_id))
    try:
        path = await run(nexus.imports.staging_folder) / uuid4().hex
        try:
            with desk.staging.copied.arriving() as count:
                await receive_file(pieces, path, largest_file(nexus), run, count)
            return await run(stage)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
    except (WorkspaceFailed, OSError) as error:
        raise NotReady(NO_ROOM) from error


async def _stage_body(
    request: Request, nexus: App, viewer: UUID, batch_id: UUID, name: str, replaces: UUID | None = None
) -> Response:
    if request.headers.get("content-type", "").startswith("multipart/"):
        raise InvalidRequest("Send the file itself as the body, not a form that contains it.")
    desk = nexus.imports.served(viewer)
    run = threads_of(request).quick.of(viewer)
    source = await stage_file(nexus, run, desk, batch_id, name, request.stream(), replaces)
    return answer(_staged(FileProgress.waiting(source)))
