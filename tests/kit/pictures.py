"""Pictures of every format, true and false, and texts that show them."""

from __future__ import annotations

import struct
import zlib
from base64 import b64decode
from html import escape
from uuid import UUID, uuid4

from sqlalchemy import bindparam, select

from nexus.app import App
from nexus.db.pictures import pictures
from nexus.db.rows import PictureRow
from nexus.db.session import Query
from nexus.extract import Extraction, Facts, Fragment
from nexus.media.lifecycle import mark_ready_for_reading
from nexus.media.pictures import PICTURE
from nexus.media.texts import Found
from nexus.queue import Work
from tests.kit.media import new_media, start_extraction

#: One pixel each, but for the AVIF, which has four. WebP has three ways to say its size.
JPEG = b64decode(
    "/9j/4AAQSkZJRgABAQEASABIAAD/2wBDAP////////////////////////////////////////////////////////////////////////////"
    "//////////wgALCAABAAEBAREA/8QAFBABAAAAAAAAAAAAAAAAAAAAAP/aAAgBAQABPxA="
)
WEBP_LOSSY = b64decode("UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA")
WEBP_LOSSLESS = b64decode("UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==")
WEBP_EXTENDED = b64decode(
    "UklGRkoAAABXRUJQVlA4WAoAAAAQAAAAAAAAAAAAQUxQSAwAAAARBxAR/Q9ERP8DAABWUDggGAAAABQBAJ0BKgEAAQAAAP4AAA3AAP7mtQAAAA=="
)
AVIF = b64decode(
    "AAAAIGZ0eXBhdmlmAAAAAGF2aWZtaWYxbWlhZk1BMUIAAADybWV0YQAAAAAAAAAoaGRscgAAAAAAAAAAcGljdAAAAAAAAAAAAAAAAGxpYmF2aWYA"
    "AAAADnBpdG0AAAAAAAEAAAAeaWxvYwAAAABEAAABAAEAAAABAAABGgAAAB0AAAAoaWluZgAAAAAAAQAAABppbmZlAgAAAAABAABhdjAxQ29sb3IA"
    "AAAAamlwcnAAAABLaXBjbwAAABRpc3BlAAAAAAAAAAIAAAACAAAAEHBpeGkAAAAAAwgICAAAAAxhdjFDgQ0MAAAAABNjb2xybmNseAACAAIAAYAA"
    "AAAAF2lwbWEAAAAAAAAAAQABBAECgwQAAAAlbWRhdBIACggYADaIEBAMIDIPH/A////Fn4cAfPhKyuNg"
)
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><script>parent.ran = 1</script></svg>'
_OF_ITEM = Query(
    select(pictures)
    .where(pictures.c.media_id == bindparam("media_id"))
    .order_by(pictures.c.revision, pictures.c.place),
    PictureRow,
)


def png(width: int = 8, height: int = 6, colour: tuple[int, int, int] = (200, 80, 40)) -> bytes:
    """A picture of one colour."""
    rows = (b"\0" + bytes(colour) * width) * height
    return b"".join(
        (
            b"\x89PNG\r\n\x1a\n",
            _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
            _chunk(b"IDAT", zlib.compress(rows)),
            _chunk(b"IEND", b""),
        )
    )


def png_head(width: int, height: int) -> bytes:
    """The head of a picture of any size, which takes no space here."""
    return png(1, 1)[:16] + struct.pack(">II", width, height) + png(1, 1)[24:]


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def illustrated(app: App, *sources: str, user: UUID | None = None, lead: str | None = None) -> UUID:
    """An item that can be read, whose text has pictures at these addresses."""
    user = user or uuid4()
    media_id = new_media(app, user)
    attempt = start_extraction(app, media_id)
    with app.sessions.begin() as session:
        assert mark_ready_for_reading(
            session, media_id, attempt, Found(text_with(*sources, lead=lead), "tests")
        )
    return media_id


def text_with(*sources: str, lead: str | None = None, words: str = "Some words.") -> Extraction:
    images = "".join(
        f'<img src="{escape(source)}" alt="Picture {number}" loading="lazy" referrerpolicy="no-referrer">'
        for number, source in enumerate(sources)
    )
    return Extraction("A title", (Fragment(words, f"<p>{words}</p>{images}"),), Facts(lead_image=lead))


def pictures_of(app: App, media_id: UUID) -> list[PictureRow]:
    with app.sessions.read() as session:
        return session.all(_OF_ITEM, media_id=media_id)


def fetch_pictures(app: App, media_id: UUID) -> list[str | None]:
    """How each ended; None for those that were not due."""
    return [app.kernel.run(Work(PICTURE, row.id)) for row in pictures_of(app, media_id)]
