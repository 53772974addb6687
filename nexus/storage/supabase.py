"""Supabase Storage over its REST API. Nearly every error is HTTP 400; the body says what it means.

Its upload links live for two hours, and a late or racing upload replaces the file that is there. So a link leads to a
place of its own, and the first read moves the file from there to its path, which no link covers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any
from urllib.parse import quote, urlencode

import httpx2
import jwt

from nexus.storage import (
    CHUNK,
    Clock,
    Link,
    ObjectExists,
    ObjectMissing,
    StorageError,
    Stored,
    Trouble,
    UploadTarget,
)
from nexus.storage.digest import Digest, Digester
from nexus.storage.names import incoming_path

PAGE = 100


@dataclass(frozen=True)
class Supabase:
    url: str
    service_key: str = field(repr=False)
    bucket: str
    clock: Clock
    link_server: None = None

    @cached_property
    def _base(self) -> str:
        return f"{self.url.rstrip('/')}/storage/v1"

    @cached_property
    def _client(self) -> httpx2.Client:
        headers = {"Authorization": f"Bearer {self.service_key}", "apikey": self.service_key}
        return httpx2.Client(headers=headers, timeout=30, follow_redirects=False, trust_env=False)

    def sign_upload(self, path: str, content_type: str, size: int, life: timedelta) -> UploadTarget:  # noqa: ARG002
        """The server decides how long the link lives, so read that from its token."""
        place = self._place(incoming_path(path))
        signed = self._call(
            "POST", f"/object/upload/sign/{place}", json={}, headers={"x-upsert": "true"}
        ).json()
        claims = jwt.decode(signed["token"], options={"verify_signature": False})
        expires_at = datetime.fromtimestamp(int(claims["exp"]), UTC)
        return UploadTarget(self._base + signed["url"], {"Content-Type": content_type}, expires_at)

    def sign_download(self, path: str, filename: str, content_type: str, life: timedelta) -> Link:  # noqa: ARG002
        """The server sends the stored type. The file name is the one parameter that the token does not cover."""
        seconds = int(life.total_seconds())
        signed = self._call("POST", f"/object/sign/{self._place(path)}", json={"expiresIn": seconds}).json()
        url = f"{self._base}{signed['signedURL']}&{urlencode({'download': filename})}"
        return Link(url, self.clock() + life)

    def head(self, path: str) -> Stored | None:
        try:
            return self._info(path)
        except ObjectMissing:
            self._bring_in(path)
        with suppress(ObjectMissing):
            return self._info(path)
        return None

    def stream(self, path: str) -> Iterator[bytes]:
        try:
            yield from self._read(path)
        except ObjectMissing:
            self._bring_in(path)
            yield from self._read(path)

    def _bring_in(self, path: str) -> None:
        """Move an upload to its path, unless another thread does so or none has arrived."""
        places = {"sourceKey": incoming_path(path), "destinationKey": path}
        with suppress(ObjectMissing, ObjectExists):
            self._call("POST", "/object/move", json={"bucketId": self.bucket, **places})

    def _info(self, path: str) -> Stored:
        found = self._call("GET", f"/object/info/{self._place(path)}").json()
        return Stored(path, int(found["size"]), datetime.fromisoformat(found["last_modified"]))

    def _read(self, path: str) -> Iterator[bytes]:
        try:
            with self._client.stream("GET", f"{self._base}/object/{self._place(path)}") as response:
                if response.is_error:
                    response.read()
                    raise _explained(response)
                yield from response.iter_bytes(CHUNK)
        except httpx2.HTTPError as error:
            raise StorageError(type(error).__name__) from error

    def digest(self, path: str) -> Digest | None:  # noqa: ARG002
        return None

    def put(self, path: str, chunks: Iterable[bytes], content_type: str) -> Digest:
        digester = Digester()
        headers = {"Content-Type": content_type, "x-upsert": "false"}
        place = f"/object/{self._place(path)}"
        self._call("POST", place, content=digester.passing(chunks), headers=headers)
        return digester.result()

    def delete(self, path: str) -> None:
        """An upload that arrives later stays at its own place, until upkeep finds it."""
        for each in (path, incoming_path(path)):
            with suppress(ObjectMissing):
                self._call("DELETE", f"/object/{self._place(each)}")

    def objects(self, prefix: str) -> Iterator[Stored]:
        """The server lists one folder at a time. An entry without an id is a folder."""
        folder, _, _ = prefix.rpartition("/")
        for found in self._walk(folder):
            if found.path.startswith(prefix):
                yield found

    def partial_files(self) -> Iterator[Stored]:
        return iter(())

    def delete_partial(self, part: Stored) -> None:  # noqa: ARG002
        return

    def trouble(self) -> Trouble | None:
        try:
            self._call("GET", f"/bucket/{quote(self.bucket)}")
        except ObjectMissing:
            return Trouble("Supabase has no such bucket.", "Create it, or correct NEXUS_SUPABASE_BUCKET.")
        except StorageError as error:
            if isinstance(error.__cause__, httpx2.HTTPError):
                return Trouble("Supabase can't be reached.", "Start it, or correct NEXUS_SUPABASE_URL.")
            return Trouble(
                f"Supabase refuses: {error}.", "Correct NEXUS_SUPABASE_SERVICE_KEY; check NEXUS_SUPABASE_URL."
            )
        return None

    def _walk(self, folder: str) -> Iterator[Stored]:
        offset = 0
        while True:
            page = self._page(folder, offset)
            for entry in page:
                path = f"{folder}/{entry['name']}" if folder else entry["name"]
                if entry.get("id") is None:
                    yield from self._walk(path)
                else:
                    yield Stored(
                        path, int(entry["metadata"]["size"]), datetime.fromisoformat(entry["updated_at"])
                    )
            if len(page) < PAGE:
                return
            offset += PAGE

    def _page(self, folder: str, offset: int) -> list[dict[str, Any]]:
        order = {"column": "name", "order": "asc"}
        query = {"prefix": folder, "limit": PAGE, "offset": offset, "sortBy": order}
        page: list[dict[str, Any]] = self._call(
            "POST", f"/object/list/{quote(self.bucket)}", json=query
        ).json()
        return page

    def _place(self, path: str) -> str:
        return f"{quote(self.bucket)}/{quote(path)}"

    def _call(self, method: str, path: str, **parameters: Any) -> httpx2.Response:
        try:
            response = self._client.request(method, self._base + path, **parameters)
        except httpx2.HTTPError as error:
            raise StorageError(type(error).__name__) from error
        if response.is_error:
            raise _explained(response)
        return response


def _explained(response: httpx2.Response) -> StorageError:
    try:
        body = response.json()
        status, code = str(body.get("statusCode")), str(body.get("code") or body.get("error"))
    except (ValueError, AttributeError):
        status, code = str(response.status_code), "unknown"
    if status == "404":
        return ObjectMissing(code)
    return ObjectExists(code) if status == "409" else StorageError(f"{status} {code}")
