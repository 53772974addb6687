"""Paths in storage, and what a download is called. Paths are made here and nowhere else."""

from __future__ import annotations

import mimetypes
import re
from functools import cache
from urllib.parse import quote
from uuid import UUID

#: An item's id and a name, with the number of a revision between them or not.
_OURS = re.compile(r"media/([^/]*)(?:/r\d+)?/[^/]*")
_FETCHED = re.compile(r"(?:^|/)media/[^/]*/r\d+/[^/]*\Z")
EXTENSIONS = {"pdf": "pdf", "epub": "epub", "text": "txt"}
#: The extensions of each type of file, the usual one first.
SUFFIXES = {
    "application/pdf": ("pdf",),
    "application/epub+zip": ("epub",),
    "text/plain": ("txt", "text", "md", "markdown"),
}


def object_path(media_id: UUID, kind: str, prefix: str = "") -> str:
    """Return `media/{media_id}/original.{ext}`, which names no user. Tests put a prefix of their own before it."""
    return f"{prefix}media/{media_id}/original.{EXTENSIONS[kind]}"


def fetched_path(media_id: UUID, revision: int, extension: str, prefix: str = "") -> str:
    """Return `media/{media_id}/r{revision}/original.{ext}`: a path that only one fetch uses."""
    return f"{prefix}media/{media_id}/r{revision}/original.{extension}"


def picture_path(
    media_id: UUID, revision: int, place: int, attempt: int, extension: str, prefix: str = ""
) -> str:
    """Return `media/{media_id}/r{revision}/{place}-{attempt}.{ext}`: a path that only one attempt uses."""
    return f"{prefix}media/{media_id}/r{revision}/{place}-{attempt}.{extension}"


def sound_path(media_id: UUID, name: str, prefix: str = "") -> str:
    """Return `media/{media_id}/r0/sound-{name}`: where a recording's sound is kept while it is transcribed. With a name
    of its own, a path is used once."""
    return f"{prefix}media/{media_id}/r0/sound-{name}"


def is_fetched(path: str) -> bool:
    """Whether only one fetch ever uses this path."""
    return _FETCHED.search(path) is not None


def incoming_path(path: str) -> str:
    """Return where an upload waits until it is moved to its path, if its link could replace a file there."""
    folder, _, name = path.rpartition("/")
    return f"{folder}/incoming-{name}"


def media_of(path: str, prefix: str = "") -> UUID | None:
    """Return the media that a path belongs to, or None if Nexus does not make such paths."""
    found = _OURS.fullmatch(path.removeprefix(prefix)) if path.startswith(prefix) else None
    if found is None:
        return None
    try:
        return UUID(found[1])
    except ValueError:
        return None


def download_name(filename: str, content_type: str) -> str:
    """Return the name under which a file is saved: the user's, with the extension of what the file is.

    An extension that says something else is replaced, so that a PDF named `quarterly.html` never opens in a browser.
    One that is not a file type, as in `report.v2`, is part of the name.
    """
    wanted = SUFFIXES.get(content_type.partition(";")[0].strip().lower())
    name = filename.rstrip(". ")
    stem, _, suffix = name.rpartition(".")
    if wanted is None or (stem and suffix.lower() in wanted):
        return name or filename
    if stem and f".{suffix.lower()}" in _known_suffixes():
        name = stem
    return f"{name or 'file'}.{wanted[0]}"


@cache
def _known_suffixes() -> frozenset[str]:
    """Those that Python knows, whatever is installed on the machine."""
    return frozenset(mimetypes.MimeTypes(()).types_map[True])


def disposition(filename: str) -> str:
    """Return a Content-Disposition that saves the file under its name, in whatever script that is."""
    plain = "".join(c if c.isascii() and c.isprintable() and c not in '"\\%;' else "_" for c in filename)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(filename, safe='')}"
