"""What was found, for the page of a search: items, their passages, and the words marked in both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from markupsafe import Markup, escape

from nexus.extract import Extractor
from nexus.media.searching.finding import SearchHit
from nexus.search.marks import Span
from nexus.states.media import Kind
from nexus.web.links import passage_address
from nexus.web.views.items import ShownItem, show_item


@dataclass(frozen=True)
class ShownPassage:
    address: str
    html: Markup


@dataclass(frozen=True)
class ShownHit:
    item: ShownItem
    title: Markup
    #: Where its best passage is, or else its text begins.
    address: str
    passages: list[ShownPassage]


def present_hits(
    hits: Sequence[SearchHit], extractors: Mapping[Kind, Extractor], viewer: UUID
) -> list[ShownHit]:
    return [_show(hit, show_item(hit.view, extractors, viewer)) for hit in hits]


def _show(hit: SearchHit, item: ShownItem) -> ShownHit:
    passages = [
        ShownPassage(passage_address(hit.view.row.id, one), with_marks(one.text, one.marks))
        for one in hit.passages
    ]
    titled = hit.view.row.title
    return ShownHit(
        item,
        with_marks(titled, hit.title_marks) if titled else escape(item.title),
        passages[0].address if passages else f"/items/{item.id}",
        passages,
    )


def with_marks(text: str, marks: Sequence[Span]) -> Markup:
    """Return a text as html, with the words marked that were looked for."""
    html, end = Markup(), 0
    for first, last in marks:
        html += escape(text[end:first]) + Markup("<mark>{}</mark>").format(text[first:last])
        end = last
    return html + escape(text[end:])
