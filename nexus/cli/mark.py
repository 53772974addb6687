"""`nexus mark`: notes about items, for the user alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

import typer

from nexus.cli import say
from nexus.cli.context import acting_user, connected
from nexus.cli.failures import FAILED, Refused
from nexus.media.bulk import mark_each
from nexus.media.shelving import Marks


def mark_items(
    data_dir: Path | None,
    user: UUID | None,
    media_ids: Sequence[UUID],
    read: bool | None,
    archived: bool | None,
    favourite: bool | None,
    title: str | None,
    *,
    as_json: bool,
) -> None:
    """Mark each of these items. If one is refused, the others go on."""
    marks = Marks(read, archived, favourite, title)
    if marks == Marks():
        raise Refused("Nothing to mark. Give --read, --archive, --favourite, or --title.")
    if title is not None and len(set(media_ids)) > 1:
        raise Refused("A title is for one item. Name only one.")
    with connected(data_dir) as (chosen, sessions):
        done = mark_each(sessions, acting_user(chosen, user), media_ids, marks)
    for media_id in done.done:
        if as_json:
            say.as_json({"media_id": str(media_id), "marked": True, "error": None})
        else:
            say.line("marked", media_id)
    for refused in done.refused:
        if as_json:
            problem = {"code": refused.code, "message": refused.message}
            say.as_json({"media_id": str(refused.media_id), "marked": False, "error": problem})
        else:
            say.problem(f"{refused.media_id}: {refused.message}")
    if done.refused:
        raise typer.Exit(FAILED)
