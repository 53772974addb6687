"""How to type the next command: by a name that the shell finds, and for the same data folder."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

from nexus.settings import Settings


def again(chosen: Settings, command: str) -> str:
    """Return a command to type next, for the same data folder."""
    elsewhere = chosen.data_dir != Settings().data_dir
    typed = f"{own_name()} {command}"
    return f"{typed} --data-dir {shlex.quote(str(chosen.data_dir))}" if elsewhere else typed


def sign_in_command(chosen: Settings, port: int) -> str:
    """Return the command that prints a sign-in link for a server on this port.

    In prod it names no folder, because everybody can see the page, and nobody is the owner.
    """
    if chosen.env == "prod":
        return "nexus token --link --user UUID"
    elsewhere = not chosen.public_url and port != Settings().port
    return again(chosen, f"token --link --port {port}" if elsewhere else "token --link")


def own_name() -> str:
    """Return how to call Nexus: by its path, or by Python's, if the shell does not find it by its name."""
    if shutil.which("nexus"):
        return "nexus"
    called = Path(sys.argv[0])
    if called.name == "nexus":
        return shlex.quote(str(called.absolute()))
    return f"{shlex.quote(sys.executable)} -m nexus"
