"""The zip archive of a book, with limits on what is unpacked."""

from __future__ import annotations

import io
import posixpath
import struct
import unicodedata
import zipfile
import zlib
from urllib.parse import unquote

from nexus.errors import EpubDamaged, EpubTooLarge

MiB = 1024 * 1024
MOST_ENTRIES = 20_000
#: The limits on one entry, and on everything that is unpacked.
LARGEST_TEXT = 64 * MiB
MOST_BYTES = 256 * MiB
#: The most times an entry may grow by unpacking. The first part of it is exempt.
HIGHEST_RATIO = 200
FREE_OF_RATIO = MiB
STEP = 256 * 1024
METHODS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
#: What zipfile raises for damaged archives.
BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    RuntimeError,
    ValueError,
    OverflowError,
)


class Archive:
    """Unpacks entries into memory. It counts what it really unpacks, because the sizes in an archive may be lies."""

    def __init__(self, data: bytes) -> None:
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except BROKEN as error:
            raise EpubDamaged from error
        entries = self._zip.infolist()
        if len(entries) > MOST_ENTRIES:
            raise EpubTooLarge
        self._packed = len(data)
        self._unpacked = 0
        paths = ((resolve_path("", info.filename, quoted=False), info) for info in entries)
        self._entries = {path: info for path, info in paths if path}

    def __contains__(self, path: str) -> bool:
        return path in self._entries

    def names(self) -> list[str]:
        return list(self._entries)

    def read(self, path: str, largest: int | None = None) -> bytes | None:
        """Return an entry's bytes, or None if it is missing, damaged or larger than `largest`. Raises EpubTooLarge."""
        info = self._entries.get(path)
        if info is None or info.compress_type not in METHODS:
            return None
        try:
            return self._unpack(info, largest)
        except BROKEN:
            return None

    def _unpack(self, info: zipfile.ZipInfo, largest: int | None) -> bytes | None:
        ratio_limit = max(FREE_OF_RATIO, HIGHEST_RATIO * min(info.compress_size, self._packed))
        whole = bytearray()
        with self._zip.open(info) as stream:
            while piece := stream.read(STEP):
                whole += piece
                self._unpacked += len(piece)
                if largest is not None and len(whole) > largest:
                    return None
                if len(whole) > min(LARGEST_TEXT, ratio_limit) or self._unpacked > MOST_BYTES:
                    raise EpubTooLarge
        return bytes(whole)


def resolve_path(base: str, href: str, *, quoted: bool = True) -> str | None:
    """Return the path in the archive that a link in the file `base` leads to. None if that is outside of it.

    Archives and links may spell the same letters in two ways, so paths are compared in one.
    """
    name = href.partition("#")[0].partition("?")[0] if quoted else href
    name = unquote(name) if quoted else name
    if not name or "\\" in name or "\x00" in name or name.startswith("/") or ":" in name.partition("/")[0]:
        return None
    path = posixpath.normpath(posixpath.join(posixpath.dirname(base), name))
    return None if path == ".." or path.startswith(("../", "/")) else unicodedata.normalize("NFC", path)
