"""`nexus clean`: lists what crashes left behind, and removes it only if asked to."""

from __future__ import annotations

from pathlib import Path

from nexus.cli import say
from nexus.cli.context import opened
from nexus.upkeep import clean


def clean_up(data_dir: Path | None, *, remove: bool) -> None:
    with opened(data_dir) as app:
        done = "removed" if remove else "found"
        count = app.imports.abandoned(remove=remove)
        if count:
            say.line(done, "leftovers of imports whose process ended", count)
        for found in clean.find_leftovers(app.sessions, app.files, remove=remove):
            say.line(done, found.what, found.path)
            count += 1
    if not count:
        say.hint("Nothing to clean. Files younger than an hour are left alone.")
    elif not remove:
        say.hint(f"{count} found, none removed. Remove them with: nexus clean --remove")
