"""`nexus refresh`: reads the sources of items again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

import typer

from nexus.app import App
from nexus.cli import say
from nexus.cli.context import acting_user, opened
from nexus.cli.failures import FAILED, MISUSED, Refused
from nexus.errors import ApiError, public_code
from nexus.libraries import access
from nexus.media import refresh
from nexus.queue import Work

ELSEWHERE = "left to a worker"


def refresh_items(
    data_dir: Path | None, user: UUID | None, media_ids: Sequence[UUID], *, outdated: bool, as_json: bool
) -> None:
    """Refresh these items, or all that an older extractor read, and say how each ended."""
    if bool(media_ids) == outdated:
        why = "Give the ids of the items to refresh, or --outdated for all that an older extractor read."
        raise Refused(why, MISUSED)
    with opened(data_dir) as app:
        viewer = acting_user(app.settings, user)
        chosen = _outdated(app, viewer) if outdated else list(dict.fromkeys(media_ids))
        if not chosen:
            say.hint("Nothing is outdated: every item was read by an extractor that is installed now.")
        results = [_tell(app, viewer, media_id, as_json=as_json) for media_id in chosen]
    if not all(results):
        raise typer.Exit(FAILED)


def _outdated(app: App, viewer: UUID) -> list[UUID]:
    with app.sessions.begin() as session:
        access.ensure_user(session, viewer)
        return refresh.outdated(session, app.tools, viewer)


def _tell(app: App, viewer: UUID, media_id: UUID, *, as_json: bool) -> bool:
    """Report a refresh; return whether it went well, as far as is known."""
    outcome, code, why = _refreshed(app, viewer, media_id)
    if as_json:
        say.as_json({"media_id": str(media_id), "outcome": outcome, "code": code, "message": why})
    else:
        say.line(media_id, outcome, why or "")
    return code is None


def _refreshed(app: App, viewer: UUID, media_id: UUID) -> tuple[str, str | None, str | None]:
    """Refresh an item here and now, unless Celery workers do it or another process was faster."""
    try:
        asked, _ = refresh.request(app.sessions, app.queue, media_id, viewer, None)
    except ApiError as error:
        return "refused", error.code, error.message
    done = None if app.queue.works_elsewhere else app.kernel.run(Work(refresh.REFRESH, asked))
    with app.sessions.read() as session:
        left = refresh.present(session, media_id, viewer)
    if left is not None and left.error_code is not None:
        return "failed", public_code(left.error_code), left.error_message
    return done or ELSEWHERE, None, None
