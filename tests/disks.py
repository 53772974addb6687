"""Disks that are full and stores that can't be used, for root too: the kernel itself says no."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import pytest

from nexus.storage.local import DRAFTS, Local


def full_disk(monkeypatch: pytest.MonkeyPatch, below: str) -> None:
    """Files below a folder of this name can be made, and take not a byte: the kernel answers ENOSPC."""
    real: Callable[..., IO[Any]] = Path.open

    def opened(path: Path, mode: str = "r", buffering: int = -1, *more: Any) -> IO[Any]:
        if below not in path.parts or "r" in mode:
            return real(path, mode, buffering, *more)
        real(path, mode, buffering, *more).close()
        return real(Path("/dev/full"), "r+b", buffering)

    monkeypatch.setattr(Path, "open", opened)


def without_drafts(store: Local) -> None:
    """A store that nothing can be put into: a file stands where its drafts would be."""
    store.folder.mkdir(parents=True, exist_ok=True)
    (store.folder / DRAFTS).write_bytes(b"in the way")


def stuck(store: Local, path: str) -> None:
    """An object that can be neither read nor removed: a folder stands in its place."""
    place = store.folder / path
    place.unlink(missing_ok=True)
    place.mkdir(parents=True)
    (place / "in the way").touch()
