"""An item as a page shows it: its words, badge and links. What can be done with it comes from its capabilities."""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass, field
from datetime import date, datetime
from uuid import UUID

from markupsafe import Markup, escape

from nexus.db.rows import RefreshRow
from nexus.errors import public_code
from nexus.extract import Heading
from nexus.media.illustrations import ASSET, name_image
from nexus.media.queries import View
from nexus.media.reader import Document, Passage
from nexus.media.refresh import AT_REST
from nexus.media.shelving import Shelved
from nexus.states.media import FILE_KINDS, STAGE_WORDS, STATE_WORDS, Kind, MediaStatus, Stage
from nexus.urls import host_of
from nexus.web.views.passages import address_within, asset_address, fragments_as_html, same_words

KINDS = {
    Kind.WEB_ARTICLE: "Article",
    Kind.VIDEO: "Video",
    Kind.PODCAST_EPISODE: "Episode",
    Kind.PDF: "PDF",
    Kind.EPUB: "EPUB",
    Kind.TEXT: "Text",
}
#: What a browser's file chooser offers.
ACCEPTS = {
    Kind.PDF: ".pdf,application/pdf",
    Kind.EPUB: ".epub,application/epub+zip",
    Kind.TEXT: ".txt,.text,.md,.markdown,text/plain,text/markdown",
}
NOT_REFRESHED = "Refresh failed. Your copy is unchanged."
#: How many levels of a table of contents are indented.
DEEPEST = 4

_ANCHOR = re.compile(r"f(\d{1,9})(?:-|$)")
_BEGINS_WITH_IMAGE = re.compile(r"\s*(?:<(?!img\b)[a-z][^>]*>\s*)*<img\b", re.IGNORECASE)


@dataclass(frozen=True)
class Badge:
    text: str
    #: Chooses the colour, and an icon, because colour alone is not enough.
    tone: str


TONES = {
    MediaStatus.PENDING: "queued",
    MediaStatus.EXTRACTING: "working",
    MediaStatus.READY_FOR_READING: "ready",
    MediaStatus.EMBEDDING: "working",
    MediaStatus.READY: "ready",
    MediaStatus.FAILED: "failed",
}
UNAVAILABLE = Badge("Queued (processor unavailable)", "waiting")
ENTERED = Badge("Entered by hand", "ready")
AWAITED = Badge("Waiting for upload", "upload")


@dataclass(frozen=True)
class Failure:
    #: Where it happened.
    stage: str
    #: What happened, in one sentence.
    sentence: str
    #: What to do about it.
    next_step: str
    code: str


@dataclass(frozen=True)
class SiteWait:
    """The site that something waits for, and until when; a time that has passed means that its turn is next."""

    host: str
    until: datetime


@dataclass(frozen=True)
class ShownItem:
    """An item, ready for a template."""

    id: UUID
    view: View
    title: str
    kind: str
    host: str
    #: None unless its address is http or https.
    link: str | None
    play_link: str | None
    badge: Badge
    failure: Failure | None
    #: How often it was tried, if it waits for another try.
    tried: str
    wait: SiteWait | None
    added_at: datetime
    may_retry: bool
    #: Whether the viewer should be asked for the text.
    may_enter: bool
    #: Whether the viewer may upload the file again; `accepts` is what a file chooser should offer.
    may_upload: bool
    accepts: str
    file_size: int | None
    can_download: bool
    has_text: bool
    #: The address of the picture that stands for it.
    picture: str | None
    #: How much of it the viewer has read.
    percent: int


@dataclass(frozen=True)
class Entry:
    """A line of a table of contents, and the lines below it."""

    title: str
    #: The id of the element that it leads to.
    anchor: str
    href: str
    entries: list[Entry] = field(default_factory=list)


@dataclass(frozen=True)
class Reading:
    """What there is to read of an item."""

    #: What is shown: `text`, `pages`, or empty.
    view: str
    #: What can be shown, the default first.
    views: tuple[str, ...]
    revision: int
    #: The version that the page was asked for; None for the one that the viewer holds.
    version: int | None
    passage: Passage
    #: Position and html of each fragment.
    pieces: list[tuple[int, Markup]]
    contents: list[Entry]
    lead_image: str | None
    published: str | None


@dataclass(frozen=True)
class ShownRefresh:
    """The refresh of an item: whether the viewer may request one, whether one is under way, how the last one ended."""

    may_request: bool
    requested: bool
    failure: Failure | None
    said: str


def show_item(view: View, processors: Container[Kind], viewer: UUID) -> ShownItem:
    row = view.row
    failed_upload = row.failure_stage == Stage.UPLOAD
    play = safe_link(row.external_playback_url) if view.capabilities.can_play else None
    return ShownItem(
        id=row.id,
        view=view,
        title=(row.title or "").strip() or address_of(row.canonical_url) or "Untitled",
        kind=KINDS[view.shown_kind],
        host=host_of(row.canonical_url),
        link=safe_link(row.canonical_url),
        play_link=play,
        badge=_badge(view, processors),
        failure=_failure(view),
        tried=_tried(view),
        wait=SiteWait(host_of(row.canonical_url), view.waiting_until) if view.waiting_until else None,
        added_at=row.added_at,
        may_retry=view.may_retry and not failed_upload,
        may_enter=_may_enter(view, viewer),
        may_upload=failed_upload and row.created_by_user_id == viewer,
        accepts=ACCEPTS.get(row.kind, ""),
        file_size=row.file_size,
        can_download=view.capabilities.can_download_file,
        has_text=view.capabilities.can_read and row.has_text,
        picture=asset_address(row.id, view.lead, None) if view.lead else None,
        percent=round(row.progress * 100),
    )


def show_reading(
    found: View,
    asked: str,
    document: Document | None,
    passage: Passage,
    has_pdf: bool,
    version: int | None = None,
) -> Reading:
    """Show the view that was asked for if there is one, or else the default of the kind: for a PDF, its pages."""
    order = ("pages", "text") if found.shown_kind is Kind.PDF else ("text", "pages")
    there = {"pages": has_pdf, "text": bool(passage.fragments)}
    views = tuple(view for view in order if there[view])
    view = asked if asked in views else next(iter(views), "")
    media_id, title = found.row.id, found.row.original_title or ""
    return Reading(
        view=view,
        views=views,
        revision=document.row.number if document else 0,
        version=version,
        passage=passage,
        pieces=fragments_as_html(passage, media_id, title, version),
        contents=_below(_contents(document.outline, media_id, passage, version), title) if document else [],
        lead_image=_lead_image(document.row.lead_image, media_id, passage, version) if document else None,
        published=_day(document.row.published) if document else None,
    )


def show_refresh(
    found: View, refresh: RefreshRow | None, processors: Container[Kind], said: str = ""
) -> ShownRefresh:
    row = found.row
    at_rest = row.processing_status in AT_REST and row.kind in processors
    failure = None
    if refresh is not None and refresh.error_code is not None:
        failure = told(NOT_REFRESHED, refresh.error_message or "", refresh.error_code)
    return ShownRefresh(
        may_request=row.administers and at_rest,
        requested=refresh is not None and failure is None,
        failure=failure,
        said=said,
    )


def show_place(noted: Shelved, revision: int) -> dict[str, float] | None:
    """Where the viewer has left off in a revision, and when in milliseconds: for static/reader.js."""
    place = noted.place_in(revision)
    if place is None or noted.progress_at is None:
        return None
    return {**place._asdict(), "at": round(noted.progress_at.timestamp() * 1000)}


def _badge(view: View, processors: Container[Kind]) -> Badge:
    row = view.row
    if row.is_entered:
        return ENTERED
    if row.processing_status == MediaStatus.PENDING and row.kind in FILE_KINDS and not row.has_file:
        return AWAITED
    if row.processing_status == MediaStatus.PENDING and row.kind not in processors:
        return UNAVAILABLE
    return Badge(STATE_WORDS[row.processing_status], TONES[row.processing_status])


def safe_link(url: str | None) -> str | None:
    """Return the address, or None if a browser should not follow it from a page of ours."""
    return url if url is not None and url.startswith(("http://", "https://")) else None


def _failure(view: View) -> Failure | None:
    """Return why there is no text, unless the viewer has entered one."""
    row = view.row
    if row.failure_stage is None or row.is_entered:
        return None
    return told(STAGE_WORDS[row.failure_stage], row.last_error_message or "", row.last_error_code or "")


def _may_enter(view: View, viewer: UUID) -> bool:
    row = view.row
    is_own = row.kind not in FILE_KINDS or row.created_by_user_id == viewer
    return is_own and _failure(view) is not None and row.failure_stage is not Stage.UPLOAD


def told(stage: str, message: str, code: str) -> Failure:
    """Divide an error's message into what happened and what to do next."""
    first, dot, rest = message.partition(". ")
    return Failure(stage, first + dot.strip(), rest, public_code(code) or "")


def _contents(outline: list[Heading], media_id: UUID, passage: Passage, version: int | None) -> list[Entry]:
    """Nest the lines by level, as deep as a page can show."""
    top: list[Entry] = []
    above: list[tuple[int, list[Entry]]] = []
    for line in outline:
        place = _ANCHOR.match(line.anchor)
        if place is None:
            continue
        while above and (above[-1][0] >= line.level or len(above) >= DEEPEST):
            above.pop()
        href = address_within(line.anchor, int(place[1]), media_id, passage, version).replace("&amp;", "&")
        entry = Entry(line.title, line.anchor, href)
        (above[-1][1] if above else top).append(entry)
        above.append((line.level, entry.entries))
    return top


def _below(entries: list[Entry], title: str) -> list[Entry]:
    """Leave out a first line that is the title of all others, and a single line, which says no more than the title."""
    if len(entries) == 1 and same_words(entries[0].title, title):
        entries = entries[0].entries
    return entries if len(entries) > 1 or (entries and entries[0].entries) else []


def _lead_image(address: str | None, media_id: UUID, passage: Passage, version: int | None) -> str | None:
    """The picture above the beginning of a text, unless the text begins with one or contains it."""
    if not address or not passage.fragments or passage.before is not None:
        return None
    html = passage.fragments[0].html or ""
    if _BEGINS_WITH_IMAGE.match(html) or str(escape(address)) in html:
        return None
    name = name_image(address, passage.pictures)
    return name and asset_address(media_id, name.removeprefix(ASSET), version)


def _day(published: str | None) -> str | None:
    """The date alone; None if it is not a date."""
    try:
        return f"{date.fromisoformat((published or '')[:10]):%-d %b %Y}"
    except ValueError:
        return None


def _tried(view: View) -> str:
    if view.row.processing_status != MediaStatus.PENDING or not view.row.tries:
        return ""
    return "Will retry automatically"


def address_of(url: str | None) -> str:
    return (url or "").partition("://")[2].removeprefix("www.").rstrip("/")
