"""A media as a page shows it: the words, the badge, the links. What can be done comes from its capabilities."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit
from uuid import UUID

from nexus.db.session import Row
from nexus.ingest.read import View
from nexus.states.media import FILE_KINDS, PUBLISHED, Kind, Stage, Status
from nexus.web.schemas import actor

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
        title=(row.title or "").strip() or _address(row.canonical_url) or "Untitled",
        kind=KINDS[Kind(row.kind)],
        host=_host(row.canonical_url),
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


def badge(row: Row, processors: Container[Kind]) -> Badge:
    status, kind = Status(row.processing_status), Kind(row.kind)
    if status is Status.PENDING and kind in FILE_KINDS and not row.has_file:
        return AWAITED
    if status is Status.PENDING and kind not in processors:
        return UNAVAILABLE
    return BADGES[status]


def moment(row: Row, viewer: UUID) -> Moment:
    who = ACTORS[actor(row.actor, viewer)]
    return Moment(EVENTS.get(row.event, row.event), row, who, BADGES[Status(row.to_status)].tone)


def safe_link(url: str | None) -> str | None:
    """The address itself, or None where it is not one that a browser should follow from a page of ours."""
    return url if url is not None and url.startswith(("http://", "https://")) else None


def _failure(row: Row) -> Failure | None:
    if Status(row.processing_status) is not Status.FAILED:
        return None
    first, dot, rest = row.last_error_message.partition(". ")
    return Failure(STAGES[Stage(row.failure_stage)], first + dot.strip(), rest, row.last_error_code)


def _tried(row: Row) -> str:
    if Status(row.processing_status) is not Status.PENDING or not row.tries:
        return ""
    return f"Tried {'once' if row.tries == 1 else f'{row.tries} times'}; tries again by itself"


def _host(url: str | None) -> str:
    return (urlsplit(url or "").hostname or "").removeprefix("www.")


def _address(url: str | None) -> str:
    return (url or "").partition("://")[2].removeprefix("www.").rstrip("/")
