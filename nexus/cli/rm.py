"""`nexus rm`: removes items from the user's libraries."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

import typer

from nexus.cli import say
from nexus.cli.context import acting_user, opened
from nexus.cli.failures import FAILED
from nexus.errors import ApiError
from nexus.media import deletions


def remove_items(
    data_dir: Path | None, user: UUID | None, media_ids: Sequence[UUID], *, as_json: bool
) -> None:
    """Remove each of these items. If one is refused, the others go on."""
    is_refused = False
    with opened(data_dir) as app:
        viewer = acting_user(app.settings, user)
        for media_id in dict.fromkeys(media_ids):
            error = None
            try:
                deletions.delete_media_and_files(app.sessions, app.files, viewer, media_id)
            except ApiError as raised:
                error, is_refused = raised, True
            _tell(media_id, error, as_json=as_json)
    if is_refused:
        raise typer.Exit(FAILED)


def _tell(media_id: UUID, error: ApiError | None, *, as_json: bool) -> None:
    if as_json:
        problem = None if error is None else {"code": error.code, "message": error.message}
        say.as_json({"media_id": str(media_id), "removed": error is None, "error": problem})
    elif error is None:
        say.line("removed", media_id)
    else:
        say.problem(f"{media_id}: {error.message}")
