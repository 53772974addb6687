"""`nexus transcript`: the transcript of a video or an episode, from a file."""

from __future__ import annotations

import sys
from pathlib import Path
from uuid import UUID

from nexus.cli import say
from nexus.cli.context import acting_user, opened
from nexus.cli.failures import Refused
from nexus.errors import ApiError
from nexus.extract import Hints
from nexus.media.recordings.own_transcripts import MOST_TRANSCRIPT, bring_transcript


def bring_from_file(
    data_dir: Path | None, user: UUID | None, media_id: UUID, path: Path, *, as_json: bool
) -> None:
    data = _read(path)
    with opened(data_dir) as app:
        viewer = acting_user(app.settings, user)
        try:
            number = bring_transcript(app.tools, media_id, viewer, data, Hints(filename=path.name))
        except ApiError as error:
            raise Refused(error.message) from error
    if as_json:
        say.as_json({"media_id": str(media_id), "revision": number})
    else:
        say.line(f"This transcript is your version {number} now. Nobody else can read it.")


def _read(path: Path) -> bytes:
    try:
        if str(path) == "-":
            return sys.stdin.buffer.read(MOST_TRANSCRIPT + 1)
        with path.expanduser().open("rb") as file:
            return file.read(MOST_TRANSCRIPT + 1)
    except OSError as error:
        raise Refused(f"This file can't be read: {path}. Check its name, then try again.") from error
