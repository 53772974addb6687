"""What a file is: its size, kind and sha256. What its uploader says about it does not count.

It takes one pass over the bytes, unless Nexus wrote them itself and made that pass on the way.
"""

from __future__ import annotations

import re
import time
import zlib
from collections.abc import Iterable

from nexus.errors import FileTooLarge, IngestTimeout, InvalidFileType, InvalidRequest
from nexus.media.files import Files
from nexus.states.media import Kind
from nexus.storage.digest import Digest, Digester

PDF_WITHIN = 1024
EPUB = b"application/epub+zip"
NAME_LENGTH = 255
UNSAFE = re.compile(r"[\x00-\x1f\x7f/\\]|[\ud800-\udfff]")
#: Byte order marks of UTF-16: such texts may hold zero bytes.
WIDE = (b"\xff\xfe", b"\xfe\xff")
A_KIND = {Kind.PDF: "a PDF", Kind.EPUB: "an EPUB", Kind.TEXT: "a text file"}


def inspect_stored(files: Files, path: str, kind: Kind) -> Digest:
    """Inspect a file in the store. Raises what `inspect`, the scanner and the store raise."""
    most = files.most_bytes[kind]
    known = files.storage.digest(path)
    if known and files.scanner is None:
        return recognise(known, kind, most)
    # What the scanner sees is what the hash is made of: nothing can be put in its place between the two.
    return inspect(files.scanned(files.storage.stream(path)), kind, most, files.check_seconds)


def inspect(chunks: Iterable[bytes], kind: Kind, most: int, seconds: float) -> Digest:
    """Read the bytes of a file. Raises what `recognise` raises, and IngestTimeout if the store is too slow."""
    deadline = time.monotonic() + seconds
    digester = Digester()
    for chunk in chunks:
        digester.update(chunk)
        _check_size(digester.size, most)
        if time.monotonic() > deadline:
            raise IngestTimeout
    return recognise(digester.result(), kind, most)


def recognise(found: Digest, kind: Kind, most: int) -> Digest:
    """Return the digest of a file if it is of this kind. Raises FileTooLarge or InvalidFileType."""
    _check_size(found.size, most)
    if not looks_like(kind, found.head):
        raise InvalidFileType(f"This file is not {A_KIND[kind]}. Check it, then upload another one.")
    return found


def looks_like(kind: Kind, head: bytes) -> bool:
    """Whether a file that begins with these bytes may be of this kind."""
    if kind is Kind.PDF:
        return b"%PDF-" in head[:PDF_WITHIN]
    if kind is Kind.TEXT:
        return not head.startswith(b"%PDF-") and (b"\0" not in head or head.startswith(WIDE))
    return kind is Kind.EPUB and _first_entry_is_mimetype(head)


def safe_name(filename: str) -> str:
    """Return the name without folders, and without what a header or a database can't hold. Raises InvalidRequest."""
    name = UNSAFE.sub("", filename.replace("\\", "/").rpartition("/")[2]).strip()
    if not name or len(name) > NAME_LENGTH:
        raise InvalidRequest(f"A file needs a name of 1 to {NAME_LENGTH} characters.")
    return name


def _check_size(size: int, most: int) -> None:
    if size > most:
        raise FileTooLarge(f"This file is larger than {most // 2**20} MiB. Nexus can't add it.")


def _first_entry_is_mimetype(head: bytes) -> bool:
    """The first local header of the ZIP names `mimetype`, and its content is EPUB's, stored or deflated."""
    if head[:4] != b"PK\x03\x04" or head[30:38] != b"mimetype" or int.from_bytes(head[26:28], "little") != 8:
        return False
    content = head[38 + int.from_bytes(head[28:30], "little") :]
    if int.from_bytes(head[8:10], "little") == 8:
        try:
            content = zlib.decompressobj(-zlib.MAX_WBITS).decompress(content, len(EPUB))
        except zlib.error:
            return False
    return content.startswith(EPUB)
