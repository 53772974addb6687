"""`nexus status`: lists items and their states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from uuid import UUID

import typer

from nexus import urls
from nexus.cli import say
from nexus.cli.context import acting_user, connected
from nexus.cli.failures import FAILED, Refused
from nexus.cli.outcome import blocked_of, bring_command, waiting_of, why_failed
from nexus.db.session import Session, Sessions
from nexus.errors import ApiError, public_code
from nexus.libraries import catalog
from nexus.media import queries
from nexus.media.list_filters import Sort, Wanted
from nexus.media.listing import count_items, list_items
from nexus.media.queries import View
from nexus.settings import Settings
from nexus.states.media import Kind, MediaStatus


def show_status(
    data_dir: Path | None,
    user: UUID | None,
    media_ids: Sequence[UUID],
    wanted: Wanted,
    library: str | None,
    limit: int,
    *,
    as_json: bool,
) -> None:
    with connected(data_dir) as (chosen, sessions):
        viewer = acting_user(chosen, user)
        if media_ids:
            (views, missing), counts = _named(sessions, viewer, media_ids), None
        else:
            missing = []
            views, counts = _first(sessions, viewer, wanted, library, limit)
        if as_json:
            from nexus.web.api.schemas import MediaOut  # noqa: PLC0415 the models of the API are slow to load

            say.as_json([MediaOut.of(view, viewer).model_dump(mode="json") for view in views], indent=2)
        else:
            with sessions.read() as session:
                reasons = {view.row.id: _reason_of(session, chosen, view) for view in views}
            _show(chosen, counts, views, reasons, sessions.clock())
        for media_id in missing:
            say.problem(f"{media_id}: Not found, or you don't have access.")
        if missing:
            raise typer.Exit(FAILED)


def wanted_of(
    status: MediaStatus | None,
    kind: Kind | None,
    site: str | None,
    since: datetime | None,
    before: datetime | None,
    read: bool | None,
    favourite: bool | None,
    archived: bool,
    sort: str,
    reverse: bool,
) -> Wanted:
    """Return what the options ask for. A day begins at midnight where the user is."""
    return Wanted(
        statuses=frozenset() if status is None else frozenset({status}),
        kind=kind,
        site=None if site is None else urls.host_of(urls.with_scheme(site)) or site,
        added_from=since and since.astimezone(),
        added_until=before and before.astimezone(),
        is_read=read,
        is_archived=archived,
        is_favourite=favourite,
        sort=Sort(sort),
        is_reversed=reverse,
    )


def _named(sessions: Sessions, viewer: UUID, media_ids: Sequence[UUID]) -> tuple[list[View], list[UUID]]:
    views, missing = [], []
    with sessions.read() as session:
        for media_id in media_ids:
            try:
                views.append(queries.get_media(session, media_id, viewer))
            except ApiError:
                missing.append(media_id)
    return views, missing


def _first(
    sessions: Sessions, viewer: UUID, wanted: Wanted, library: str | None, limit: int
) -> tuple[list[View], dict[MediaStatus, int]]:
    """Return the first items, and how many there are of all that could be listed."""
    with sessions.snapshot() as session:
        library_id = None if library is None else _library(session, viewer, library)
        chosen = replace(wanted, library_id=library_id)
        page = list_items(session, viewer, chosen, most=limit)
        counts = count_items(session, viewer, chosen)
    return page.items, {status: counts[status] for status in wanted.statuses} or counts


def _library(session: Session, viewer: UUID, name: str) -> UUID:
    known = catalog.list_libraries(session, viewer)
    wanted = " ".join(name.split())
    found = next((row.id for row in known if row.name == wanted), None)
    if found is None:
        names = say.joined(f"“{row.name}”" for row in known)
        raise Refused(f"There is no library “{wanted}”." + (f" Your libraries: {names}." if known else ""))
    library_id: UUID = found
    return library_id


def _show(
    chosen: Settings,
    counts: dict[MediaStatus, int] | None,
    views: Sequence[View],
    reasons: Mapping[UUID, str],
    now: datetime,
) -> None:
    if say.is_to_a_person():
        from nexus.cli import status_table  # noqa: PLC0415 rich is slow to load, and a pipe does not need it

        status_table.draw_items(chosen, counts, views, reasons, now)
        return
    if counts is not None:
        by_status = (f"{status.value}={count}" for status, count in counts.items())
        say.line(f"listed={len(views)}", f"of={sum(counts.values())}", *by_status)
    for view in views:
        say.line(
            view.row.id, view.row.processing_status, view.shown_kind, label_of(view), reasons[view.row.id]
        )


def label_of(view: View) -> str:
    return say.printable(view.row.title or view.row.canonical_url or view.row.kind)


def _reason_of(session: Session, chosen: Settings, view: View) -> str:
    """Return why it failed or what it waits for; nothing if it does neither. If the viewer has entered a text, nothing
    has to be done about either."""
    row = view.row
    if row.is_entered:
        return "You can read the text that you entered by hand."
    if not row.last_error_code:
        blocked = blocked_of(session, view)
        bring = f" If you have its transcript: {bring_command(chosen, view)}"
        return blocked + bring if blocked else waiting_of(view)
    return say.printable(why_failed(view, public_code(row.last_error_code), row.last_error_message or ""))
