"""Our scripts and styles: in memory, compressed once, and kept by browsers for as long as their address is the same."""

from __future__ import annotations

import gzip
import hashlib
import mimetypes
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

FOLDER = Path(__file__).parents[1] / "static"
FOR_GOOD = "public, max-age=31536000, immutable"


@dataclass(frozen=True)
class StaticFile:
    name: str
    content: bytes

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256(self.content).hexdigest()[:10]

    @cached_property
    def packed(self) -> bytes:
        return gzip.compress(self.content, mtime=0)

    @property
    def address(self) -> str:
        """Changes with the content, so browsers never show an outdated file."""
        return f"/static/{self.name}?v={self.digest}"

    @property
    def media_type(self) -> str:
        return mimetypes.guess_type(self.name)[0] or "text/plain"


@cache
def static_file(name: str) -> StaticFile:
    """Read a file of ours. Raises KeyError if there is none of this name."""
    return StaticFile(name, _files()[name].read_bytes())


@cache
def _files() -> dict[str, Path]:
    """All of them by name: a name that is not here leads nowhere, whatever is on the disk."""
    return {path.relative_to(FOLDER).as_posix(): path for path in FOLDER.rglob("*") if path.is_file()}


class StaticFolder:
    """Serves the files below /static."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] not in {"GET", "HEAD"}:
            raise HTTPException(405)
        try:
            found = static_file(scope["path"].removeprefix(scope["root_path"]).lstrip("/"))
        except KeyError:
            raise HTTPException(404) from None
        await _answer(found, scope)(scope, receive, send)


def _answer(found: StaticFile, scope: Scope) -> Response:
    asked = Headers(scope=scope)
    is_packed = takes_gzip(asked.get("accept-encoding", ""))
    tag = f'"{found.digest}-gzip"' if is_packed else f'"{found.digest}"'
    is_dated = scope["query_string"] == f"v={found.digest}".encode()
    headers = {
        "ETag": tag,
        "Vary": "Accept-Encoding",
        "Cache-Control": FOR_GOOD if is_dated else "no-cache",
    }
    known = {one.strip().removeprefix("W/") for one in asked.get("if-none-match", "").split(",")}
    if known & {tag, "*"}:
        return Response(status_code=304, headers=headers)
    if is_packed:
        headers["Content-Encoding"] = "gzip"
    return Response(found.packed if is_packed else found.content, 200, headers, found.media_type)


def takes_gzip(accepted: str) -> bool:
    """Whether an Accept-Encoding header allows gzip: by name, or else by `*`."""
    weights = dict[str, str]()
    for offer in accepted.lower().split(","):
        coding, _, weight = offer.partition(";")
        weights[coding.strip()] = weight.strip().removeprefix("q=").strip() or "1"
    chosen = weights.get("gzip", weights.get("*", "0"))
    return chosen.strip("0.") != ""
