"""A story as a file: Markdown or JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from fastapi import Response

from nexus.db.rows import StoryRow
from nexus.draft import Evidence, StoryClaim
from nexus.draft.extractive import EXTRACTIVE
from nexus.draft.support import support_of
from nexus.editorial.queries import ShownStoryRow
from nexus.editorial.quote_moments import QuoteMoments
from nexus.editorial.wording import Sections
from nexus.storage.names import disposition
from nexus.web.api.story_schemas import StoryDetail

UNSUPPORTED = "not found in the article"
EDITED = "edited since its quote was found"
MISSING = "not in the quote: {}"
HEADINGS = (("What happened", "what_happened"), ("Background", "background"))
#: Characters that mean something in Markdown.
_MARKS = re.compile(r"[\\`*_\[\]<>#|~&]")
#: What begins a list item there.
_POINT = re.compile(r"^(\d*)([-+.)])(?=[ -]|$)")


def exported(story: StoryRow, moments: QuoteMoments | None, chosen: str) -> Response:
    """A story as a file, named after its slug."""
    if chosen == "json":
        detail = StoryDetail.spoken(story, moments)
        body, kind, ending = detail.model_dump_json(indent=2, exclude_unset=True), "application/json", "json"
    else:
        body, kind, ending = markdown(story), "text/markdown; charset=utf-8", "md"
    headers = {
        "Content-Disposition": disposition(f"{story.slug}.{ending}"),
        "X-Content-Type-Options": "nosniff",
    }
    return Response(body, headers=headers, media_type=kind)


def author(story: ShownStoryRow) -> str:
    """Say who or what wrote a story."""
    own = story.model == EXTRACTIVE
    by = "Excerpts, no AI" if own else f"Drafted by {story.model}"
    cost = "" if own else f", {story.tokens_used:,} tokens"
    return f"{by}{cost}, then edited" if story.edited_at else f"{by}{cost}"


def corrected(story: ShownStoryRow) -> str:
    """Say that a story was corrected, when and how, or nothing."""
    if story.corrected_at is None:
        return ""
    day = f"Corrected on {story.corrected_at:%-d %B %Y}"
    return f"{day}: {story.correction}" if story.correction else f"{day}."


def markdown(story: StoryRow) -> str:
    """A story with the quotes under everything it says, and a note if they are not in the article."""
    sections = Sections.parse(story.sections)
    note = f"*{_marked(corrected(story))}*" if story.corrected_at else ""
    parts = [f"# {_marked(story.headline)}", note, *_support("Headline", story.headline, sections.headline)]
    parts += [_marked(story.summary), *_support("Summary", story.summary, sections.summary)]
    for heading, name in HEADINGS:
        claims: tuple[StoryClaim, ...] = getattr(sections, name)
        if claims:
            parts += [f"## {heading}", "\n".join(map(_point, claims))]
    parts += ["## Sources", "\n".join(map(_source, json.loads(story.sources)))]
    parts.append(f"{_marked(author(story))}, {story.generated_at:%-d %B %Y}.")
    return "\n\n".join(filter(None, parts)) + "\n"


def doubt_about(text: str, evidence: Sequence[Evidence]) -> str:
    """Say what is wrong with the evidence of a text, or nothing."""
    support = support_of(text, evidence)
    if not support.is_found:
        return UNSUPPORTED
    if support.is_edited:
        return EDITED
    return MISSING.format(", ".join(support.missing)) if support.missing else ""


def _point(claim: StoryClaim) -> str:
    doubt = doubt_about(claim.text, [claim.evidence])
    line = f"- {_marked(claim.text)}" + (f" *({_marked(doubt)})*" if doubt else "")
    if not claim.evidence.found or claim.text == claim.evidence.quote:
        return line
    return f"{line}\n  > {_marked(claim.evidence.quote)}"


def _support(name: str, text: str, evidence: Sequence[Evidence]) -> list[str]:
    """A note if there is no support, or else the quotes that the text itself does not repeat."""
    doubt = doubt_about(text, evidence)
    if doubt == UNSUPPORTED:
        return [f"*({name}: {doubt})*"]
    quotes = [" ".join(one.quote.split()) for one in evidence]
    shown = "\n".join(f"> {_marked(quote)}" for quote in quotes if quote not in text)
    return [f"*({name}: {_marked(doubt)})*", shown] if doubt else [shown]


def _source(source: dict[str, str | None]) -> str:
    title = _marked(source["title"] or "")
    return f"- [{title}](<{source['url']}>)" if source["url"] else f"- {title}"


def _marked(text: str) -> str:
    """Escape a text for Markdown, and put it on one line."""
    line = " ".join(text.split())
    return _POINT.sub(r"\1\\\2", _MARKS.sub(r"\\\g<0>", line))
