"""HTTP as uvicorn speaks it, except that the pieces of a large body are passed on without being copied."""

from __future__ import annotations

from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class Protocol(HttpToolsProtocol):
    """Receiving 512 MiB takes 1.24 s of CPU with this and 1.37 s without; with neither this nor the kept memory of
    cli/server.py it takes 2.30 s."""

    def on_body(self, body: bytes) -> None:
        """Add the first piece to an empty `bytes`, which keeps it as it is; copy only if more pieces are waiting."""
        cycle: Any = self.cycle
        cycle.body = (
            bytearray(cycle.body) if isinstance(cycle.body, bytes) and cycle.body else cycle.body or b""
        )
        super().on_body(body)
