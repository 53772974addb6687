"""What `nexus status` shows in a terminal: a summary and a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from rich.table import Table
from rich.text import Text

from nexus.cli import say
from nexus.cli.status import label_of
from nexus.command_line import again
from nexus.media.queries import View
from nexus.settings import Settings
from nexus.states.media import STATE_WORDS, MediaStatus


def draw_items(
    chosen: Settings,
    counts: dict[MediaStatus, int] | None,
    views: Sequence[View],
    reasons: Mapping[UUID, str],
    now: datetime,
) -> None:
    """Draw the summary, if there are counts, and the table."""
    console = say.out()
    if counts is not None:
        console.print(_summary(chosen, counts, len(views)))
    if views:
        console.print(_table(views, reasons, now))


def _summary(chosen: Settings, counts: dict[MediaStatus, int], listed: int) -> Text:
    total = sum(counts.values())
    if not total:
        return Text(f"Nothing here yet. Add something: {again(chosen, 'add URL')}")
    items = say.amount(total, "item", "items")
    parts: list[Text] = [Text(items if listed == total else f"{listed} of {items}", "bold")]
    parts += [
        Text(f"{count} {STATE_WORDS[status].lower()}", say.STYLES[status])
        for status, count in counts.items()
        if count
    ]
    return Text(" · ").join(parts)


def _table(views: Sequence[View], reasons: Mapping[UUID, str], now: datetime) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", expand=False)
    table.add_column("status", no_wrap=True)
    table.add_column("item", overflow="fold")
    table.add_column("added", no_wrap=True, style="dim")
    for view in views:
        row = view.row
        status = MediaStatus(row.processing_status)
        table.add_row(
            Text(STATE_WORDS[status], say.STYLES[status]),
            _described(view, reasons[row.id]),
            _age(row.created_at, now),
        )
    return table


def _described(view: View, reason: str) -> Text:
    """Return the title, and what the next command needs: the address, the id, and why it failed or waits."""
    row = view.row
    lines = [Text(label_of(view), "bold")]
    if row.title and row.canonical_url:
        lines.append(Text(say.printable(row.canonical_url), "dim"))
    lines.append(Text(str(row.id), "dim"))
    if reason:
        lines.append(Text(reason, "red" if row.last_error_code and not row.is_entered else "yellow"))
    return Text("\n").join(lines)


def _age(moment: datetime, now: datetime) -> str:
    passed = now - moment
    for unit, length in (("d", timedelta(days=1)), ("h", timedelta(hours=1)), ("min", timedelta(minutes=1))):
        if passed >= length:
            return f"{passed // length} {unit} ago"
    return "just now"
