"""How much CPU it takes until a server is ready, and until a command has answered."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

from bench.places import Place
from bench.table import Line, interleaved, ratio

ROUNDS = 9
#: The most CPU seconds.
SERVER, COMMAND = 1.2, 0.5
#: What every server of this kind imports, whatever it does.
BARE = "import fastapi, uvicorn, sqlalchemy"
COMMANDS = (["--help"], ["status"], ["token"], ["retry", "--all-failed"], ["doctor"])


def ask(place: Place) -> list[Line]:
    """On SQLite that is migrated already, with every module compiled: the second start and all later ones."""
    folder = place.folder / "startup"
    folder.mkdir()
    contestants: dict[str, Callable[[], float]] = {
        "bare imports": partial(_command, folder, [sys.executable, "-c", BARE]),
        "serve": partial(_serve, folder),
        **{" ".join(given): partial(_command, folder, _nexus(*given)) for given in COMMANDS},
    }
    figures = interleaved(ROUNDS, contestants)
    lines = []
    for name, most in {"serve": SERVER, **{" ".join(given): COMMAND for given in COMMANDS}}.items():
        spent = f"{median(figures[name]):.2f} s"
        lines.append(
            Line(f"{name}, of the limit", spent, f"{most:.2f} s", median(figures[name]) / most, at_most=1.0)
        )
        bare = f"{median(figures['bare imports']):.2f} s"
        lines.append(Line(f"{name}, to bare imports", spent, bare, ratio(figures, name, "bare imports")))
    return lines


def _nexus(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "nexus", *arguments]


def _environment(folder: Path) -> dict[str, str]:
    others = {name: value for name, value in os.environ.items() if not name.startswith("NEXUS_")}
    return {**others, "NEXUS_DATA_DIR": str(folder / "data")}


def _command(folder: Path, command: list[str]) -> float:
    """CPU seconds of the process from its start to its end."""
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


def _serve(folder: Path) -> float:
    """From its start until it says that it is ready: then it is ended, which costs nothing."""
    before = _spent()
    with subprocess.Popen(
        _nexus("serve", "--port", "0"),
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
    """By all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
