"""Disks that are full and stores that can't be used, for root too: the kernel itself says no."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import pytest

from nexus.storage.local import PARTS, LocalStorage


def full_disk(monkeypatch: pytest.MonkeyPatch, below: str) -> None:
    """Files below a folder of this name can be created but not written: the kernel answers ENOSPC."""
    real: Callable[..., IO[Any]] = Path.open

    def opened(path: Path, mode: str = "r", buffering: int = -1, *more: Any) -> IO[Any]:
        if below not in path.parts or "r" in mode:
            return real(path, mode, buffering, *more)
        real(path, mode, buffering, *more).close()
        return real(Path("/dev/full"), "r+b", buffering)

    monkeypatch.setattr(Path, "open", opened)


def without_drafts(store: LocalStorage) -> None:
    """Make a store refuse every put: a file stands in place of its folder of drafts."""
    store.folder.mkdir(parents=True, exist_ok=True)
    (store.folder / PARTS).write_bytes(b"in the way")


def stuck(store: LocalStorage, path: str) -> None:
    """Make an object impossible to read or remove: a folder stands in its place."""
    place = store.folder / path
    place.unlink(missing_ok=True)
    place.mkdir(parents=True)
    (place / "in the way").touch()
