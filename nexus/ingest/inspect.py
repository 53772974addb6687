"""One pass over a file's bytes: how long it is, what it really is, and its sha256. What was declared does not count."""

from __future__ import annotations

import hashlib
import time
import zlib
from collections.abc import Iterable
from dataclasses import dataclass

from nexus.errors import FileTooLarge, IngestTimeout, InvalidFileType
from nexus.states.media import Kind

#: Enough of the beginning to know a file by.
HEAD = 4096
PDF_WITHIN = 1024
EPUB = b"application/epub+zip"


@dataclass(frozen=True)
class Inspection:
    size: int
    sha256: str


def inspect(chunks: Iterable[bytes], kind: Kind, most: int, seconds: float) -> Inspection:
    """Raises FileTooLarge, InvalidFileType, or IngestTimeout where the store is too slow."""
    deadline = time.monotonic() + seconds
    digest, size, head = hashlib.sha256(), 0, b""
    for chunk in chunks:
        size += len(chunk)
        if size > most:
            raise FileTooLarge(f"This file is larger than {most // 2**20} MiB. Nexus can't take it in.")
        if time.monotonic() > deadline:
            raise IngestTimeout
        digest.update(chunk)
        if len(head) < HEAD:
            head += chunk[: HEAD - len(head)]
    if not looks_like(kind, head):
        raise InvalidFileType(f"This file is not {_A_KIND[kind]}. Upload one, or choose another kind.")
    return Inspection(size, digest.hexdigest())


def looks_like(kind: Kind, head: bytes) -> bool:
    if kind is Kind.PDF:
        return b"%PDF-" in head[:PDF_WITHIN]
    return kind is Kind.EPUB and _first_entry_is_mimetype(head)


def _first_entry_is_mimetype(head: bytes) -> bool:
    """The first local header of the ZIP names `mimetype`, and its content is EPUB's, stored or deflated."""
    if head[:4] != b"PK\x03\x04" or head[30:38] != b"mimetype" or int.from_bytes(head[26:28], "little") != 8:
        return False
    content = head[38 + int.from_bytes(head[28:30], "little") :]
    if int.from_bytes(head[8:10], "little") == 8:
        content = _inflated(content)
    return content.startswith(EPUB)


def _inflated(content: bytes) -> bytes:
    try:
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(content, len(EPUB))
    except zlib.error:
        return b""


_A_KIND = {Kind.PDF: "a PDF", Kind.EPUB: "an EPUB"}
