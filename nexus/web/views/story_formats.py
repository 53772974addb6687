"""A story as a file: Markdown or JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from fastapi import Response

from nexus.db.rows import StoryRow
from nexus.draft import Evidence, StoryClaim, is_supported
from nexus.draft.extractive import EXTRACTIVE
from nexus.editorial.queries import ShownStoryRow
from nexus.editorial.stories import Sections
from nexus.storage.names import disposition
from nexus.web.api.story_schemas import StoryDetail

UNSUPPORTED = "not found in the article"
HEADINGS = (("What happened", "what_happened"), ("Background", "background"))
#: Characters that mean something in Markdown.
_MARKS = re.compile(r"[\\`*_\[\]<>#|~&]")
#: What begins a list item there.
_POINT = re.compile(r"^(\d*)([-+.)])(?=[ -]|$)")


def exported(story: StoryRow, chosen: str) -> Response:
    """A story as a file, named after its slug."""
    if chosen == "json":
        body, kind, ending = StoryDetail.of(story).model_dump_json(indent=2), "application/json", "json"
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
    by = "The article's own sentences, chosen without a model" if own else f"Drafted by {story.model}"
    cost = "" if own else f", {story.tokens_used:,} tokens"
    return f"{by}{cost}, then edited" if story.edited_at else f"{by}{cost}"


def markdown(story: StoryRow) -> str:
    """A story with the quotes under everything it says, and a note if they are not in the article."""
    sections = Sections.parse(story.sections)
    parts = [f"# {_marked(story.headline)}", *_support("Headline", story.headline, sections.headline)]
    parts += [_marked(story.summary), *_support("Summary", story.summary, sections.summary)]
    for heading, name in HEADINGS:
        claims: tuple[StoryClaim, ...] = getattr(sections, name)
        if claims:
            parts += [f"## {heading}", "\n".join(map(_point, claims))]
    parts += ["## Sources", "\n".join(map(_source, json.loads(story.sources)))]
    parts.append(f"{_marked(author(story))}, {story.generated_at:%-d %B %Y}.")
    return "\n\n".join(filter(None, parts)) + "\n"


def _point(claim: StoryClaim) -> str:
    if not claim.evidence.found:
        return f"- {_marked(claim.text)} *({UNSUPPORTED})*"
    if claim.text == claim.evidence.quote:
        return f"- {_marked(claim.text)}"
    return f"- {_marked(claim.text)}\n  > {_marked(claim.evidence.quote)}"


def _support(name: str, text: str, evidence: Sequence[Evidence]) -> list[str]:
    """A note if there is no support, or else the quotes that the text itself does not repeat."""
    if not is_supported(evidence):
        return [f"*({name}: {UNSUPPORTED})*"]
    quotes = [" ".join(one.quote.split()) for one in evidence]
    return ["\n".join(f"> {_marked(quote)}" for quote in quotes if quote not in text)]


def _source(source: dict[str, str | None]) -> str:
    title = _marked(source["title"] or "")
    return f"- [{title}](<{source['url']}>)" if source["url"] else f"- {title}"


def _marked(text: str) -> str:
    """Escape a text for Markdown, and put it on one line."""
    line = " ".join(text.split())
    return _POINT.sub(r"\1\\\2", _MARKS.sub(r"\\\g<0>", line))
