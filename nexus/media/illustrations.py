"""The pictures of a text as its readers get them: from Nexus, never from the sites that they were on."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from html import escape, unescape
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import and_, bindparam, literal_column, select

from nexus.db.pictures import pictures
from nexus.db.session import Query, Session

ASSET = "asset:"
_IMAGE = re.compile(r"<img\b([^<>]*)>")
_ATTRIBUTE = re.compile(r'\s([a-z]+)="([^"]*)"')
_ELSEWHERE = ("http://", "https://")


class Illustration(NamedTuple):
    """What became of a picture: it has a name if it is there, a code if it was given up, or else is on its way."""

    place: int
    source: str
    name: str | None
    error_code: str | None
    content_type: str | None
    size_bytes: int | None
    width: int | None
    height: int | None

    @property
    def is_waiting(self) -> bool:
        return self.name is None and self.error_code is None


class StoredPicture(NamedTuple):
    content_type: str
    storage_path: str
    size_bytes: int


#: By address.
Illustrations = Mapping[str, Illustration]
#: Given the attributes of an image from elsewhere, and what became of it if that is known; returns what to show in its
#: place.
Write = Callable[[dict[str, str], Illustration | None], str]

_OF_TEXT = and_(pictures.c.media_id == bindparam("media_id"), pictures.c.revision == bindparam("number"))
_ALL = Query(
    select(*(pictures.c[name] for name in Illustration._fields)).where(_OF_TEXT).order_by(pictures.c.place),
    Illustration,
)
_STORED = Query(
    # A picture with a name has all of these.
    select(*(pictures.c[name].label(name) for name in StoredPicture._fields))
    .where(_OF_TEXT, pictures.c.name == bindparam("name"))
    .limit(literal_column("1")),
    StoredPicture,
)


def illustrations_of(session: Session, media_id: UUID, number: int) -> Illustrations:
    """Return the pictures of a revision that have an address. Who may read it is the caller's to check."""
    return {row.source: row for row in session.all(_ALL, media_id=media_id, number=number)}


def find_stored_picture(session: Session, media_id: UUID, number: int, name: str) -> StoredPicture | None:
    """Return a picture of a revision that is in the store. Who may read it is the caller's to check."""
    return session.first(_STORED, media_id=media_id, number=number, name=name)


def has_images(html: str | None) -> bool:
    return html is not None and "<img" in html


def replace_images(html: str, known: Illustrations, write: Write) -> str:
    """Put something else in the place of every image from elsewhere."""

    def replaced(found: re.Match[str]) -> str:
        attributes = {name: unescape(value) for name, value in _ATTRIBUTE.findall(found[1])}
        source = attributes.get("src", "")
        return write(attributes, known.get(source)) if source.startswith(_ELSEWHERE) else found[0]

    return _IMAGE.sub(replaced, html)


def name_images(html: str, known: Illustrations) -> str:
    """Name pictures that are there `asset:{name}`, as those of a book are. The others have no address any more."""
    return replace_images(html, known, _named)


def name_image(source: str | None, known: Illustrations) -> str | None:
    """Return the name of a single picture by its address; None if it is not there. Other names stay as they are."""
    if source is None or not source.startswith(_ELSEWHERE):
        return source
    found = known.get(source)
    return f"{ASSET}{found.name}" if found and found.name else None


def write_image(attributes: Mapping[str, str], address: str | None, found: Illustration | None) -> str:
    """Write an image with another address, or none, and its true size unless the page gave it one."""
    given = {name: value for name, value in attributes.items() if name != "src"}
    if address is not None and found is not None and not {"width", "height"} & given.keys():
        given |= {"width": str(found.width), "height": str(found.height)}
    first = {} if address is None else {"src": address}
    return f"<img{attributes_of({**first, **given})}>"


def attributes_of(values: Mapping[str, str]) -> str:
    return "".join(f' {name}="{escape(value)}"' for name, value in values.items())


def _named(attributes: dict[str, str], found: Illustration | None) -> str:
    return write_image(attributes, f"{ASSET}{found.name}" if found and found.name else None, found)
