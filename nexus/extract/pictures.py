"""Tells what a picture is from its first bytes: its format, and its size in pixels. Nothing is decoded.

A few bytes can stand for billions of pixels, which the browser that shows them has to hold. So a picture's size is read
from its head, by code that only looks at places in the bytes, and that is enough to refuse it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

#: The formats that are kept. SVG is not among them: it is a document, with scripts, styles and addresses of its own.
TYPES = {kind: f"image/{kind}" for kind in ("png", "jpeg", "gif", "webp", "avif")}
#: A picture of a book may have no more. NEXUS_PICTURE_MEGAPIXELS is the limit for those of articles.
MOST_PIXELS = 50_000_000
#: How many blocks are looked at in search of the size.
MOST_BLOCKS = 1000

_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_JPEG_BARE = frozenset({0x01, *range(0xD0, 0xD9)})
_JPEG_SCAN = 0xDA
_GIF_EXTENSION, _GIF_FRAME = 0x21, 0x2C
_AVIF_BRANDS = re.compile(rb"(?:....)*?(?:avif|avis)", re.DOTALL)

Size = tuple[int, int]


class PictureHead(NamedTuple):
    kind: str
    width: int
    height: int

    @property
    def pixels(self) -> int:
        return self.width * self.height


def read_picture_head(data: bytes) -> PictureHead | None:
    """Return what the head of a picture says, whatever the file is called; None if it is not one that is kept."""
    for kind, is_kind, size_of in _FORMATS:
        if is_kind(data):
            width, height = size_of(data) or (0, 0)
            return PictureHead(kind, width, height) if width and height else None
    return None


def _is_avif(data: bytes) -> bool:
    return data[4:8] == b"ftyp" and _AVIF_BRANDS.match(data[8 : min(_big(data, 0, 4), 256)]) is not None


def _png(data: bytes) -> Size | None:
    return (_big(data, 16, 4), _big(data, 20, 4)) if data[12:16] == b"IHDR" else None


def _jpeg(data: bytes) -> Size | None:
    at = 2
    for _ in range(MOST_BLOCKS):
        if data[at : at + 1] != b"\xff":
            return None
        mark = _big(data, at + 1, 1)
        if mark in _JPEG_FRAMES:
            return _big(data, at + 7, 2), _big(data, at + 5, 2)
        if mark == _JPEG_SCAN:
            return None
        if mark == 0xFF:  # fills up space
            at += 1
        else:
            at += 2 if mark in _JPEG_BARE else 2 + _big(data, at + 2, 2)
    return None


def _gif(data: bytes) -> Size | None:
    """Return the size of the screen, or of the first frame if it is larger, as browsers do."""
    palette = _big(data, 10, 1)
    at = 13 + (3 << (palette & 7) + 1 if palette & 0x80 else 0)
    for _ in range(MOST_BLOCKS):
        mark = _big(data, at, 1)
        if mark == _GIF_FRAME:
            left, top, width, height = (_little(data, at + 1 + 2 * place, 2) for place in range(4))
            return max(_little(data, 6, 2), left + width), max(_little(data, 8, 2), top + height)
        if mark != _GIF_EXTENSION:
            return None
        at = _after_pieces(data, at + 2)
    return None


def _after_pieces(data: bytes, at: int) -> int:
    """Return where the pieces of a GIF's extension end. Each begins with its length; one of length 0 is the last."""
    for _ in range(MOST_BLOCKS):
        length = _big(data, at, 1)
        at += 1 + length
        if not length:
            return at
    return len(data)


def _webp(data: bytes) -> Size | None:
    chunk = data[12:16]
    if chunk == b"VP8X":
        return _little(data, 24, 3) + 1, _little(data, 27, 3) + 1
    if chunk == b"VP8L" and data[20:21] == b"\x2f":
        bits = _little(data, 21, 4)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if chunk == b"VP8 " and data[23:26] == b"\x9d\x01\x2a":
        return _little(data, 26, 2) & 0x3FFF, _little(data, 28, 2) & 0x3FFF
    return None


def _avif(data: bytes) -> Size | None:
    """Return the largest of the sizes that it names: it has one for each picture in it."""
    sizes = [
        (_big(data, at + 4, 4), _big(data, at + 8, 4))
        for meta, meta_end in _boxes(data, b"meta", 0, len(data))
        for properties, properties_end in _boxes(data, b"iprp", meta + 4, meta_end)
        for container, container_end in _boxes(data, b"ipco", properties, properties_end)
        for at, _ in _boxes(data, b"ispe", container, container_end)
    ]
    return max(sizes, key=lambda size: size[0] * size[1], default=None)


def _boxes(data: bytes, name: bytes, at: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield where the content of each box of this name begins and ends."""
    for _ in range(MOST_BLOCKS):
        length = _big(data, at, 4)
        if not 8 <= length <= end - at:
            return
        if data[at + 4 : at + 8] == name:
            yield at + 8, at + length
        at += length


def _big(data: bytes, at: int, length: int) -> int:
    return int.from_bytes(data[at : at + length], "big")


def _little(data: bytes, at: int, length: int) -> int:
    return int.from_bytes(data[at : at + length], "little")


_FORMATS: tuple[tuple[str, Callable[[bytes], bool], Callable[[bytes], Size | None]], ...] = (
    ("png", lambda data: data.startswith(b"\x89PNG\r\n\x1a\n"), _png),
    ("jpeg", lambda data: data.startswith(b"\xff\xd8\xff"), _jpeg),
    ("gif", lambda data: data.startswith((b"GIF87a", b"GIF89a")), _gif),
    ("webp", lambda data: data[:4] == b"RIFF" and data[8:12] == b"WEBP", _webp),
    ("avif", _is_avif, _avif),
)
