"""A media as a page shows it: the words, the badge, the links. What can be done comes from its capabilities."""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass, field
from datetime import date, datetime
from urllib.parse import urlsplit
from uuid import UUID

from markupsafe import Markup, escape

from nexus.db.session import Row
from nexus.errors import public_code
from nexus.extract import Heading
from nexus.media.passages import Passage
from nexus.media.queries import View
from nexus.media.reader import Document
from nexus.media.refresh import AT_REST
from nexus.states.media import FILE_KINDS, PUBLISHED, Kind, Stage, Status
from nexus.web.api.schemas import actor
from nexus.web.views.render import readable, same_words, way_to

KINDS = {
    Kind.WEB_ARTICLE: "Article",
    Kind.VIDEO: "Video",
    Kind.PODCAST_EPISODE: "Episode",
    Kind.PDF: "PDF",
    Kind.EPUB: "EPUB",
    Kind.TEXT: "Text",
}
#: What the file choosers of browsers let through.
ACCEPTS = {Kind.PDF: ".pdf,application/pdf", Kind.EPUB: ".epub,application/epub+zip"}
STAGES = {
    Stage.UPLOAD: "Failed while receiving the file",
    Stage.EXTRACT: "Failed while extracting the text",
    Stage.TRANSCRIBE: "Failed while getting the transcript",
    Stage.EMBED: "Failed while preparing it for search",
    Stage.OTHER: "Failed",
}
EVENTS = {
    "create": "Added",
    "start": "Extraction started",
    "readable": "Text is there to read",
    "embed": "Preparing for search",
    "embedded": "Prepared for search",
    "release": "Back in the queue",
    "release_embedding": "To be prepared again",
    "fail": "Failed",
    "retry": "Retried",
    "retry_embedding": "Retried",
}
ACTORS = {"you": "you", "worker": "a worker", "sweep": "the sweep", "someone": "someone else"}
NOT_RENEWED = "It could not be read anew, and stays as it was"
ASSET = "asset:"
#: How many levels of a table of contents are set off from each other.
DEEPEST = 4

_ANCHOR = re.compile(r"f(\d{1,9})(?:-|$)")
_BEGINS_WITH_IMAGE = re.compile(r"\s*(?:<(?!img\b)[a-z][^>]*>\s*)*<img\b", re.IGNORECASE)


@dataclass(frozen=True)
class Badge:
    text: str
    #: Chooses the colour and, because colour alone is not enough, the sign.
    tone: str


BADGES = {
    Status.PENDING: Badge("Queued", "queued"),
    Status.EXTRACTING: Badge("Extracting", "working"),
    Status.READY_FOR_READING: Badge("Ready to read", "ready"),
    Status.EMBEDDING: Badge("Ready to read, indexing", "working"),
    Status.READY: Badge("Ready", "ready"),
    Status.FAILED: Badge("Failed", "failed"),
}
UNAVAILABLE = Badge("Queued (processor unavailable)", "waiting")
AWAITED = Badge("Waiting for upload", "upload")

#: What the links above the list choose. Something readable that is being indexed is both.
FILTERS: dict[str, tuple[str, tuple[Status, ...]]] = {
    "all": ("All", ()),
    "working": ("Working", (Status.PENDING, Status.EXTRACTING, Status.EMBEDDING)),
    "failed": ("Failed", (Status.FAILED,)),
    "ready": ("Ready", tuple(sorted(PUBLISHED))),
}


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
class Item:
    """One media, ready for a template."""

    id: UUID
    row: Row
    title: str
    kind: str
    host: str
    #: Only http and https addresses become links.
    link: str | None
    play_link: str | None
    badge: Badge
    failure: Failure | None
    #: Said of a media that waits after a try that did not succeed.
    tried: str
    added_at: datetime
    may_retry: bool
    #: Whether the viewer may give the file again, because the upload failed; `accepts` is what its kind takes.
    may_upload: bool
    accepts: str
    file_size: int | None
    can_download: bool
    has_text: bool


@dataclass(frozen=True)
class Entry:
    """A line of a table of contents, and those below it."""

    title: str
    #: The id of what it leads to.
    anchor: str
    href: str
    entries: list[Entry] = field(default_factory=list)


@dataclass(frozen=True)
class Reading:
    """What there is to read of a media."""

    #: What is shown: `text`, `pages`, or nothing yet.
    view: str
    #: What can be shown, the usual one first.
    views: tuple[str, ...]
    revision: int
    passage: Passage
    #: Position and html of each fragment.
    pieces: list[tuple[int, Markup]]
    contents: list[Entry]
    lead_image: str | None
    published: str | None


@dataclass(frozen=True)
class Renewal:
    """Reading a media anew: whether the viewer may ask for it, whether it is asked for, what came of it."""

    may_ask: bool
    asked: bool
    failure: Failure | None
    said: str


@dataclass(frozen=True)
class Moment:
    """One entry of a history."""

    what: str
    row: Row
    who: str
    tone: str


def item(view: View, processors: Container[Kind], viewer: UUID) -> Item:
    row = view.row
    failed_upload = row.failure_stage == Stage.UPLOAD.value
    play = safe_link(row.external_playback_url) if view.capabilities.can_play else None
    return Item(
        id=row.id,
        row=row,
        title=(row.title or "").strip() or address_of(row.canonical_url) or "Untitled",
        kind=KINDS[Kind(row.kind)],
        host=host_of(row.canonical_url),
        link=safe_link(row.canonical_url),
        play_link=play,
        badge=badge(row, processors),
        failure=_failure(row),
        tried=_tried(row),
        added_at=getattr(row, "added_at", row.created_at),
        may_retry=view.may_retry and not failed_upload,
        may_upload=failed_upload and row.created_by_user_id == viewer,
        accepts=ACCEPTS.get(Kind(row.kind), ""),
        file_size=row.file_size,
        can_download=view.capabilities.can_download_file,
        has_text=view.capabilities.can_read and row.has_text,
    )


def reading(found: View, asked: str, document: Document | None, passage: Passage, has_pdf: bool) -> Reading:
    """What is asked for where there is such a thing, or else what the kind is first of all: a PDF is its pages."""
    order = ("pages", "text") if Kind(found.row.kind) is Kind.PDF else ("text", "pages")
    there = {"pages": has_pdf, "text": bool(passage.fragments)}
    views = tuple(view for view in order if there[view])
    view = asked if asked in views else next(iter(views), "")
    media_id, title = found.row.id, found.row.title or ""
    return Reading(
        view=view,
        views=views,
        revision=document.row.revision if document else 0,
        passage=passage,
        pieces=[(row.position, readable(row, media_id, passage, title)) for row in passage.fragments],
        contents=_below(_contents(document.outline, media_id, passage), title) if document else [],
        lead_image=_lead_image(document.row.lead_image, media_id, passage) if document else None,
        published=_day(document.row.published) if document else None,
    )


def renewal(found: View, asked: Row | None, processors: Container[Kind], said: str = "") -> Renewal:
    row = found.row
    at_rest = Status(row.processing_status) in AT_REST and Kind(row.kind) in processors
    failed = asked is not None and asked.error_code is not None
    return Renewal(
        may_ask=bool(row.managed) and at_rest,
        asked=asked is not None and not failed,
        failure=told(NOT_RENEWED, asked.error_message, asked.error_code) if asked and failed else None,
        said=said,
    )


def badge(row: Row, processors: Container[Kind]) -> Badge:
    status, kind = Status(row.processing_status), Kind(row.kind)
    if status is Status.PENDING and kind in FILE_KINDS and not row.has_file:
        return AWAITED
    if status is Status.PENDING and kind not in processors:
        return UNAVAILABLE
    return BADGES[status]


def moment(row: Row, viewer: UUID) -> Moment:
    who = ACTORS[actor(row.actor, viewer)]
    shown = row._replace(error_code=public_code(row.error_code))
    return Moment(EVENTS.get(row.event, row.event), shown, who, BADGES[Status(row.to_status)].tone)


def safe_link(url: str | None) -> str | None:
    """The address itself, or None where it is not one that a browser should follow from a page of ours."""
    return url if url is not None and url.startswith(("http://", "https://")) else None


def _failure(row: Row) -> Failure | None:
    if Status(row.processing_status) is not Status.FAILED:
        return None
    return told(STAGES[Stage(row.failure_stage)], row.last_error_message, row.last_error_code)


def told(stage: str, message: str, code: str) -> Failure:
    first, dot, rest = message.partition(". ")
    return Failure(stage, first + dot.strip(), rest, public_code(code) or "")


def _contents(outline: list[Heading], media_id: UUID, passage: Passage) -> list[Entry]:
    """Nested by level, as deep as a page can show."""
    top: list[Entry] = []
    above: list[tuple[int, list[Entry]]] = []
    for line in outline:
        place = _ANCHOR.match(line.anchor)
        if place is None:
            continue
        while above and (above[-1][0] >= line.level or len(above) >= DEEPEST):
            above.pop()
        href = way_to(line.anchor, int(place[1]), media_id, passage)
        entry = Entry(line.title, line.anchor, href)
        (above[-1][1] if above else top).append(entry)
        above.append((line.level, entry.entries))
    return top


def _below(entries: list[Entry], title: str) -> list[Entry]:
    """What is below the title, where all of it is. One line alone says no more than the title."""
    if len(entries) == 1 and same_words(entries[0].title, title):
        entries = entries[0].entries
    return entries if len(entries) > 1 or (entries and entries[0].entries) else []


def _lead_image(address: str | None, media_id: UUID, passage: Passage) -> str | None:
    """Where the text begins, unless it begins with a picture or has this one in it."""
    if not address or not passage.fragments or passage.before is not None:
        return None
    html = passage.fragments[0].html or ""
    if _BEGINS_WITH_IMAGE.match(html) or str(escape(address)) in html:
        return None
    if address.startswith(ASSET):
        return f"/items/{media_id}/assets/{address.removeprefix(ASSET)}"
    return safe_link(address)


def _day(published: str | None) -> str | None:
    """The date alone; None where it is none."""
    try:
        return f"{date.fromisoformat((published or '')[:10]):%-d %b %Y}"
    except ValueError:
        return None


def _tried(row: Row) -> str:
    if Status(row.processing_status) is not Status.PENDING or not row.tries:
        return ""
    return f"Tried {'once' if row.tries == 1 else f'{row.tries} times'}; tries again by itself"


def host_of(url: str | None) -> str:
    return (urlsplit(url or "").hostname or "").removeprefix("www.")


def address_of(url: str | None) -> str:
    return (url or "").partition("://")[2].removeprefix("www.").rstrip("/")
