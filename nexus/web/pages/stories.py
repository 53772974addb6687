"""The editor's pages of stories: a draft beside its evidence, two drafts side by side, publish or put away."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import Depends, Form, Request
from fastapi.responses import Response

from nexus.app import App
from nexus.editorial import queries as editorial
from nexus.editorial import stories
from nexus.editorial.quote_moments import quote_moments
from nexus.editorial.wording import Wording, wording_of
from nexus.errors import ApiError, Conflict, NotFound, Unsupported
from nexus.errors import InvalidRequest as Invalid
from nexus.states.story import StoryStatus
from nexus.web.api import stories as stories_api
from nexus.web.api import story_formats
from nexus.web.api.stories import Verb
from nexus.web.http.context import Cursor, Nexus, PageViewer
from nexus.web.views.render import go, page, page_router
from nexus.web.views.stories import (
    edited_sections,
    everything_said,
    marked_article,
    show_story,
    show_story_event,
    spoken_quotes,
)

router = page_router(prefix="/admin/stories")

FILTERS = {
    "all": ("All", None),
    "draft": ("Drafts", StoryStatus.DRAFT),
    "review": ("In review", StoryStatus.REVIEW),
    "published": ("Published", StoryStatus.PUBLISHED),
    "archived": ("Archived", StoryStatus.ARCHIVED),
    "discarded": ("Discarded", StoryStatus.DISCARDED),
}
Field = Annotated[str, Form()]
Fields = Annotated[list[str], Form()]
Revision = Annotated[int, Form(ge=1, lt=2**31)]
#: How many unsupported statements the editor knows of.
Known = Annotated[int, Form(ge=0, le=100)]


def _typed(
    headline: Annotated[str | None, Form()] = None,
    headline_quotes: Field = "",
    summary: Field = "",
    summary_quotes: Field = "",
    happened_text: Fields = [],  # noqa: B006 - FastAPI copies it
    happened_quote: Fields = [],  # noqa: B006
    background_text: Fields = [],  # noqa: B006
    background_quote: Fields = [],  # noqa: B006
    checked: Fields = [],  # noqa: B006
) -> Wording | None:
    """The wording in the editor, if it was sent along. An emptied claim is left out."""
    if headline is None:
        return None
    return Wording(
        headline,
        summary,
        _claims(happened_text, happened_quote),
        _claims(background_text, background_quote),
        _lines(headline_quotes),
        _lines(summary_quotes),
        tuple(checked),
    )


Typed = Annotated[Wording | None, Depends(_typed)]


@router.get("")
def story_list(
    request: Request, nexus: Nexus, viewer: PageViewer, show: str = "all", cursor: Cursor = None
) -> Response:
    chosen = show if show in FILTERS else "all"
    with nexus.sessions.read() as session:
        found = editorial.newest_stories(session, viewer, status=FILTERS[chosen][1], cursor=cursor)
    return page(
        request,
        "stories.html",
        show=chosen,
        filters=FILTERS,
        stories=list(map(show_story, found.items)),
        next_cursor=found.next_cursor,
    )


@router.get("/{story_id}")
def story_detail(
    request: Request, nexus: Nexus, viewer: PageViewer, story_id: UUID, saved: int = 0, correct: int = 0
) -> Response:
    """With `correct`, the wording of a published story can be changed."""
    said = "Saved." if saved else ""
    return _story_page(request, nexus, viewer, story_id, said=said, correcting=bool(correct))


@router.post("/{story_id}")
def story_save(
    request: Request, nexus: Nexus, viewer: PageViewer, story_id: UUID, revision: Revision, typed: Typed
) -> Response:
    refused = _change(request, nexus, viewer, story_id, revision, typed)
    return refused or go(f"/admin/stories/{story_id}?saved=1")


@router.get("/{story_id}/compare")
def story_compare(
    request: Request, nexus: Nexus, viewer: PageViewer, story_id: UUID, other: UUID
) -> Response:
    with nexus.sessions.read() as session:
        pair = [editorial.visible_story(session, one, viewer) for one in (story_id, other)]
    if pair[0].job_id != pair[1].job_id:
        raise NotFound("These drafts are from two different articles. Compare two drafts of the same one.")
    lines = [everything_said(wording_of(row)) for row in pair]
    return page(request, "compare.html", drafts=list(map(show_story, pair)), lines=lines)


@router.get("/{story_id}/export")
def story_export(
    nexus: Nexus,
    viewer: PageViewer,
    story_id: UUID,
    format: Literal["markdown", "json"] = "markdown",  # noqa: A002
) -> Response:
    return stories_api.export_story(nexus, viewer, story_id, format)


@router.post("/{story_id}/correct")
def story_correct(
    request: Request,
    nexus: Nexus,
    viewer: PageViewer,
    story_id: UUID,
    revision: Revision,
    typed: Typed,
    correction: Field = "",
    unsupported: Known = 0,
) -> Response:
    if typed is None:
        raise Invalid
    try:
        stories.correct_story(
            nexus.sessions, viewer, story_id, revision, typed, correction, unsupported=unsupported
        )
    except (Invalid, Conflict) as error:
        given: dict[str, Any] = {"typed": typed, "revision": revision, "correction": correction}
        return _story_page(request, nexus, viewer, story_id, error=error, correcting=True, **given)
    return go(f"/admin/stories/{story_id}")


@router.post("/{story_id}/{verb}")
def story_change(
    request: Request,
    nexus: Nexus,
    viewer: PageViewer,
    story_id: UUID,
    verb: Verb,
    revision: Revision,
    typed: Typed,
    unsupported: Known = 0,
) -> Response:
    """Saves the wording in the editor first: no one publishes an older wording than the one they see."""
    refused = _change(request, nexus, viewer, story_id, revision, typed, verb, unsupported)
    return refused or go(f"/admin/stories/{story_id}")


def _change(
    request: Request,
    nexus: App,
    viewer: UUID,
    story_id: UUID,
    revision: int,
    typed: Wording | None,
    verb: Verb | None = None,
    unsupported: int = 0,
) -> Response | None:
    """Return None if it worked, or else the page with the reason and with what was typed."""
    named = None if verb is None else verb.value
    try:
        stories.change_story(
            nexus.sessions, viewer, story_id, revision, named, typed, unsupported=unsupported
        )
    except (Invalid, Conflict) as error:
        return _story_page(request, nexus, viewer, story_id, typed=typed, revision=revision, error=error)
    return None


def _story_page(
    request: Request,
    nexus: App,
    viewer: UUID,
    story_id: UUID,
    *,
    typed: Wording | None = None,
    revision: int | None = None,
    error: ApiError | None = None,
    said: str = "",
    correcting: bool = False,
    correction: str = "",
) -> Response:
    """After a conflict, show what is saved now beside what was typed; saving again replaces the former."""
    with nexus.sessions.read() as session:
        row = editorial.visible_story(session, story_id, viewer)
        drafts = editorial.drafts_of(session, row.job_id)
        events = editorial.history_of(session, story_id)
        moments = quote_moments(session, row, viewer)
        has_job = not editorial.is_job_removed(session, row.job_id)
    story, saved = show_story(row), wording_of(row)
    wording = typed or saved
    overtaken = isinstance(error, Conflict) and not isinstance(error, Unsupported)
    if revision is None or overtaken:
        revision = row.revision
    return page(
        request,
        "story.html",
        error.status if error else 200,
        story=story,
        spoken=spoken_quotes(story, moments),
        has_job=has_job,
        revision=revision,
        wording=wording,
        sections=edited_sections(story, wording),
        overtaken=overtaken and wording != saved,
        unconfirmed=error.statements if isinstance(error, Unsupported) else [],
        typed=everything_said(wording),
        article=marked_article(row.article_text, story),
        others=[show_story(draft) for draft in drafts if draft.id != story_id],
        history=[show_story_event(event, viewer) for event in events],
        error=error.message if error else "",
        said=said,
        corrected=story_formats.corrected(row),
        correcting=correcting and story.may_correct,
        correction=correction,
    )


def _lines(typed: str) -> list[str]:
    return [" ".join(line.split()) for line in typed.splitlines() if line.strip()]


def _claims(texts: list[str], quotes: list[str]) -> list[tuple[str, str]]:
    pairs = zip(texts, quotes, strict=False)
    return [(text, quote) for text, quote in pairs if text.strip() or quote.strip()]
