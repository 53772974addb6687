"""`nexus models`: shows and installs the model for search by meaning."""

from __future__ import annotations

from nexus.cli import say
from nexus.cli.failures import Refused
from nexus.command_line import own_name
from nexus.embed.installed import MODEL, InstalledModel, find_installed
from nexus.embed.making import NotMade, make_model
from nexus.inference.child import WrongModel, require_whole

MEGABYTE = 1_000_000


def show_model(*, as_json: bool) -> None:
    """Say which model Nexus makes for itself, and whether it is there."""
    found = find_installed()
    if as_json:
        say.as_json({"model": MODEL, "folder": found and str(found.folder), "bytes": found and found.size})
    elif found is None:
        say.line(f"{MODEL} is not installed.")
        say.hint(f"Install it: {own_name()} models install")
    else:
        say.line(_described(found))


def install_model(*, again: bool) -> None:
    """Make the model, unless it is there and whole."""
    found = None if again else find_installed()
    if found is not None and _is_whole(found):
        say.line(_described(found))
        return
    try:
        made = make_model(say.line)
    except NotMade as error:
        raise Refused(str(error)) from None
    say.line(_described(made))


def _is_whole(found: InstalledModel) -> bool:
    try:
        require_whole(found.folder, found.digests)
    except WrongModel as error:
        say.line(f"The model {error}. It is being rebuilt.")
        return False
    return True


def _described(found: InstalledModel) -> str:
    return f"{MODEL} is installed in {found.folder} ({found.size // MEGABYTE} MB)."
