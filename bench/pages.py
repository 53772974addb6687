"""Pages to read: real ones from the data folder, served over loopback by another process."""

from __future__ import annotations

import io
import json
import lzma
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

from bench.scorer import NoData, data_folder

SETS = ("scrapinghub", "readability", "trafilatura")


def load(most: int) -> list[bytes]:
    """Return the first pages of each set, the same number of each."""
    share = most // len(SETS)
    return [page for name in SETS for page in _pages(data_folder() / f"{name}-dev.tar.xz", share)]


def _pages(archive: Path, most: int) -> list[bytes]:
    with lzma.open(archive) as packed, tarfile.open(fileobj=io.BytesIO(packed.read())) as files:
        names = sorted(json.loads(_member(files, "truth.json")))[:most]
        return [_member(files, f"html/{name}.html") for name in names]


def _member(files: tarfile.TarFile, name: str) -> bytes:
    found = files.extractfile(name)
    if found is None:
        raise NoData(f"{name} is missing in the archive")
    return found.read()


@contextmanager
def served(pages: list[bytes]) -> Iterator[list[str]]:
    """Serve the pages inside the block; return their addresses."""
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    server = context.Process(target=_serve, args=(pages, theirs), daemon=True)
    server.start()
    try:
        port = ours.recv()
        yield [f"http://127.0.0.1:{port}/{number}" for number in range(len(pages))]
    finally:
        server.kill()
        server.join()


def _serve(pages: list[bytes], parent: Connection) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = pages[int(self.path.strip("/"))]
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *_: object) -> None:
            """Log nothing between the figures."""

    class Server(ThreadingHTTPServer):
        request_queue_size = 128

    server = Server(("127.0.0.1", 0), Handler)
    parent.send(server.server_port)
    server.serve_forever()
