"""The names of files and objects: the one place where a path is made, and what a download is called."""

from __future__ import annotations

from urllib.parse import quote
from uuid import UUID

EXTENSIONS = {"pdf": "pdf", "epub": "epub", "text": "txt"}


def object_path(media_id: UUID, kind: str, prefix: str = "") -> str:
    """`media/{media_id}/original.{ext}`; with no user in it. Tests put a prefix of their run before it."""
    return f"{prefix}media/{media_id}/original.{EXTENSIONS[kind]}"


def fetched_path(media_id: UUID, fetch: str, extension: str, prefix: str = "") -> str:
    """Of a file that an address answered with. No two fetches have the same name, so that a removal that comes late
    can't meet the file of a later one."""
    return f"{prefix}media/{media_id}/fetched-{fetch}.{extension}"


def media_of(path: str, prefix: str = "") -> UUID | None:
    """The media that a path belongs to, or None where it is no path of ours."""
    parts = path.removeprefix(prefix).split("/")
    if not path.startswith(prefix) or len(parts) != 3 or parts[0] != "media":
        return None
    try:
        return UUID(parts[1])
    except ValueError:
        return None


def disposition(filename: str) -> str:
    """A Content-Disposition that saves under the user's name, in whatever script it is written."""
    plain = "".join(c if c.isascii() and c.isprintable() and c not in '"\\%;' else "_" for c in filename)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(filename, safe='')}"
