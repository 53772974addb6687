"""Collects the pictures that a book's text shows."""

from __future__ import annotations

import hashlib

from nexus.extract import Asset
from nexus.extract.epub.archive import Archive, MiB
from nexus.extract.pictures import MOST_PIXELS, TYPES, read_picture_head

LARGEST = 8 * MiB
MOST_BYTES = 32 * MiB


class Pictures:
    """Takes each picture once, as long as there is room. Files that are too large or not pictures are left out."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._names: dict[str, str | None] = {}
        self._assets: dict[str, Asset] = {}
        self._room = MOST_BYTES

    def name(self, path: str | None) -> str | None:
        """Return the name that a picture is kept under, or None if it is left out."""
        if path is None:
            return None
        if path not in self._names:
            self._names[path] = self._take(path)
        return self._names[path]

    def assets(self) -> tuple[Asset, ...]:
        return tuple(self._assets.values())

    def _take(self, path: str) -> str | None:
        data = self._archive.read(path, LARGEST)
        head = read_picture_head(data) if data else None
        if not data or head is None or head.pixels > MOST_PIXELS:
            return None
        name = f"{hashlib.sha256(data).hexdigest()[:32]}.{head.kind}"
        if name not in self._assets:
            if len(data) > self._room:
                return None
            self._room -= len(data)
            self._assets[name] = Asset(name, TYPES[head.kind], data)
        return name
