"""HTTP servers in a thread of the test's own process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer


@contextmanager
def running(server: ThreadingHTTPServer) -> Iterator[int]:
    """Serve in a thread until the block ends; the port."""
    thread = threading.Thread(target=server.serve_forever, args=(0.005,))
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
