"""Uploads as clients of the API make them."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx2

from tests.kit.http import Caller, Site, data
from tests.kit.uploads import EPUB, PDF

SIZE = 500


def upload_fields(body: bytes, kind: str = "pdf", **changes: Any) -> dict[str, Any]:
    given = {
        "kind": kind,
        "filename": f"a file.{kind}",
        "content_type": PDF if kind == "pdf" else EPUB,
        "size_bytes": len(body),
    }
    return {**given, **changes}


def begin_upload(me: Caller, body: bytes, kind: str = "pdf", **changes: Any) -> dict[str, Any]:
    begun: dict[str, Any] = data(me.post("/media/upload/init", json=upload_fields(body, kind, **changes)))
    return begun


def send_bytes(site: Site, begun: dict[str, Any], body: bytes) -> httpx2.Response:
    """Without signing in: the link is enough."""
    return site.anyone().put(begun["upload_url"], content=body, headers=begun["upload_headers"])


def upload_file(site: Site, me: Caller, body: bytes, kind: str = "pdf", **changes: Any) -> str:
    begun = begin_upload(me, body, kind, **changes)
    assert data(send_bytes(site, begun, body)) == {"done": True}
    return str(data(me.post(f"/media/{begun['media_id']}/ingest"))["media_id"])


def link_to(me: Caller, media_id: str) -> str:
    return str(data(me.get(f"/media/{media_id}/file"))["url"])


def changed_link(url: str, **changes: str | None) -> str:
    """The same link with other parameters; None leaves one out."""
    parts = urlsplit(url)
    query = {**dict(parse_qsl(parts.query)), **changes}
    return parts._replace(query=urlencode({k: v for k, v in query.items() if v is not None})).geturl()
