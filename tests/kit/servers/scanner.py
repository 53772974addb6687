"""A malware scanner on loopback that speaks clamd's protocol, and knows one harmless test file as malicious."""

from __future__ import annotations

import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

#: In two halves, so that no scanner takes this file for the one that it knows.
KNOWN = b"X5O!P%@AP[4\\PZX54(P^)7CC)7}$EICAR-STANDARD-" + b"ANTIVIRUS-TEST-FILE!$H+H*"


@dataclass
class ClamdDouble:
    address: str
    #: What it says instead of a verdict.
    says: bytes | None = None
    #: Every file that it was shown.
    seen: list[bytes] = field(default_factory=list)

    def judge(self, file: bytes) -> bytes:
        self.seen.append(file)
        if self.says is not None:
            return self.says
        return b"stream: Eicar-Test-Signature FOUND\0" if KNOWN in file else b"stream: OK\0"


@contextmanager
def scanning(path: str = "") -> Iterator[ClamdDouble]:
    """Listen on a port, or at a path, until the block ends."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            command = b""
            while not command.endswith(b"\0"):
                command += self.rfile.read(1)
            if command == b"zPING\0":
                self.wfile.write(b"PONG\0")
            elif command == b"zINSTREAM\0":
                self.wfile.write(found.judge(b"".join(self.pieces())))

        def pieces(self) -> Iterator[bytes]:
            while size := int.from_bytes(self.rfile.read(4), "big"):
                yield self.rfile.read(size)

    class Listening(socketserver.ThreadingMixIn, socketserver.TCPServer):
        address_family = socket.AF_UNIX if path else socket.AF_INET

    with Listening(path or ("127.0.0.1", 0), Handler) as server:  # type: ignore[arg-type]
        found = ClamdDouble(path or f"127.0.0.1:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield found
        finally:
            server.shutdown()
            thread.join()
