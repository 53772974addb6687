"""The editor's pages of stories: the draft beside its evidence, two drafts side by side, publish or put away."""

from __future__ import annotations

from itertools import chain
from typing import Annotated, Literal
from urllib.parse import urlencode, urljoin
from uuid import UUID

from fastapi import APIRouter, Depends, Form, Request
from fastapi.responses import Response

from nexus.app import App
from nexus.db.session import Row
from nexus.editorial import queries as desk
from nexus.editorial import stories
from nexus.editorial.stories import Wording
from nexus.errors import ApiError, Conflict, NotFound
from nexus.errors import InvalidRequest as Invalid
from nexus.states.story import Status
from nexus.web.api.stories import Verb
from nexus.web.http import auth
from nexus.web.http.context import Cursor, Nexus, PageViewer
from nexus.web.http.envelope import PAGE
from nexus.web.views import desk as desk_looks
from nexus.web.views import story_formats
from nexus.web.views.render import go, page

router = APIRouter(prefix="/admin/stories", tags=[PAGE], include_in_schema=False)

FILTERS = {
    "all": ("All", None),
    "draft": ("Drafts", Status.DRAFT),
    "review": ("In review", Status.REVIEW),
    "published": ("Published", Status.PUBLISHED),
    "archived": ("Archived", Status.ARCHIVED),
    "discarded": ("Discarded", Status.DISCARDED),
}
Field = Annotated[str, Form()]
Fields = Annotated[list[str], Form()]
Revision = Annotated[int, Form(ge=1, lt=2**31)]


def _typed(
    headline: Annotated[str | None, Form()] = None,
    summary: Field = "",
    happened_text: Fields = [],  # noqa: B006 - FastAPI copies it
    happened_quote: Fields = [],  # noqa: B006
    background_text: Fields = [],  # noqa: B006
    background_quote: Fields = [],  # noqa: B006
) -> Wording | None:
    """What stands in the editor, where it is sent along. A claim that is emptied is taken out."""
    if headline is None:
        return None
    return Wording(
        headline, summary, _claims(happened_text, happened_quote), _claims(background_text, background_quote)
    )


Typed = Annotated[Wording | None, Depends(_typed)]


@router.get("")
def all_stories(
    request: Request, nexus: Nexus, viewer: PageViewer, show: str = "all", cursor: Cursor = None
) -> Response:
    chosen = show if show in FILTERS else "all"
    with nexus.sessions.read() as session:
        found = desk.newest_stories(session, viewer, status=FILTERS[chosen][1], cursor=cursor)
    token = urlencode({"token": auth.feed_token(nexus.settings, viewer)})
    site = nexus.settings.public_url or str(request.base_url)
    return page(
        request,
        "stories.html",
        show=chosen,
        filters=FILTERS,
        stories=list(map(desk_looks.story, found.items)),
        next_cursor=found.next_cursor,
        feed=urljoin(site, f"/api/stories.atom?{token}"),
    )


@router.get("/{story_id}")
def one_story(request: Request, nexus: Nexus, viewer: PageViewer, story_id: UUID, saved: int = 0) -> Response:
    return _page(request, nexus, viewer, story_id, said="Saved." if saved else "")


@router.post("/{story_id}")
def edit(
    request: Request, nexus: Nexus, viewer: PageViewer, story_id: UUID, revision: Revision, typed: Typed
) -> Response:
    refused = _changed(request, nexus, viewer, story_id, revision, typed)
    return refused or go(f"/admin/stories/{story_id}?saved=1")


@router.get("/{story_id}/compare")
def compare(request: Request, nexus: Nexus, viewer: PageViewer, story_id: UUID, other: UUID) -> Response:
    with nexus.sessions.read() as session:
        pair = [desk.story(session, one, viewer) for one in (story_id, other)]
    if pair[0].job_id != pair[1].job_id:
        raise NotFound("These are drafts of two articles. Compare two drafts of one.")
    lines = [_said(_wording(row)) for row in pair]
    return page(request, "compare.html", drafts=list(map(desk_looks.story, pair)), lines=lines)


@router.get("/{story_id}/export")
def export(
    nexus: Nexus,
    viewer: PageViewer,
    story_id: UUID,
    format: Literal["markdown", "json"] = "markdown",  # noqa: A002
) -> Response:
    with nexus.sessions.read() as session:
        return story_formats.exported(desk.story(session, story_id, viewer), format)


@router.post("/{story_id}/{verb}")
def change(
    request: Request,
    nexus: Nexus,
    viewer: PageViewer,
    story_id: UUID,
    verb: Verb,
    revision: Revision,
    typed: Typed,
) -> Response:
    """What stands in the editor goes with it: nobody publishes an older wording than the one he sees."""
    refused = _changed(request, nexus, viewer, story_id, revision, typed, verb)
    return refused or go(f"/admin/stories/{story_id}")


def _changed(
    request: Request,
    nexus: App,
    viewer: UUID,
    story_id: UUID,
    revision: int,
    typed: Wording | None,
    verb: Verb | None = None,
) -> Response | None:
    """None where it worked, or else the page with the reason and with what was typed."""
    try:
        with nexus.sessions.read() as session:
            story = desk.story(session, story_id, viewer)
        grounded = stories.ground(story, typed) if typed is not None and typed != _wording(story) else None
        with nexus.sessions.begin() as session:
            if grounded is not None:
                revision = stories.edit(session, story, revision, grounded).revision
            if verb is not None:
                stories.change(session, story_id, verb.value, revision, str(viewer))
    except (Invalid, Conflict) as error:
        return _page(request, nexus, viewer, story_id, typed=typed, revision=revision, error=error)
    return None


def _page(
    request: Request,
    nexus: App,
    viewer: UUID,
    story_id: UUID,
    *,
    typed: Wording | None = None,
    revision: int | None = None,
    error: ApiError | None = None,
    said: str = "",
) -> Response:
    """After a conflict it shows what is saved now beside what was typed, and saving once more is made on that."""
    with nexus.sessions.read() as session:
        row = desk.story(session, story_id, viewer)
        drafts = desk.drafts(session, row.job_id)
        events = desk.what_happened(session, story_id)
    look = desk_looks.story(row)
    wording = typed or _wording(row)
    if revision is None or isinstance(error, Conflict):
        revision = row.revision
    return page(
        request,
        "story.html",
        error.status if error else 200,
        story=look,
        revision=revision,
        wording=wording,
        sections=desk_looks.sections(look, wording),
        overtaken=isinstance(error, Conflict) and wording != _wording(row),
        typed=_said(wording),
        article=desk_looks.marked(row.article_text, look.points),
        others=[desk_looks.story(draft) for draft in drafts if draft.id != story_id],
        history=[desk_looks.moment(event, viewer) for event in events],
        error=error.message if error else "",
        said=said,
    )


def _wording(row: Row) -> Wording:
    sections = stories.Sections.of(row)
    return Wording(
        row.headline,
        row.summary,
        [(claim.text, claim.evidence.quote) for claim in sections.what_happened],
        [(claim.text, claim.evidence.quote) for claim in sections.background],
    )


def _claims(texts: list[str], quotes: list[str]) -> list[tuple[str, str]]:
    pairs = zip(texts, quotes, strict=False)
    return [(text, quote) for text, quote in pairs if text.strip() or quote.strip()]


def _said(wording: Wording) -> set[str]:
    """What a draft says and quotes, to tell what only one of two does."""
    claims = (*wording.what_happened, *wording.background)
    return {wording.headline, wording.summary, *chain.from_iterable(claims)}
