"""Stories as pages show them: the claims, the evidence beside each, and what can be done next."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, groupby, pairwise
from uuid import UUID

from markupsafe import Markup

from nexus.db.rows import HistoryRow
from nexus.draft import BACKGROUND, WHAT_HAPPENED, Evidence, StoryClaim
from nexus.draft.support import Support, support_of
from nexus.editorial.queries import ShownStoryRow
from nexus.editorial.quote_moments import QuoteMoments
from nexus.editorial.stories import OPEN
from nexus.editorial.wording import Sections, Wording
from nexus.states.machine import Verdict
from nexus.states.story import CORRECT, STORY, StoryStatus
from nexus.web.api import story_formats
from nexus.web.api.schemas import actor_of
from nexus.web.links import moment_address
from nexus.web.views.filters import clock_time
from nexus.web.views.histories import ACTORS, ShownEvent
from nexus.web.views.items import Badge, safe_link

STORY_BADGES = {
    StoryStatus.DRAFT: Badge("Draft", "draft"),
    StoryStatus.REVIEW: Badge("In review", "queued"),
    StoryStatus.PUBLISHED: Badge("Published", "ready"),
    StoryStatus.ARCHIVED: Badge("Archived", "archived"),
    StoryStatus.DISCARDED: Badge("Discarded", "close"),
}
STORY_EVENTS = {
    "create": "Created",
    "submit": "Sent to review",
    "rewrite": "Back to draft",
    "publish": "Published",
    "correct": "Corrected",
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
_SIGN = Markup('<a class="evidence-sign" id="evidence-{}" href="#claim-{}" aria-label="{}">{}</a>')


@dataclass(frozen=True)
class Point:
    """A claim with its number on the page."""

    number: int
    claim: StoryClaim

    @property
    def support(self) -> Support:
        return support_of(self.claim.text, [self.claim.evidence])


@dataclass(frozen=True)
class ShownText:
    """The headline or the summary, with what supports it."""

    #: Its name in forms and anchors.
    name: str
    text: str
    evidence: tuple[Evidence, ...]

    @property
    def support(self) -> Support:
        return support_of(self.text, self.evidence)

    @property
    def label(self) -> str:
        return self.name.capitalize()

    @property
    def quotes(self) -> list[str]:
        return [" ".join(one.quote.split()) for one in self.evidence]


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
    headline: ShownText
    summary: ShownText
    what_happened: list[Point]
    background: list[Point]
    author: str
    sources: list[tuple[str, str | None]]
    may_edit: bool
    may_correct: bool
    #: Verb and label of every edge that leads on from here.
    verbs: list[tuple[str, str]]

    @property
    def points(self) -> list[Point]:
        return [*self.what_happened, *self.background]

    @property
    def unsupported(self) -> list[tuple[str, str]]:
        """Anchor and words of everything that lacks support or has to be checked; for claims, of the first of them."""
        found = []
        for text in (self.headline, self.summary):
            if not text.support.is_full:
                found.append((text.name, f"{text.label} {_lack(text.support)}"))
        lacking = [(_lack(point.support), point.number) for point in self.points if not point.support.is_full]
        for words, same in groupby(sorted(lacking, reverse=True), key=lambda lack: lack[0]):
            numbers = [number for _, number in same]
            claims = "1 claim" if len(numbers) == 1 else f"{len(numbers)} claims"
            found.append((str(min(numbers)), f"{claims} {words}"))
        return found


def _lack(support: Support) -> str:
    return "to check" if support.is_found else "without support"


def show_story(row: ShownStoryRow) -> ShownStory:
    status, sections = row.status, Sections.parse(row.sections)
    first = [Point(number, claim) for number, claim in enumerate(sections.what_happened, 1)]
    rest = [Point(number, claim) for number, claim in enumerate(sections.background, len(first) + 1)]
    edges = {edge.verb: edge for edge in STORY}
    return ShownStory(
        id=row.id,
        row=row,
        badge=STORY_BADGES[status],
        headline=ShownText("headline", row.headline, sections.headline),
        summary=ShownText("summary", row.summary, sections.summary),
        what_happened=first,
        background=rest,
        author=story_formats.author(row),
        sources=[(source["title"], safe_link(source["url"])) for source in json.loads(row.sources)],
        may_edit=status in OPEN,
        may_correct=status in CORRECT.sources,
        verbs=[(verb, name) for verb, name in VERBS.items() if edges[verb].decide(status) is Verdict.APPLY],
    )


def show_story_event(row: HistoryRow, viewer: UUID) -> ShownEvent:
    return ShownEvent(
        STORY_EVENTS.get(row.event, row.event),
        ACTORS[actor_of(row, viewer)],
        STORY_BADGES[StoryStatus(row.to_status)].tone,
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


def spoken_quotes(story: ShownStory, moments: QuoteMoments | None) -> dict[str, list[tuple[str, str]]]:
    """Return the address and the time of each quote that is spoken, by what it supports: `headline`, `summary`, or the
    number of a claim."""
    if moments is None:
        return {}
    supports = {text.name: text.evidence for text in (story.headline, story.summary)}
    supports |= {str(point.number): (point.claim.evidence,) for point in story.points}
    return {
        name: [
            (moment_address(moments.media_id, at), clock_time(at // 1000))
            for one in evidence
            if (at := moments.moment_at(one.start)) is not None
        ]
        for name, evidence in supports.items()
    }


def everything_said(wording: Wording) -> set[str]:
    """Return every text and quote of a wording, to find what only one of two wordings says."""
    claims = (*wording.what_happened, *wording.background)
    quotes = (*(wording.headline_quotes or ()), *(wording.summary_quotes or ()))
    return {wording.headline, wording.summary, *quotes, *chain.from_iterable(claims)}


def marked_article(text: str, story: ShownStory) -> Markup:
    """The article with every passage that supports the story marked, and a sign that says what it supports."""
    spans = _spans(story)
    places = sorted({0, len(text), *(place for start, end, *_ in spans for place in (start, end))})
    parts: list[Markup] = []
    for start, end in pairwise(places):
        piece = Markup("{}").format(text[start:end])
        names = [name for first, last, name, _ in spans if first <= start and end <= last]
        signs = Markup("").join(sign for first, _, _, sign in spans if first == start)
        mark = Markup('<mark data-claims="{}">{}{}</mark>').format(" ".join(names), signs, piece)
        parts.append(mark if names else piece)
    return Markup("").join(parts)


def _spans(story: ShownStory) -> list[tuple[int, int, str, Markup]]:
    """Return where each piece of evidence begins and ends, what it supports, and its sign."""
    signed = [
        (
            evidence,
            text.name,
            _SIGN.format(f"{text.name}-{place}", text.name, f"Supports the {text.name}", text.label[0]),
        )
        for text in (story.headline, story.summary)
        for place, evidence in enumerate(text.evidence, 1)
    ]
    for point in story.points:
        number = str(point.number)
        sign = _SIGN.format(number, number, f"Claim {number}", number)
        signed.append((point.claim.evidence, number, sign))
    return [
        (evidence.start, evidence.end, name, sign)
        for evidence, name, sign in signed
        if evidence.start is not None and evidence.end is not None
    ]
