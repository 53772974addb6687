"""What `nexus search` shows in a terminal: each item with its best passages, and the words in them marked."""

from __future__ import annotations

from collections.abc import Sequence

from rich.padding import Padding
from rich.text import Text

from nexus.cli import say
from nexus.cli.status import label_of
from nexus.media.searching.finding import SearchHit, SearchPage

MARKED = "bold yellow"


def draw_hits(found: SearchPage) -> None:
    console = say.out()
    for hit in found.items:
        console.print(_described(hit))
        for passage in hit.passages:
            console.print(Padding(_marked(passage.text, passage.marks), (0, 0, 0, 2)))
        console.print()
    if found.next_cursor is not None:
        console.print(Text(f"{len(found.items)} of {say.amount(found.total, 'item', 'items')}", "dim"))


def _described(hit: SearchHit) -> Text:
    """Return the title, and what the next command needs: the address and the id."""
    row = hit.view.row
    title = _marked(row.title, hit.title_marks) if row.title else Text(label_of(hit.view))
    title.stylize_before("bold")
    named = [say.printable(row.canonical_url)] if row.title and row.canonical_url else []
    return Text("\n").join([title, *(Text(one, "dim") for one in (*named, str(row.id)))])


def _marked(text: str, marks: Sequence[tuple[int, int]]) -> Text:
    """Return one line of a text with its marks. A stranger's control characters must not control the terminal."""
    pieces: list[tuple[str, str]] = []
    end = 0
    for first, last in marks:
        pieces += [(text[end:first], ""), (text[first:last], MARKED)]
        end = last
    pieces.append((text[end:], ""))
    shown = Text()
    for piece, style in pieces:
        shown.append("".join(mark if mark.isprintable() else " " for mark in piece), style)
    return shown
