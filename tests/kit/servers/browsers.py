"""The Chromium that tests drive: one that is installed, or one that apt-get installs now."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

from tests.kit.servers import ServerError

#: Draws no window around its pages, which takes half the CPU of a whole browser, but can't show PDFs.
SHELL = "chromium-headless-shell"
#: Whole browsers by the name of their program, the first as Debian's package too.
WHOLE = ("chromium", "chromium-browser", "google-chrome")
#: A mirror that is out of reach is given up soon.
HASTE = ("-o", "Acquire::Retries=0", "-o", "Acquire::http::Timeout=20", "-o", "Acquire::https::Timeout=20")


def chromium(*, shows_pdfs: bool = False) -> Path:
    """The Chromium to drive: NEXUS_TEST_CHROMIUM, or the cheapest that is installed or can be. Raises ServerError."""
    named = os.environ.get("NEXUS_TEST_CHROMIUM")
    if named:
        if not os.access(named, os.X_OK):
            raise ServerError(f"NEXUS_TEST_CHROMIUM names {named}, which is not a program.")
        return Path(named)
    found = (None if shows_pdfs else _shell()) or _first_on_path(*WHOLE) or _from_apt(WHOLE[0])
    if found is None:
        raise ServerError(
            "No Chromium found. Install chromium or google-chrome, or set NEXUS_TEST_CHROMIUM to its path."
        )
    return found


def _shell() -> Path | None:
    """None if this system has no package of it, or apt-get can't fetch it."""
    with suppress(ServerError):
        return _from_apt(SHELL)
    return None


def _first_on_path(*names: str) -> Path | None:
    return next((Path(found) for found in map(shutil.which, names) if found), None)


def _from_apt(name: str) -> Path | None:
    """Installed now unless it is there. None if apt-get is not available. One worker installs, the others wait."""
    apt = shutil.which("apt-get")
    if (found := _first_on_path(name)) or apt is None or os.geteuid() != 0:
        return found
    with Path(tempfile.gettempdir(), "nexus-chromium.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not shutil.which(name):
            _run(apt, *HASTE, "update")
            _run(apt, *HASTE, "install", "-y", "--no-install-recommends", name)
        return _first_on_path(name)


def _run(*command: str) -> None:
    quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(
        command, env=quiet, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ServerError(f"{' '.join(command)} failed:\n{done.stderr[-4000:]}")
