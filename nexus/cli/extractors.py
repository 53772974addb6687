"""`nexus extractors`: lists what is installed to read each kind."""

from __future__ import annotations

from rich.table import Table

from nexus.cli import say
from nexus.cli.context import unopened
from nexus.extract import AVAILABLE_EXTRACTORS
from nexus.extract.registry import extractor_origin, extractor_place
from nexus.states.media import Kind


def list_extractors(*, as_json: bool) -> None:
    unopened()
    rows = [_row(kind) for kind in Kind]
    if as_json:
        say.as_json(rows, indent=2)
    elif say.is_to_a_person():
        table = Table("Kind", "Extractor", "From", box=None, pad_edge=False)
        for row in rows:
            table.add_row(row["kind"], row["extractor"] or "[dim]none: its items wait[/dim]", row["package"])
        say.out().print(table)
    else:
        for row in rows:
            say.line(row["kind"], row["extractor"] or "-", row["package"] or "-")


def _row(kind: Kind) -> dict[str, str | None]:
    found = AVAILABLE_EXTRACTORS.get(kind)
    if found is None:
        return {"kind": kind.value, "extractor": None, "package": None}
    return {"kind": kind.value, "extractor": extractor_place(found), "package": extractor_origin(found)}
