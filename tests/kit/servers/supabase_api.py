"""A loopback server that speaks Supabase Storage's REST calls as its clients see them on the wire."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from json import dumps, loads
from urllib.parse import parse_qs, quote, unquote, urlsplit

import jwt

from tests.kit.servers.threads import running

SERVICE_KEY = "service-key-of-the-tests"
SECRET = "secret-of-the-store-that-is-long-enough"
BUCKET = "private"
UPLOAD_SECONDS = 7200  # set on the server; the caller has no say in it
MOST_BYTES = 200 * 1024 * 1024


@dataclass
class Object:
    body: bytes
    content_type: str
    updated_at: datetime = field(default_factory=lambda: datetime.now(UTC))


@dataclass
class Supabase:
    """The server's address, and what it holds, for tests to look at."""

    url: str = ""
    objects: dict[str, Object] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    #: Set to make every call fail as a broken server does.
    broken: bool = False


class Refused(Exception):
    def __init__(self, status: str, code: str, message: str) -> None:
        self.body = {"statusCode": status, "code": code, "error": code, "message": message}


@contextmanager
def supabase() -> Iterator[Supabase]:
    state = Supabase()

    class Handler(_Handler):
        store = state

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    with running(server) as port:
        state.url = f"http://127.0.0.1:{port}"
        yield state


def upload_token(path: str, seconds: int = UPLOAD_SECONDS) -> str:
    return jwt.encode({"url": path, "upload": True, "exp": int(time.time()) + seconds}, SECRET, "HS256")


class _Handler(BaseHTTPRequestHandler):
    store: Supabase
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        pass

    def handle(self) -> None:
        """A client that breaks off ends its connection, and nothing is logged."""
        with suppress(ConnectionError):
            super().handle()

    def do_POST(self) -> None:
        self._route(
            {
                "/object/upload/sign/": self._sign_upload,
                "/object/sign/": self._sign_download,
                "/object/list/": self._list,
                "/object/move": self._move,
                "/object/": self._create,
            }
        )

    def do_PUT(self) -> None:
        self._route({"/object/upload/sign/": self._upload})

    def do_GET(self) -> None:
        self._route(
            {
                "/object/info/": self._info,
                "/object/sign/": self._download,
                "/object/": self._read,
                "/bucket/": self._bucket,
            }
        )

    def do_DELETE(self) -> None:
        self._route({"/object/": self._delete})

    def _route(self, routes: dict[str, Callable[[str, bytes], None]]) -> None:
        body = self._body()
        path = unquote(urlsplit(self.path).path).removeprefix("/storage/v1")
        try:
            if self.store.broken:
                raise Refused("500", "InternalError", "Internal Server Error")
            for prefix, handle in routes.items():
                if path.startswith(prefix):
                    handle(path.removeprefix(prefix), body)
                    return
            raise Refused("404", "NoSuchRoute", "Route not found")
        except Refused as refused:
            self._answer(400, refused.body)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self._take(int(self.headers.get("Content-Length", 0)))
        whole = b""
        while size := int(self._take_line(), 16):
            whole += self._take(size)
            self._take_line()
        self._take_line()
        return whole

    def _take(self, size: int) -> bytes:
        data = self.rfile.read(size)
        if len(data) < size:
            raise ConnectionAbortedError
        return data

    def _take_line(self) -> bytes:
        line = self.rfile.readline()
        if not line.endswith(b"\n"):
            raise ConnectionAbortedError
        return line

    def _query(self, name: str) -> str:
        return parse_qs(urlsplit(self.path).query).get(name, [""])[0]

    def _require_key(self) -> None:
        if self.headers.get("Authorization") != f"Bearer {SERVICE_KEY}":
            raise Refused("403", "AccessDenied", "new row violates row-level security policy")

    def _known(self, path: str) -> Object:
        found = self.store.objects.get(path)
        if found is None:
            raise Refused("404", "NoSuchKey", "Object not found")
        return found

    def _claims(self, path: str) -> dict[str, object]:
        try:
            claims = jwt.decode(self._query("token"), SECRET, ["HS256"])
        except jwt.ExpiredSignatureError as error:
            raise Refused("400", "InvalidJWT", '"exp" claim timestamp check failed') from error
        except jwt.InvalidTokenError as error:
            raise Refused("400", "InvalidJWT", "signature verification failed") from error
        if claims["url"] != path:
            raise Refused("400", "InvalidSignature", "Invalid signature")
        return claims

    def _sign_upload(self, path: str, _body: bytes) -> None:
        self._require_key()
        if path in self.store.objects and self.headers.get("x-upsert") != "true":
            raise Refused("409", "KeyAlreadyExists", "The resource already exists")
        token = upload_token(path)
        self._answer(200, {"url": f"/object/upload/sign/{path}?token={token}", "token": token})

    def _upload(self, path: str, body: bytes) -> None:
        """As the real server does it: the last one wins, also long after the first."""
        self._claims(path)
        self.store.objects.pop(path, None)
        self._store(path, body)

    def _move(self, _path: str, body: bytes) -> None:
        self._require_key()
        asked = loads(body)
        source, target = (f"{asked['bucketId']}/{asked[key]}" for key in ("sourceKey", "destinationKey"))
        with self.store.lock:
            if target in self.store.objects:
                raise Refused("409", "KeyAlreadyExists", "The resource already exists")
            self._known(source)
            self.store.objects[target] = self.store.objects.pop(source)
        self._answer(200, {"message": "Successfully moved"})

    def _create(self, path: str, body: bytes) -> None:
        self._require_key()
        self._store(path, body)

    def _store(self, path: str, body: bytes) -> None:
        if path in self.store.objects:
            raise Refused("409", "KeyAlreadyExists", "The resource already exists")
        if len(body) > MOST_BYTES:
            raise Refused("413", "EntityTooLarge", "The object exceeded the maximum allowed size")
        self.store.objects[path] = Object(body, self.headers.get("Content-Type", ""))
        self._answer(200, {"Key": path, "Id": "an-id"})

    def _sign_download(self, path: str, body: bytes) -> None:
        self._require_key()
        self._known(path)
        expiry = int(time.time()) + int(loads(body)["expiresIn"])
        token = jwt.encode({"url": path, "exp": expiry}, SECRET, "HS256")
        self._answer(200, {"signedURL": f"/object/sign/{path}?token={token}"})

    def _download(self, path: str, _body: bytes) -> None:
        self._claims(path)
        self._send(self._known(path), self._query("download"))

    def _read(self, path: str, _body: bytes) -> None:
        self._require_key()
        self._send(self._known(path), "")

    def _info(self, path: str, _body: bytes) -> None:
        self._require_key()
        found = self._known(path)
        self._answer(
            200,
            {
                "id": "an-id",
                "name": path.partition("/")[2],
                "size": len(found.body),
                "content_type": found.content_type,
                "last_modified": found.updated_at.isoformat(),
            },
        )

    def _bucket(self, name: str, _body: bytes) -> None:
        self._require_key()
        if name != BUCKET:
            raise Refused("404", "Bucket not found", "Bucket not found")
        self._answer(200, {"id": name, "name": name, "public": False})

    def _delete(self, path: str, _body: bytes) -> None:
        self._require_key()
        self._known(path)
        del self.store.objects[path]
        self._answer(200, {"message": "Successfully deleted"})

    def _list(self, bucket: str, body: bytes) -> None:
        """One folder: its files, and its folders without an id."""
        self._require_key()
        query = loads(body)
        folder = f"{bucket}/{query['prefix']}".rstrip("/") + "/"
        entries: dict[str, dict[str, object]] = {}
        for path, found in sorted(self.store.objects.items()):
            if path.startswith(folder):
                name, _, deeper = path.removeprefix(folder).partition("/")
                entries[name] = (
                    {"name": name, "id": None}
                    if deeper
                    else {
                        "name": name,
                        "id": "an-id",
                        "updated_at": found.updated_at.isoformat(),
                        "metadata": {"size": len(found.body), "mimetype": found.content_type},
                    }
                )
        start = query["offset"]
        self._answer(200, list(entries.values())[start : start + query["limit"]])

    def _send(self, found: Object, download: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", found.content_type)
        self.send_header("Content-Length", str(len(found.body)))
        if download:
            name = quote(download)
            self.send_header("Content-Disposition", f"attachment; filename={name}; filename*=UTF-8''{name};")
        self.end_headers()
        self.wfile.write(found.body)

    def _answer(self, status: int, body: object) -> None:
        raw = dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)
