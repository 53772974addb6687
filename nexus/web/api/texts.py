"""Pages of a text. A fragment that is too large for a page is sent as its reader takes it, never whole in memory."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID, uuid4

from fastapi import Request, Response
from fastapi.responses import StreamingResponse
from pydantic_core import to_json

from nexus.db.session import Sessions
from nexus.media.fragments import LargeFragment
from nexus.web.api.schemas import FragmentOut, FragmentPage, VersionTextOut
from nexus.web.http.context import app_of
from nexus.web.http.envelope import JSON, Data, answer
from nexus.web.http.threads import taken_in_turn, threads_of


def answer_text(
    request: Request, viewer: UUID, page: FragmentPage | VersionTextOut, large: LargeFragment | None
) -> Response:
    """Answer with a page, and with the large fragment that it consists of, if there is one."""
    if large is None:
        return answer(page)
    pieces = _in_pieces(app_of(request).sessions, page, large)
    return StreamingResponse(taken_in_turn(threads_of(request).quick.of(viewer), pieces), media_type=JSON)


def _in_pieces(
    sessions: Sessions, page: FragmentPage | VersionTextOut, large: LargeFragment
) -> Iterator[bytes]:
    """Write the page with marks in place of the texts, and then the texts in place of the marks."""
    marks = {"text": uuid4().hex, "html": uuid4().hex}
    html = marks["html"] if large.has_html else None
    page.items = [FragmentOut(id=large.id, position=large.position, text=marks["text"], html=html)]
    rest = Data(data=page).model_dump_json(exclude_unset=True).encode()
    slices = {"text": large.text_slices, "html": large.html_slices}
    for column, mark in marks.items():
        before, found, after = rest.partition(mark.encode())
        if found:
            yield before
            for piece in slices[column](sessions):
                yield to_json(piece)[1:-1]
            rest = after
    yield rest
