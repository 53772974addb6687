"""`nexus clean`: what crashes left behind. It looks, and removes only when asked to."""

from __future__ import annotations

from pathlib import Path

from nexus.cli import say
from nexus.cli.context import opened
from nexus.ingest import clean


def run(data_dir: Path | None, *, remove: bool) -> None:
    count = 0
    with opened(data_dir) as app:
        for found in clean.clean(app.sessions, app.files, remove=remove):
            say.line("removed" if remove else "found", found.what, found.path)
            count += 1
    if not count:
        say.hint("There is nothing to clean.")
    elif not remove:
        say.hint(f"{count} found, and nothing removed. Remove them with: nexus clean --remove")
