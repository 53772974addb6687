"""Jobs and stories as pages show them: the words, the steps, and the evidence beside each claim."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from math import ceil
from uuid import UUID

from markupsafe import Markup

from nexus.db.session import Row
from nexus.draft import BACKGROUND, WHAT_HAPPENED, Claim
from nexus.editorial.stories import OPEN, Sections, Wording
from nexus.errors import WorkError, describe, tree
from nexus.states.job import FETCH, MANUAL_ENTRY, Status
from nexus.states.machine import Verdict
from nexus.states.story import STORY
from nexus.states.story import Status as StoryStatus
from nexus.web.api.schemas import actor
from nexus.web.views import story_formats
from nexus.web.views.items import ACTORS, Badge, Failure, Moment, address_of, host_of, safe_link, told

BADGES = {
    Status.QUEUED: Badge("Waiting", "queued"),
    Status.FETCHING: Badge("Fetching", "working"),
    Status.EXTRACTING: Badge("Taking the text out", "working"),
    Status.EXTRACTED: Badge("Ready for a draft", "draft"),
    Status.READY_TO_GENERATE: Badge("Ready for a draft", "draft"),
    Status.GENERATING: Badge("Writing the draft", "working"),
    Status.SAVED: Badge("Story saved", "ready"),
    Status.FAILED: Badge("Failed", "failed"),
}
STORY_BADGES = {
    StoryStatus.DRAFT: Badge("Draft", "draft"),
    StoryStatus.REVIEW: Badge("In review", "queued"),
    StoryStatus.PUBLISHED: Badge("Published", "ready"),
    StoryStatus.ARCHIVED: Badge("Archived", "archived"),
    StoryStatus.DISCARDED: Badge("Discarded", "close"),
}
EVENTS = {
    "create": "Created",
    "fetch": "Fetch asked for",
    "fetched": "Page fetched",
    "claim_extraction": "Extraction started",
    "extracted": "Title and text are there",
    "adopt": "Taken from the library",
    "generate": "Draft asked for",
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
#: The same step once more: a worker takes it up.
TAKEN_UP = {"fetch": "Fetch started", "generate": "Draft started"}
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
#: Each error that can end a step, as its class says it.
SENTENCES = {error.code: describe(error) for error in tree(WorkError)}
AWAITED = frozenset({Status.FETCHING, Status.EXTRACTING})
#: How long an editor waits for a text before the page offers to have it entered by hand.
PATIENCE = timedelta(seconds=30)
READY = frozenset({Status.EXTRACTED, Status.READY_TO_GENERATE})
_SIGN = Markup('<a class="evidence-sign" id="evidence-{0}" href="#claim-{0}" aria-label="Claim {0}">{0}</a>')


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
    #: Its text is being fetched or taken out.
    awaits_text: bool


@dataclass(frozen=True)
class Failures:
    """How many jobs have failed with one error."""

    code: str
    sentence: str
    count: int


@dataclass(frozen=True)
class Point:
    """A claim with its number on the page."""

    number: int
    claim: Claim


@dataclass(frozen=True)
class Line:
    """A claim as it stands in the editor. It has its point only where it is as it was saved."""

    text: str
    quote: str
    point: Point | None


@dataclass(frozen=True)
class Section:
    name: str
    heading: str
    lines: list[Line]
    #: How many it takes.
    most: int


@dataclass(frozen=True)
class Story:
    """One story, ready for a template."""

    id: UUID
    row: Row
    badge: Badge
    what_happened: list[Point]
    background: list[Point]
    unsupported: int
    author: str
    sources: list[tuple[str, str | None]]
    may_edit: bool
    #: Verb and label of every edge that leads on from here.
    verbs: list[tuple[str, str]]

    @property
    def points(self) -> list[Point]:
        return [*self.what_happened, *self.background]

    @property
    def first_unsupported(self) -> int:
        return next(point.number for point in self.points if not point.claim.evidence.found)


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
        may_enter=MANUAL_ENTRY.decide(status) is Verdict.APPLY or status is Status.FETCHING,
        awaits_text=status in AWAITED,
    )


def seconds_left(row: Row, events: Sequence[Row], now: datetime) -> int:
    """How long the page goes on waiting for a text, counted from when its fetch was asked for."""
    asked = [event.at for event in events if event.event == FETCH.verb and event.from_status == Status.QUEUED]
    waited: timedelta = now - max(asked, default=row.created_at)
    return max(0, ceil((PATIENCE - waited).total_seconds()))


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
        author=story_formats.author(row),
        sources=[(source["title"], safe_link(source["url"])) for source in json.loads(row.sources)],
        may_edit=status in OPEN,
        verbs=[(verb, name) for verb, name in VERBS.items() if edges[verb].decide(status) is Verdict.APPLY],
    )


def failures(row: Row) -> Failures:
    sentence = told("", SENTENCES.get(row.error_code, ""), row.error_code).sentence
    return Failures(row.error_code, sentence, row.count)


def sections(look: Story, wording: Wording) -> list[Section]:
    """What the editor holds, in the order of the page."""
    parts = (
        ("happened", "What happened", wording.what_happened, look.what_happened, WHAT_HAPPENED),
        ("background", "Background", wording.background, look.background, BACKGROUND),
    )
    return [
        Section(name, heading, _lines(pairs, points), most)
        for name, heading, pairs, points, (_, most) in parts
    ]


def _lines(pairs: Sequence[tuple[str, str]], points: list[Point]) -> list[Line]:
    left = list(points)
    lines: list[Line] = []
    for pair in pairs:
        same = (point for point in left if (point.claim.text, point.claim.evidence.quote) == pair)
        found = next(same, None)
        if found:
            left.remove(found)
        lines.append(Line(*pair, found))
    return lines


def moment(row: Row, viewer: UUID) -> Moment:
    who = ACTORS[actor(row.actor, viewer)]
    if row.subject == "story":
        tone = STORY_BADGES[StoryStatus(row.to_status)].tone
        # What stands for the attempt there is the revision, which says nothing in a history.
        return Moment(EVENTS.get(row.event, row.event), row._replace(attempt=None), who, tone)
    words = EVENTS if row.from_status != row.to_status else {**EVENTS, **TAKEN_UP}
    return Moment(words.get(row.event, row.event), row, who, BADGES[Status(row.to_status)].tone)


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
        parts.append(_mark(piece, numbers, begun) if numbers else piece)
    return Markup("").join(parts)


def _mark(piece: Markup, numbers: list[int], begun: list[int]) -> Markup:
    signs = Markup("").join(map(_SIGN.format, begun))
    return Markup('<mark data-claims="{}">{}{}</mark>').format(" ".join(map(str, numbers)), signs, piece)


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
