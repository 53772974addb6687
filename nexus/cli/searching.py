"""`nexus search`: finds items by their words and by what they mean."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

from nexus.cli import say
from nexus.cli.context import acting_user, opened
from nexus.cli.status import label_of
from nexus.media.searching.finding import Asked, SearchPage, search_items


def print_found(data_dir: Path | None, user: UUID | None, text: str, limit: int, *, as_json: bool) -> None:
    with opened(data_dir) as app:
        viewer = acting_user(app.settings, user)
        found = search_items(app.tools, viewer, Asked(text), most=limit)
    if as_json:
        from nexus.web.api.search_schemas import FoundPage  # noqa: PLC0415 the models of the API are slow to load

        say.as_json(FoundPage.of(found, viewer).model_dump(mode="json"), indent=2)
        return
    _show(found)
    if hint := hint_for(found):
        say.hint(hint)


def hint_for(found: SearchPage) -> str:
    """Return what to say about a search that found no words, whatever meaning may have found."""
    hints = [] if found.items else ["Nothing found."]
    return " ".join([*hints, *(f"Did you mean: {one}" for one in found.suggestions)])


def _show(found: SearchPage) -> None:
    if say.is_to_a_person():
        from nexus.cli import found_items  # noqa: PLC0415 rich is slow to load, and a pipe does not need it

        found_items.draw_hits(found)
        return
    for hit in found.items:
        best = (one.text for one in hit.passages[:1])
        say.line(hit.view.row.id, f"{hit.score:.2f}", label_of(hit.view), *best)
