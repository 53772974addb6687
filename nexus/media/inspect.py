"""What a file is: how long, of which kind, and its sha256. What was declared does not count.

That takes one pass over its bytes, unless Nexus itself wrote them and made the pass meanwhile.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterable

from nexus.errors import FileTooLarge, IngestTimeout, InvalidFileType
from nexus.states.media import Kind
from nexus.storage.digest import Digest, Digester

PDF_WITHIN = 1024
EPUB = b"application/epub+zip"


def inspect(chunks: Iterable[bytes], kind: Kind, most: int, seconds: float) -> Digest:
    """One pass over the bytes. Raises also IngestTimeout, where the store is too slow."""
    deadline = time.monotonic() + seconds
    digester = Digester()
    for chunk in chunks:
        digester.update(chunk)
        _check_size(digester.size, most)
        if time.monotonic() > deadline:
            raise IngestTimeout
    return recognise(digester.result(), kind, most)


def recognise(found: Digest, kind: Kind, most: int) -> Digest:
    """Raises FileTooLarge or InvalidFileType."""
    _check_size(found.size, most)
    if not looks_like(kind, found.head):
        raise InvalidFileType(f"This file is not {_A_KIND[kind]}. Upload one, or choose another kind.")
    return found


def _check_size(size: int, most: int) -> None:
    if size > most:
        raise FileTooLarge(f"This file is larger than {most // 2**20} MiB. Nexus can't take it in.")


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
