"""How to type the next command: by a name that the shell finds, and for the same data folder."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

from nexus.settings import Settings, default_data_dir

USUAL_PORT: int = Settings.model_fields["port"].default


def again(chosen: Settings, command: str) -> str:
    """Return a command to type next, for the same data folder."""
    return _in_folder(chosen.data_dir, Settings().data_dir, command)


def sign_in_command(chosen: Settings, port: int) -> str:
    """Return the command that prints a sign-in link for a server on this port.

    In prod it names no folder, because everybody can see the page, and nobody is the owner.
    """
    if chosen.env == "prod":
        return "nexus token --link --user UUID"
    elsewhere = not chosen.public_url and port != USUAL_PORT
    return in_a_new_terminal(chosen, f"token --link --port {port}" if elsewhere else "token --link")


def in_a_new_terminal(chosen: Settings, command: str) -> str:
    """Return a command for the same data folder that works without the variables of this process."""
    return _in_folder(chosen.data_dir, default_data_dir(), command)


def _in_folder(folder: Path, usual: Path, command: str) -> str:
    typed = f"{own_name()} {command}"
    return typed if folder == usual else f"{typed} --data-dir {shlex.quote(str(folder))}"


def own_name() -> str:
    """Return how to call Nexus: by its path, or by Python's, if the shell does not find it by its name."""
    if shutil.which("nexus"):
        return "nexus"
    called = Path(sys.argv[0])
    if called.name == "nexus":
        return shlex.quote(str(called.absolute()))
    return f"{shlex.quote(sys.executable)} -m nexus"
