"""Files to take in, and a person who uploads them: at the verbs, without HTTP."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from uuid import UUID, uuid4

import pytest
from sqlalchemy import bindparam, func, select

from nexus.app import App
from nexus.db.session import Statement
from nexus.db.tables import media, uploads
from nexus.errors import (
    InvalidFileType,
)
from nexus.libraries import catalog
from nexus.media import uploads as verbs
from nexus.media.deletions import discard_all
from nexus.media.uploads import Begun, Confirmed, Expected
from nexus.storage import StorageError

PDF = "application/pdf"
EPUB = "application/epub+zip"

_COUNT = Statement(select(func.count().label("many")).select_from(media))
_EXPECTED = Statement(select(uploads).where(uploads.c.media_id == bindparam("media_id")))


def unique_pdf(size: int = 64) -> bytes:
    """The beginning of a PDF, unlike any other."""
    return (b"%PDF-1.7\n" + uuid4().hex.encode()).ljust(size, b".")


def unique_epub(content: str = EPUB, method: int = zipfile.ZIP_STORED) -> bytes:
    """The beginning of an EPUB, unlike any other."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        archive.writestr("mimetype", content, method)
        archive.writestr("a.xhtml", uuid4().hex)
    return whole.getvalue()


def expected_upload(body: bytes, kind: str = "pdf", filename: str | None = None) -> Expected:
    types = {"pdf": PDF, "epub": EPUB, "text": "text/plain"}
    return Expected(kind, filename or f"a file.{kind}", types.get(kind, kind), len(body))


@dataclass(frozen=True)
class Uploader:
    """Somebody who uploads files."""

    app: App
    id: UUID = field(default_factory=uuid4)

    def begin(self, body: bytes, kind: str = "pdf", filename: str | None = None) -> Begun:
        return verbs.begin_upload(
            self.app.sessions, self.app.files, self.id, expected_upload(body, kind, filename)
        )

    def send(self, begun: Begun, body: bytes) -> None:
        self.app.files.storage.put(begun.storage_path, [body], PDF)

    def sent(self, body: bytes, kind: str = "pdf", filename: str | None = None) -> UUID:
        """Upload without confirming."""
        begun = self.begin(body, kind, filename)
        self.send(begun, body)
        return begun.media_id

    def confirm(self, media_id: UUID) -> Confirmed:
        return verbs.confirm_upload(self.app.sessions, self.app.files, self.app.queue, self.id, media_id)

    def upload(self, body: bytes, kind: str = "pdf", filename: str | None = None) -> UUID:
        return self.confirm(self.sent(body, kind, filename)).media_id

    def begin_again(self, media_id: UUID, body: bytes | None = None, kind: str = "pdf") -> Begun:
        to_come = None if body is None else expected_upload(body, kind)
        return verbs.begin_again(self.app.sessions, self.app.files, self.id, media_id, to_come)

    def delete(self, media_id: UUID) -> None:
        with self.app.sessions.begin() as session:
            gone = catalog.delete_media(session, media_id, self.id)
        discard_all(self.app.files, gone)


def count_media(app: App) -> int:
    """How many media the database holds."""
    with app.sessions.read() as session:
        return int(session.first(_COUNT).many)


def stored_paths(app: App) -> list[str]:
    """The path of every object."""
    return [found.path for found in app.files.storage.objects("")]


def awaited_upload(app: App, media_id: UUID) -> Expected | None:
    """What is still expected of an upload."""
    with app.sessions.read() as session:
        found = session.first(_EXPECTED, media_id=media_id)
    return found and Expected("", found.filename, found.content_type, found.size_bytes)


class Store:
    """The app's store, with some methods replaced."""

    def __init__(self, app: App, **instead: Callable[..., object]) -> None:
        self._storage = app.files.storage
        self.__dict__.update(instead)

    def __getattr__(self, name: str) -> object:
        return getattr(self._storage, name)


def uploader_with_store(app: App, **instead: Callable[..., object]) -> Uploader:
    files = replace(app.files, storage=Store(app, **instead))  # type: ignore[arg-type]
    return Uploader(replace(app, files=files))


def unreachable(*_: object) -> None:
    raise StorageError("away")


def failed_upload(me: Uploader) -> UUID:
    """An upload that failed because its bytes were no PDF."""
    media_id = me.sent(b"this is no pdf")
    with pytest.raises(InvalidFileType):
        me.confirm(media_id)
    return media_id
