"""`nexus add`: takes in URLs and files, and waits until they can be read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from uuid import UUID

from nexus import urls
from nexus.app import App
from nexus.cli.context import acting_user, opened
from nexus.cli.follow import Follow, following
from nexus.cli.outcome import EndedItem, Item, Result
from nexus.db.session import Session
from nexus.errors import ApiError, InvalidFileType, InvalidRequest
from nexus.imports.staging import KINDS
from nexus.libraries import access, catalog
from nexus.media import uploads
from nexus.media.add import Added, add_url, guess_kind
from nexus.media.enqueue import maybe_enqueue_extraction
from nexus.media.files import CONTENT_TYPES
from nexus.media.uploads import Expected
from nexus.storage import CHUNK

#: Endings of files, not of hosts.
FILE_SUFFIXES = {*KINDS, ".doc", ".docx", ".htm", ".html", ".odt", ".rtf"}


def add_sources(
    data_dir: Path | None,
    user: UUID | None,
    addresses: Sequence[str],
    kind: str | None,
    library: str | None,
    *,
    as_json: bool,
) -> None:
    with opened(data_dir) as app:
        viewer = acting_user(app.settings, user)
        with following(app, viewer, len(addresses), as_json=as_json) as follow:
            for address in addresses:
                _take_in(app, follow, address, kind, library)
            follow.wait(app)


def _take_in(app: App, follow: Follow, address: str, kind: str | None, library: str | None) -> None:
    """Take in one source. If it is refused, the others go on."""
    try:
        if is_file(address):
            added = _uploaded(app, follow.viewer, Path(address).expanduser(), library)
        else:
            url = urls.with_scheme(address)
            added = _added(app, follow.viewer, kind or guess_kind(url).value, url, library)
    except ApiError as error:
        follow.end(EndedItem(Item(address), Result.REFUSED, error.message, code=error.code))
        return
    if added.due:
        maybe_enqueue_extraction(app.queue, added.kind, added.media_id)
    follow.follow(Item(address, added.media_id, added.created, added.due), added.media_id)


def _added(app: App, viewer: UUID, kind: str, address: str, library: str | None) -> Added:
    """Add an address to the default library and to the named one, in one transaction."""
    with app.sessions.begin() as session:
        named = None if library is None else _library(session, viewer, library)
        added = add_url(session, viewer, kind, address, app.limits)
        if named is not None:
            catalog.add_media(session, named, added.media_id, viewer)
    return added


def _uploaded(app: App, viewer: UUID, path: Path, library: str | None) -> Added:
    """Upload a file as a browser does, but straight into the store."""
    try:
        size = path.stat().st_size
        kind = KINDS[path.suffix.lower()]
        chunks = _chunks(path)
    except KeyError as error:
        raise InvalidFileType("Nexus takes PDFs, EPUBs and text files: .pdf, .epub, .txt or .md.") from error
    except OSError as error:
        raise InvalidRequest(f"This file can't be read: {error.strerror}.") from error
    expected = Expected(kind.value, path.name, CONTENT_TYPES[kind], size)
    done = uploads.take_in(app.sessions, app.files, viewer, expected, chunks)
    if library is not None:
        with app.sessions.begin() as session:
            catalog.add_media(session, _library(session, viewer, library), done.media_id, viewer)
    return Added(done.media_id, kind, created=not done.duplicate, due=True)


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            yield chunk


def is_file(source: str) -> bool:
    """Whether a source is a file. Anything with a scheme is an address, even a bad one.

    A file that does not exist is told from `example.com` by its suffix, and from `example.com/paper.pdf` by the host.
    """
    path = Path(source).expanduser()
    if "://" in source or path.exists():
        return "://" not in source
    if path.suffix.lower() in FILE_SUFFIXES and len(path.parts) == 1:
        return True
    return path.suffix != "" and urls.with_scheme(source) == source


def _library(session: Session, viewer: UUID, name: str) -> UUID:
    """Return the oldest library of this name that the viewer may change; create it if there is none."""
    found = find_library(session, viewer, name)
    return (
        catalog.create_library(session, viewer, name)
        if found is None
        else access.keep_library(session, found)
    )


def find_library(session: Session, viewer: UUID, name: str | None) -> UUID | None:
    """Return the oldest library of this name that the viewer may change, or without a name their default library."""
    default = access.ensure_user(session, viewer)
    return default if name is None else catalog.find_own_library(session, viewer, name)
