"""Stories as pages show them: the claims, the evidence beside each, and what can be done next."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from uuid import UUID

from markupsafe import Markup

from nexus.db.rows import HistoryRow
from nexus.draft import BACKGROUND, WHAT_HAPPENED, StoryClaim
from nexus.editorial.queries import ShownStoryRow
from nexus.editorial.stories import OPEN, Sections, Wording
from nexus.states.machine import Verdict
from nexus.states.story import STORY, Status
from nexus.web.api.schemas import actor_of
from nexus.web.views import story_formats
from nexus.web.views.items import ACTORS, Badge, ShownEvent, safe_link

STORY_BADGES = {
    Status.DRAFT: Badge("Draft", "draft"),
    Status.REVIEW: Badge("In review", "queued"),
    Status.PUBLISHED: Badge("Published", "ready"),
    Status.ARCHIVED: Badge("Archived", "archived"),
    Status.DISCARDED: Badge("Discarded", "close"),
}
STORY_EVENTS = {
    "create": "Created",
    "submit": "Sent to review",
    "rewrite": "Back to draft",
    "publish": "Published",
    "archive": "Archived",
    "discard": "Discarded",
    "restore": "Restored",
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
_SIGN = Markup('<a class="evidence-sign" id="evidence-{0}" href="#claim-{0}" aria-label="Claim {0}">{0}</a>')


@dataclass(frozen=True)
class Point:
    """A claim with its number on the page."""

    number: int
    claim: StoryClaim


@dataclass(frozen=True)
class EditedClaim:
    """A claim as it stands in the editor. It has its point only if it is unchanged since it was saved."""

    text: str
    quote: str
    point: Point | None


@dataclass(frozen=True)
class EditedSection:
    name: str
    heading: str
    lines: list[EditedClaim]
    #: How many claims it can hold.
    most: int


@dataclass(frozen=True)
class ShownStory:
    """A story, ready for a template."""

    id: UUID
    row: ShownStoryRow
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


def show_story(row: ShownStoryRow) -> ShownStory:
    status, sections = row.status, Sections.parse(row.sections)
    first = [Point(number, claim) for number, claim in enumerate(sections.what_happened, 1)]
    rest = [Point(number, claim) for number, claim in enumerate(sections.background, len(first) + 1)]
    edges = {edge.verb: edge for edge in STORY}
    return ShownStory(
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


def show_story_event(row: HistoryRow, viewer: UUID) -> ShownEvent:
    return ShownEvent(
        STORY_EVENTS.get(row.event, row.event),
        ACTORS[actor_of(row, viewer)],
        STORY_BADGES[Status(row.to_status)].tone,
        row.from_status,
        row.to_status,
        row.at,
        attempt=None,  # a story's history has the revision there, which tells a reader nothing
        error_code=row.error_code,
    )


def edited_sections(story: ShownStory, wording: Wording) -> list[EditedSection]:
    """Return what the editor holds, in the order of the page."""
    parts = (
        ("happened", "What happened", wording.what_happened, story.what_happened, WHAT_HAPPENED),
        ("background", "Background", wording.background, story.background, BACKGROUND),
    )
    return [
        EditedSection(name, heading, _edited_claims(pairs, points), most)
        for name, heading, pairs, points, (_, most) in parts
    ]


def _edited_claims(pairs: Sequence[tuple[str, str]], points: list[Point]) -> list[EditedClaim]:
    left = list(points)
    claims: list[EditedClaim] = []
    for pair in pairs:
        same = (point for point in left if (point.claim.text, point.claim.evidence.quote) == pair)
        found = next(same, None)
        if found:
            left.remove(found)
        claims.append(EditedClaim(*pair, found))
    return claims


def everything_said(wording: Wording) -> set[str]:
    """Return every text and quote of a wording, to find what only one of two wordings says."""
    claims = (*wording.what_happened, *wording.background)
    return {wording.headline, wording.summary, *chain.from_iterable(claims)}


def marked_article(text: str, points: list[Point]) -> Markup:
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
