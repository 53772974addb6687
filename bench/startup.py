"""How much CPU it takes until a server is ready, and until a command has answered."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench.places import Place
from bench.table import Line, interleaved
from tools.shipped import recipe
from tools.shipped.installation import ROOT, install

ROUNDS = 9
#: What every server of this kind imports.
BARE = "import fastapi, uvicorn, sqlalchemy"
#: The limits in CPU seconds, on a quiet machine whose bare imports take 0.62 s.
SERVER, COMMAND = 1.2, 0.5
#: The limits for any machine, as multiples of the bare imports.
SERVER_TO_BARE, COMMAND_TO_BARE = 1.9, 0.8
COMMANDS = (["--help"], ["status"], ["token"], ["retry", "--all-failed"], ["doctor"])


def ask(place: Place) -> list[Line]:
    """Measure the second and later starts, on a migrated SQLite and with compiled modules.

    Nexus is installed as a team does it: some libraries import more if developers' packages are installed.
    """
    folder = place.folder / "startup"
    folder.mkdir()
    programs = install(recipe.read(ROOT / "README.md"), folder)
    contestants: dict[str, Callable[[], float]] = {
        "bare imports": partial(_command, folder, [str(programs / "python"), "-c", BARE]),
        "serve": partial(_serve, folder, programs),
        **{
            " ".join(given): partial(_command, folder, [str(programs / "nexus"), *given])
            for given in COMMANDS
        },
    }
    # Other work on the machine can only add to a figure, so compare the lowest of each.
    least = {name: min(figures) for name, figures in interleaved(ROUNDS, contestants).items()}
    bare = least.pop("bare imports")
    lines = []
    for name, spent in least.items():
        most, most_to_bare = (SERVER, SERVER_TO_BARE) if name == "serve" else (COMMAND, COMMAND_TO_BARE)
        ours = f"{spent:.2f} s"
        lines.append(Line(f"{name}, of the limit", ours, f"{most:.2f} s", spent / most, at_most=1.0))
        lines.append(
            Line(f"{name}, to bare imports", ours, f"{bare:.2f} s", spent / bare, at_most=most_to_bare)
        )
    return lines


def _environment(folder: Path) -> dict[str, str]:
    others = {name: value for name, value in os.environ.items() if not name.startswith("NEXUS_")}
    return {**others, "NEXUS_DATA_DIR": str(folder / "data")}


def _command(folder: Path, command: list[str]) -> float:
    """Return the CPU seconds of a process from start to end."""
    before = _spent()
    subprocess.run(
        command,
        cwd=folder,
        env=_environment(folder),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    return _spent() - before


def _serve(folder: Path, programs: Path) -> float:
    """Measure from the start until the server is ready. Ending it then costs nothing."""
    before = _spent()
    with subprocess.Popen(
        [str(programs / "nexus"), "serve", "--port", "0"],
        cwd=folder,
        env=_environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGKILL)
    return _spent() - before


def _spent() -> float:
    """CPU seconds of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
