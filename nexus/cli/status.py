"""`nexus status`: what there is and how it is doing."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from uuid import UUID

import typer
from rich.table import Table
from rich.text import Text

from nexus.cli import say
from nexus.cli.context import acting_user, again, connected
from nexus.cli.failures import FAILED, Refused
from nexus.db.session import Sessions
from nexus.errors import ApiError, public_code
from nexus.libraries import catalog
from nexus.media import queries
from nexus.media.queries import View
from nexus.settings import Settings
from nexus.states.media import Status
from nexus.upkeep import counts as census


def run(
    data_dir: Path | None,
    user: UUID | None,
    media_ids: Sequence[UUID],
    status: Status | None,
    library: str | None,
    limit: int,
    *,
    as_json: bool,
) -> None:
    with connected(data_dir) as (chosen, sessions):
        viewer = acting_user(chosen, user)
        views, missing = (
            _named(sessions, viewer, media_ids)
            if media_ids
            else _latest(sessions, viewer, status, library, limit)
        )
        if as_json:
            from nexus.web.api.schemas import media_json  # noqa: PLC0415 the models of the API are slow to load

            say.as_json([media_json(view, viewer) for view in views], indent=2)
        else:
            _show(chosen, sessions, viewer, views, summary=not media_ids)
        for media_id in missing:
            say.problem(f"{media_id}: There is no such media, or you may not see it.")
        if missing:
            raise typer.Exit(FAILED)


def _named(sessions: Sessions, viewer: UUID, media_ids: Sequence[UUID]) -> tuple[list[View], list[UUID]]:
    views, missing = [], []
    with sessions.read() as session:
        for media_id in media_ids:
            try:
                views.append(queries.get(session, media_id, viewer))
            except ApiError:
                missing.append(media_id)
    return views, missing


def _latest(
    sessions: Sessions, viewer: UUID, status: Status | None, library: str | None, limit: int
) -> tuple[list[View], list[UUID]]:
    with sessions.read() as session:
        library_id = None if library is None else _library(sessions, viewer, library)
        page = queries.newest(session, viewer, library_id=library_id, status=status, most=limit)
    return page.items, []


def _library(sessions: Sessions, viewer: UUID, name: str) -> UUID:
    with sessions.read() as session:
        known = catalog.mine(session, viewer)
    wanted = " ".join(name.split())
    found = next((row.id for row in known if row.name == wanted), None)
    if found is None:
        names = say.joined(f"“{row.name}”" for row in known)
        raise Refused(f"There is no library “{wanted}”." + (f" There is {names}." if known else ""))
    library_id: UUID = found
    return library_id


def _show(
    chosen: Settings, sessions: Sessions, viewer: UUID, views: Sequence[View], *, summary: bool
) -> None:
    console = say.out()
    counts = _counts(sessions, viewer) if summary else {}
    now = sessions.clock()
    if not console.is_terminal:
        if summary:
            say.line(*(f"{status.value}={count}" for status, count in counts.items()))
        for view in views:
            say.line(view.row.id, view.row.processing_status, view.row.kind, _name(view), _reason(view))
        return
    if summary:
        console.print(_summary(chosen, counts))
    if views:
        console.print(_table(views, now))


def _counts(sessions: Sessions, viewer: UUID) -> dict[Status, int]:
    with sessions.read() as session:
        return census.by_status(session, viewer)


def _summary(chosen: Settings, counts: dict[Status, int]) -> Text:
    total = sum(counts.values())
    if not total:
        return Text(f"Nothing here yet. Take something in: {again(chosen, 'add URL')}")
    parts: list[Text] = [Text(say.amount(total, "media", "media"), "bold")]
    parts += [
        Text(f"{count} {status.value}", say.STYLES[status]) for status, count in counts.items() if count
    ]
    return Text(" · ").join(parts)


def _table(views: Sequence[View], now: datetime) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", expand=False)
    table.add_column("status", no_wrap=True)
    table.add_column("media", overflow="fold")
    table.add_column("added", no_wrap=True, style="dim")
    for view in views:
        row = view.row
        status = Status(row.processing_status)
        table.add_row(Text(status.value, say.STYLES[status]), _described(view), _age(row.created_at, now))
    return table


def _described(view: View) -> Text:
    """The title, then what is needed to go on: the address, the id, and why it failed."""
    row = view.row
    lines = [Text(_name(view), "bold")]
    if row.title and row.canonical_url:
        lines.append(Text(say.clean(row.canonical_url), "dim"))
    lines.append(Text(str(row.id), "dim"))
    if row.last_error_code:
        lines.append(Text(_reason(view), "red"))
    return Text("\n").join(lines)


def _name(view: View) -> str:
    return say.clean(view.row.title or view.row.canonical_url or view.row.kind)


def _reason(view: View) -> str:
    row = view.row
    if not row.last_error_code:
        return ""
    code = public_code(row.last_error_code)
    return say.clean(f"failed at {row.failure_stage} ({code}): {row.last_error_message}")


def _age(moment: datetime, now: datetime) -> str:
    passed = now - moment
    for unit, length in (("d", timedelta(days=1)), ("h", timedelta(hours=1)), ("min", timedelta(minutes=1))):
        if passed >= length:
            return f"{passed // length} {unit} ago"
    return "just now"
