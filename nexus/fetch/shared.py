"""A book of sites that several processes share: pages of JSON, each for the sites of one bucket.

Buckets keep the number of pages fixed however many sites there are. A page holds only sites that are in use, so it
stays short.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar
from zlib import crc32

from nexus.fetch.pace import SiteState

T = TypeVar("T")

BUCKETS = 64


def bucket_of(site: str) -> int:
    return crc32(site.encode()) % BUCKETS


def change_page(page: str, site: str, act: Callable[[SiteState, float], T], now: float) -> tuple[str, T]:
    """Return a page after a change to one of its sites, and what `act` returned. An unreadable page counts as empty."""
    try:
        sites = {name: SiteState(**known) for name, known in json.loads(page).items()}
    except (ValueError, TypeError, AttributeError):
        sites = {}
    for state in sites.values():
        state.forget(now)
    found = act(sites.setdefault(site, SiteState()), now)
    kept = {name: vars(state) for name, state in sites.items() if not state.is_idle(now)}
    return json.dumps(kept), found


class FileBook:
    """Pages in a folder, for the processes of one machine. Losing them in a power cut does no harm."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def change(self, site: str, act: Callable[[SiteState, float], T]) -> T:
        file = self._open(str(bucket_of(site)))
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            page = os.pread(file, os.fstat(file).st_size, 0)
            changed, found = change_page(page.decode(errors="replace"), site, act, time.time())
            # Padded with spaces: truncating the file would take most of the time.
            os.pwrite(file, changed.encode().ljust(len(page)), 0)
        finally:
            os.close(file)
        return found

    def _open(self, name: str) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        try:
            return os.open(self._folder / name, flags, 0o600)
        except FileNotFoundError:
            self._folder.mkdir(parents=True, mode=0o700, exist_ok=True)
            return os.open(self._folder / name, flags, 0o600)
