"""Jobs and stories as pages show them: the words, the steps, and the evidence beside each claim."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise
from uuid import UUID

from markupsafe import Markup

from nexus.db.session import Row
from nexus.draft import Claim
from nexus.ingest.stories import OPEN, Sections
from nexus.states.job import Status
from nexus.states.machine import Verdict
from nexus.states.story import STORY
from nexus.states.story import Status as StoryStatus
from nexus.web.looks import ACTORS, Badge, Failure, Moment, address_of, host_of, safe_link, told
from nexus.web.schemas import actor

EXTRACTIVE = "extractive"
BADGES = {
    Status.QUEUED: Badge("Waiting", "queued"),
    Status.FETCHING: Badge("Fetching", "working"),
    Status.EXTRACTING: Badge("Taking the text out", "working"),
    Status.EXTRACTED: Badge("Ready for a draft", "waiting"),
    Status.READY_TO_GENERATE: Badge("Ready for a draft", "waiting"),
    Status.GENERATING: Badge("Writing the draft", "working"),
    Status.SAVED: Badge("Story saved", "ready"),
    Status.FAILED: Badge("Failed", "failed"),
}
STORY_BADGES = {
    StoryStatus.DRAFT: Badge("Draft", "waiting"),
    StoryStatus.REVIEW: Badge("In review", "queued"),
    StoryStatus.PUBLISHED: Badge("Published", "ready"),
    StoryStatus.ARCHIVED: Badge("Archived", "queued"),
    StoryStatus.DISCARDED: Badge("Discarded", "failed"),
}
EVENTS = {
    "create": "Created",
    "fetch": "Fetch started",
    "fetched": "Page fetched",
    "claim_extraction": "Extraction started",
    "extracted": "Title and text are there",
    "adopt": "Taken from the library",
    "generate": "Draft started",
    "saved": "Story saved",
    "fail": "Failed",
    "manual_entry": "Entered by hand",
    "regenerate": "Another draft asked for",
    "retry": "Retried",
    "submit": "Sent to review",
    "rewrite": "Back to draft",
    "publish": "Published",
    "archive": "Archived",
    "discard": "Discarded",
    "restore": "Restored",
}
FAILED_STEPS = {
    "FETCH": "Failed while fetching the page",
    "EXTRACT": "Failed while taking the text out",
    "GENERATE": "Failed while writing the draft",
}
#: What a story's page offers, in this order.
VERBS = {
    "publish": "Publish",
    "submit": "Send to review",
    "rewrite": "Back to draft",
    "restore": "Restore",
    "archive": "Archive",
    "discard": "Discard",
}
WITHOUT_TEXT = frozenset({Status.QUEUED, Status.EXTRACTING, Status.FAILED})
READY = frozenset({Status.EXTRACTED, Status.READY_TO_GENERATE})


@dataclass(frozen=True)
class Step:
    name: str
    #: What is known of it, in a few words.
    says: str
    #: done, working, failed or waiting
    state: str


@dataclass(frozen=True)
class Job:
    """One job, ready for a template."""

    id: UUID
    row: Row
    title: str
    host: str
    link: str | None
    badge: Badge
    steps: list[Step]
    failure: Failure | None
    #: Somebody is at it: the page looks again.
    working: bool
    may_fetch: bool
    may_retry: bool
    may_generate: bool
    may_regenerate: bool
    may_enter: bool


@dataclass(frozen=True)
class Point:
    """A claim with its number on the page."""

    number: int
    claim: Claim


@dataclass(frozen=True)
class Story:
    """One story, ready for a template."""

    id: UUID
    row: Row
    badge: Badge
    what_happened: list[Point]
    background: list[Point]
    unsupported: int
    by_sentences: bool
    sources: list[tuple[str, str | None]]
    may_edit: bool
    #: Verb and label of every edge that leads on from here.
    verbs: list[tuple[str, str]]

    @property
    def points(self) -> list[Point]:
        return [*self.what_happened, *self.background]


def job(row: Row) -> Job:
    status = Status(row.status)
    has_text = row.extracted_at is not None
    failed = status is Status.FAILED
    return Job(
        id=row.id,
        row=row,
        title=row.extracted_title or address_of(row.canonical_url) or "Untitled",
        host=host_of(row.canonical_url),
        link=safe_link(row.canonical_url),
        badge=BADGES[status],
        steps=_steps(row, status),
        failure=_failure(row) if failed else None,
        working=BADGES[status].tone == "working",
        may_fetch=status is Status.QUEUED and row.canonical_url is not None,
        may_retry=failed and not has_text and row.canonical_url is not None,
        may_generate=status in READY,
        may_regenerate=status is Status.SAVED or (failed and has_text),
        may_enter=status in WITHOUT_TEXT and not has_text,
    )


def story(row: Row) -> Story:
    status, sections = StoryStatus(row.status), Sections.of(row)
    first = [Point(number, claim) for number, claim in enumerate(sections.what_happened, 1)]
    rest = [Point(number, claim) for number, claim in enumerate(sections.background, len(first) + 1)]
    edges = {edge.verb: edge for edge in STORY}
    return Story(
        id=row.id,
        row=row,
        badge=STORY_BADGES[status],
        what_happened=first,
        background=rest,
        unsupported=sections.unsupported,
        by_sentences=row.model == EXTRACTIVE,
        sources=[(source["title"], safe_link(source["url"])) for source in json.loads(row.sources)],
        may_edit=status in OPEN,
        verbs=[(verb, name) for verb, name in VERBS.items() if edges[verb].decide(status) is Verdict.APPLY],
    )


def moment(row: Row, viewer: UUID) -> Moment:
    badge = (
        BADGES[Status(row.to_status)] if row.subject == "job" else STORY_BADGES[StoryStatus(row.to_status)]
    )
    return Moment(EVENTS.get(row.event, row.event), row, ACTORS[actor(row.actor, viewer)], badge.tone)


def marked(text: str, points: list[Point]) -> Markup:
    """The article with every passage that a claim rests on marked, and the claim's number beside it."""
    spans = [
        (point.claim.evidence.start, point.claim.evidence.end, point.number)
        for point in points
        if point.claim.evidence.start is not None and point.claim.evidence.end is not None
    ]
    places = sorted({0, len(text), *(place for start, end, _ in spans for place in (start, end))})
    parts: list[Markup] = []
    for start, end in pairwise(places):
        piece = Markup("{}").format(text[start:end])
        numbers = [number for first, last, number in spans if first <= start and end <= last]
        begun = [number for first, _, number in spans if first == start]
        parts.append(_mark(piece, begun) if numbers else piece)
    return Markup("").join(parts)


def _mark(piece: Markup, begun: list[int]) -> Markup:
    signs = Markup("").join(
        Markup('<a class="evidence-sign" id="evidence-{0}" href="#claim-{0}">{0}</a>').format(number)
        for number in begun
    )
    return Markup("<mark>{}{}</mark>").format(signs, piece)


def _steps(row: Row, status: Status) -> list[Step]:
    tag = (row.error_message or "").partition("]")[0].lstrip("[")
    if row.manually_provided:
        before = [Step("Fetch", "Not needed", "done"), Step("Text", "Entered by hand", "done")]
    elif row.extracted_at is not None and row.fetched_at is None:
        before = [Step("Fetch", "Not needed", "done"), Step("Text", "From your library", "done")]
    else:
        before = [
            _step("Fetch", "FETCH", status is Status.FETCHING, row.fetched_at is not None, tag),
            _step("Text", "EXTRACT", status is Status.EXTRACTING, row.extracted_at is not None, tag),
        ]
    return [
        *before,
        _step("Draft", "GENERATE", status is Status.GENERATING, status is Status.SAVED, tag),
    ]


def _step(name: str, tag: str, working: bool, done: bool, failed_at: str) -> Step:
    if failed_at == tag:
        return Step(name, "Failed", "failed")
    if working:
        return Step(name, "Under way", "working")
    return Step(name, "Done", "done") if done else Step(name, "Waiting", "waiting")


def _failure(row: Row) -> Failure:
    tag, _, message = row.error_message.partition("] ")
    tag = tag.lstrip("[")
    return told(FAILED_STEPS.get(tag, "Failed"), message, row.error_code)
