"""Where settings are read from besides the environment: a file of settings, and a folder of secrets."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from nexus.settings.local_secrets import BadSettings


def default_data_dir() -> Path:
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "nexus"


def env_file(data_dir: Path) -> Path:
    """Return where `.env` is, if there is one."""
    return Path(os.environ.get("NEXUS_ENV_FILE") or data_dir / ".env").expanduser()


def chosen_env_file(given: dict[str, Any]) -> Path:
    """Return where `.env` is. Raises BadSettings if NEXUS_ENV_FILE names a file that can't be read."""
    folder = given.get("data_dir") or os.environ.get("NEXUS_DATA_DIR") or default_data_dir()
    path = env_file(Path(folder))
    if os.environ.get("NEXUS_ENV_FILE") and not (path.is_file() and os.access(path, os.R_OK)):
        raise BadSettings(f"NEXUS_ENV_FILE names a file that can't be read: {path}. Correct it or unset it.")
    return path


def secrets_folder() -> Path | None:
    """Return the folder that a manager of secrets fills: the one that NEXUS_SECRETS_DIR names, or systemd's.

    Raises BadSettings if NEXUS_SECRETS_DIR names a folder that can't be read.
    """
    named = os.environ.get("NEXUS_SECRETS_DIR")
    given = named or os.environ.get("CREDENTIALS_DIRECTORY")
    if not given:
        return None
    path = Path(given).expanduser()
    if named and not (path.is_dir() and os.access(path, os.R_OK | os.X_OK)):
        raise BadSettings(
            f"NEXUS_SECRETS_DIR names a folder that can't be read: {path}. Correct it or unset it."
        )
    return path if path.is_dir() else None
