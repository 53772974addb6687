"""HTTP as uvicorn speaks it, but that the pieces of a large body are handed on as they come, without copies."""

from __future__ import annotations

from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class Protocol(HttpToolsProtocol):
    def on_body(self, body: bytes) -> None:
        """The first piece is added to no bytes, and so stays what it is; only where more wait are they copied."""
        cycle: Any = self.cycle
        cycle.body = (
            bytearray(cycle.body) if isinstance(cycle.body, bytes) and cycle.body else cycle.body or b""
        )
        super().on_body(body)
