"""Items: add, read, refresh, retry, remove. The API calls an item a media."""

from __future__ import annotations

from uuid import UUID

from fastapi import Request, Response

from nexus.media import (
    deletions,
    differences,
    history,
    illustrations,
    queries,
    reader,
    refresh,
    submit,
    versions,
)
from nexus.media.fragments import read_text_page
from nexus.media.listing import list_items
from nexus.web.api import uploads
from nexus.web.api.schemas import (
    BegunOut,
    DifferenceOut,
    DocumentOut,
    Done,
    EventPage,
    FragmentPage,
    MediaOut,
    MediaPage,
    RetriedOut,
    SubmittedOut,
    UploadBody,
    UrlBody,
    UsedOut,
    VersionList,
    VersionTextOut,
)
from nexus.web.api.texts import answer_text
from nexus.web.http.context import Cursor, Limit, Nexus, Number, OtherNumber, Revision, Viewer
from nexus.web.http.envelope import Data, answer, answers, request_id
from nexus.web.http.files import picture_response
from nexus.web.http.list_filters import WantedItems
from nexus.web.http.routing import Router
from nexus.web.http.scopes import adds
from nexus.web.http.threads import waits_for_store

router = Router(prefix="/media", tags=["media"])


@router.post(
    "", responses=answers(Data[SubmittedOut | BegunOut], 413, 502, 507), summary="Add a URL or a file"
)
@adds
@waits_for_store
def add_media(nexus: Nexus, viewer: Viewer, body: UrlBody | UploadBody, request: Request) -> Response:
    """With a `url` this is POST /media/url, with the fields of a file POST /media/upload/init."""
    if isinstance(body, UrlBody):
        return add_url(nexus, viewer, body, request)
    return uploads.begin_upload(nexus, viewer, body, request)


@router.post("/url", responses=answers(Data[SubmittedOut], 413), summary="Add a URL")
@adds
def add_url(nexus: Nexus, viewer: Viewer, body: UrlBody, request: Request) -> Response:
    """Adds a page or a video by its address. The same address again returns the same item."""
    done = submit.url(
        nexus.sessions, nexus.queue, nexus.limits, viewer, body.kind, body.url, request_id(request)
    )
    return answer(SubmittedOut.model_validate(done))


@router.get("", responses=answers(Data[MediaPage], 404), summary="List items")
def list_media(
    nexus: Nexus, viewer: Viewer, wanted: WantedItems, cursor: Cursor = None, limit: Limit = queries.PAGE
) -> Response:
    """What your libraries hold, the latest addition first, without what you archived.

    The filters narrow it down, and `sort` chooses another order. A cursor belongs to its order.
    """
    with nexus.sessions.snapshot() as session:
        page = list_items(session, viewer, wanted, cursor, limit)
    return answer(MediaPage.of(page, viewer))


@router.get("/{media_id}", responses=answers(Data[MediaOut], 404), summary="Get an item")
def get_media(nexus: Nexus, viewer: Viewer, media_id: UUID) -> Response:
    """Its state, and what you can do with it: rely on `capabilities`, not on the status."""
    with nexus.sessions.read() as session:
        view = queries.get_media(session, media_id, viewer)
    return answer(MediaOut.of(view, viewer))


@router.get("/{media_id}/fragments", responses=answers(Data[FragmentPage], 404), summary="Get its text")
def get_fragments(
    request: Request,
    nexus: Nexus,
    viewer: Viewer,
    media_id: UUID,
    cursor: Cursor = None,
    limit: Limit = queries.PAGE,
    revision: Revision = None,
) -> Response:
    """In reading order. A page holds at most 256 KiB of it, or a single larger fragment."""
    with nexus.sessions.read() as session:
        found = versions.view_version(session, media_id, viewer, revision)
        part = read_text_page(session, found, cursor, limit)
    return answer_text(request, viewer, FragmentPage.model_validate(part), part.large)


@router.get("/{media_id}/document", responses=answers(Data[DocumentOut], 404), summary="About its text")
def get_document(nexus: Nexus, viewer: Viewer, media_id: UUID, revision: Revision = None) -> Response:
    """What the text says about itself, its table of contents, and where it comes from."""
    with nexus.sessions.read() as session:
        view = versions.view_version(session, media_id, viewer, revision)
        found = reader.document(session, view, viewer)
        pictures = illustrations.illustrations_of(session, media_id, view.row.revision)
    return answer(DocumentOut.of(found, pictures))


@router.get(
    "/{media_id}/assets/{name}",
    responses={200: {"content": {"image/*": {}}}, **answers(None, 404)},
    summary="Get a picture in its text",
)
@waits_for_store
def get_asset(
    request: Request,
    nexus: Nexus,
    viewer: Viewer,
    media_id: UUID,
    name: str,
    revision: Revision = None,
) -> Response:
    """The html of a fragment refers to it as `asset:{name}`. A name never stands for another picture later."""
    with nexus.sessions.read() as session:
        view = versions.view_version(session, media_id, viewer, revision)
        found = reader.find_picture(session, view, name)
    return picture_response(request, viewer, nexus.files, found)


@router.post(
    "/{media_id}/refresh", responses=answers(Data[RetriedOut], 403, 404, 409), summary="Refresh its text"
)
def refresh_media(nexus: Nexus, viewer: Viewer, media_id: UUID, request: Request) -> Response:
    """Reads its source again. If the text has changed, the libraries that you administer hold the new version then.

    Everybody else keeps the version they have, and can switch to the new one.
    """
    _, enqueued = refresh.request(nexus.sessions, nexus.queue, media_id, viewer, request_id(request))
    return answer(RetriedOut(media_id=media_id, enqueued=enqueued))


@router.get("/{media_id}/revisions", responses=answers(Data[VersionList], 404), summary="List its versions")
def list_versions(nexus: Nexus, viewer: Viewer, media_id: UUID) -> Response:
    """What your libraries hold and have held, and newer versions that you can take; the newest first."""
    with nexus.sessions.read() as session:
        held = queries.get_media(session, media_id, viewer)
        found = versions.list_versions(session, held, viewer)
    about = {"revision": held.row.revision, "capabilities": held.capabilities}
    return answer(VersionList.model_validate({"items": found, **about}))


@router.get(
    "/{media_id}/revisions/{number}", responses=answers(Data[VersionTextOut], 404), summary="Read a version"
)
def get_version(
    request: Request,
    nexus: Nexus,
    viewer: Viewer,
    media_id: UUID,
    number: Number,
    cursor: Cursor = None,
    limit: Limit = queries.PAGE,
) -> Response:
    """With its text in reading order, paged as its fragments are."""
    with nexus.sessions.read() as session:
        found = versions.find_version(session, media_id, viewer, number)
        view = queries.get_media(session, media_id, viewer, number)
        part = read_text_page(session, view, cursor, limit)
    version = VersionTextOut.model_validate({**found._asdict(), **vars(part)})
    return answer_text(request, viewer, version, part.large)


@router.get(
    "/{media_id}/revisions/{number}/diff",
    responses=answers(Data[DifferenceOut], 404),
    summary="Compare two versions",
)
@waits_for_store
def compare_versions(
    nexus: Nexus, viewer: Viewer, media_id: UUID, number: Number, other: OtherNumber
) -> Response:
    """Side by side, with the words marked that only one of them has."""
    with nexus.sessions.read() as session:
        before = reader.whole_text(session, media_id, viewer, other)
        after = reader.whole_text(session, media_id, viewer, number)
        can = queries.get_media(session, media_id, viewer, number).capabilities
    found = differences.compare(before, after)
    about = {"number": number, "compared_with": other, "capabilities": can}
    return answer(DifferenceOut.model_validate({**vars(found), **about}))


@router.post(
    "/{media_id}/revisions/{number}/use",
    responses=answers(Data[UsedOut], 403, 404),
    summary="Use a version",
)
def use_version(nexus: Nexus, viewer: Viewer, media_id: UUID, number: Number) -> Response:
    """The libraries that you administer hold this version from now on. You can go back the same way."""
    moved = versions.use_version(nexus.sessions, media_id, viewer, number)
    return answer(UsedOut(media_id=media_id, revision=number, moved=moved))


@router.get("/{media_id}/history", responses=answers(Data[EventPage], 404), summary="Get its history")
def get_history(
    nexus: Nexus, viewer: Viewer, media_id: UUID, cursor: Cursor = None, limit: Limit = queries.PAGE
) -> Response:
    """Every transition since you have it, the oldest first. Others are named if you share a library with them."""
    with nexus.sessions.read() as session:
        part = history.events(session, media_id, viewer, cursor, limit)
    return answer(EventPage.of(part, viewer))


@router.post(
    "/{media_id}/retry", responses=answers(Data[RetriedOut], 403, 404, 409, 413, 502, 507), summary="Retry"
)
@waits_for_store
def retry_media(
    nexus: Nexus, viewer: Viewer, media_id: UUID, request: Request, body: UploadBody | None = None
) -> Response:
    """Only a failed item can be retried, by its creator or an admin of a library that holds it.

    If its upload failed, the answer has a new upload link; the body may announce another file.
    """
    expected = None if body is None else body.expected()
    done = submit.retry_or_upload_again(
        nexus.sessions, nexus.files, nexus.queue, viewer, media_id, expected, request_id(request)
    )
    if isinstance(done, bool):
        return answer(RetriedOut(media_id=media_id, enqueued=done))
    upload = uploads.upload_place(nexus, request, done)
    return answer(RetriedOut(media_id=media_id, enqueued=False, upload=upload))


@router.delete("/{media_id}", responses=answers(Data[Done], 403, 404), summary="Remove an item")
@waits_for_store
def delete_media(nexus: Nexus, viewer: Viewer, media_id: UUID) -> Response:
    """Removes it from every library that you administer, or from all libraries if it is a file that you uploaded.

    It is deleted when no library holds it any more.
    """
    deletions.delete_media_and_files(nexus.sessions, nexus.files, viewer, media_id)
    return answer(Done(done=True))
