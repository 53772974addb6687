"""Where the model that Nexus makes for itself is kept: beside the installation, for every data folder.

If that folder can't be written, because Nexus was installed for all users of a machine, the model is kept with the
user's own data.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from nexus.settings import default_data_dir

#: The version stands for the way it is made: two versions make different vectors.
NAME, VERSION = "all-MiniLM-L6-v2", 1
MODEL = f"{NAME} int8/{VERSION}"
DIMENSION, MOST_TOKENS = 384, 256
FOLDER = f"{NAME}-int8-{VERSION}"
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class InstalledModel:
    folder: Path
    #: The SHA-256 of each file.
    digests: Mapping[str, str]
    #: When it was installed.
    stamp: int

    @property
    def size(self) -> int:
        return sum(path.stat().st_size for path in self.folder.iterdir())


def model_places() -> tuple[Path, ...]:
    """The folders that models may be in, the best first."""
    return (Path(sys.prefix, "share", "nexus", "models"), default_data_dir() / "models")


def find_installed() -> InstalledModel | None:
    """Return the model if it is there. Whether its files are whole is found out when they are loaded."""
    for place in model_places():
        manifest = place / FOLDER / MANIFEST
        try:
            files = json.loads(manifest.read_text())["files"]
            return InstalledModel(manifest.parent, dict(files), manifest.stat().st_mtime_ns)
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return None


def place_to_install() -> Path:
    """Return the first folder that can be written."""
    return next(filter(_can_write, model_places()), model_places()[-1])


def _can_write(place: Path) -> bool:
    there = next(folder for folder in (place, *place.parents) if folder.exists())
    return os.access(there, os.W_OK)
