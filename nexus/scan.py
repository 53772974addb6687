"""A malware scanner that looks at files before Nexus keeps them: clamd, or anything else that speaks its INSTREAM."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from nexus import logging

log = logging.get_logger(__name__)

#: A longer answer is not a verdict, which is one line.
LONGEST_ANSWER = 4096
CLEAN, FOUND = "OK", "FOUND"


class MalwareFound(Exception):
    """The scanner knows this file as malicious."""


class ScannerAway(Exception):
    """The scanner gave no verdict, so nobody knows whether the file is malicious."""


@dataclass(frozen=True)
class Scanner:
    """Where the scanner listens: `host:port`, or the path of a socket of this machine."""

    address: str
    #: How long it may take to take in a piece of a file, and to give its verdict.
    seconds: float

    def watch(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the pieces unchanged while the scanner sees them. Raises MalwareFound or ScannerAway after the last.

        Callers must not trust them before the end. What getting a piece raises passes through.
        """
        with self._connected() as line:
            self._send(line, b"zINSTREAM\0")
            for piece in pieces:
                if piece:  # an empty one would end the file
                    self._send(line, len(piece).to_bytes(4, "big"), piece)
                yield piece
            self._send(line, bytes(4))
            self._judge(self._answer(line))

    def scan(self, data: bytes) -> None:
        """Raises MalwareFound or ScannerAway."""
        for _ in self.watch([data]):
            pass

    def ping(self) -> None:
        """Raises ScannerAway unless the scanner answers."""
        with self._connected() as line:
            self._send(line, b"zPING\0")
            if self._answer(line) != "PONG":
                raise ScannerAway

    def _connected(self) -> socket.socket:
        try:
            if self.address.startswith("/"):
                return self._connected_here()
            host, _, port = self.address.rpartition(":")
            return socket.create_connection((host.strip("[]"), int(port)), self.seconds)
        except OSError as error:
            raise _away(error) from error

    def _connected_here(self) -> socket.socket:
        line = socket.socket(socket.AF_UNIX)
        try:
            line.settimeout(self.seconds)
            line.connect(self.address)
        except OSError:
            line.close()
            raise
        return line

    def _send(self, line: socket.socket, *parts: bytes) -> None:
        try:
            for part in parts:
                line.sendall(part)
        except OSError as error:
            raise _away(error) from error

    def _answer(self, line: socket.socket) -> str:
        """A verdict that is cut off does not count."""
        answer = b""
        try:
            while not answer.endswith(b"\0") and (piece := line.recv(LONGEST_ANSWER)):
                answer += piece
                if len(answer) > LONGEST_ANSWER:
                    break
        except OSError as error:
            raise _away(error) from error
        return answer[:-1].decode("utf-8", "replace") if answer.endswith(b"\0") else ""

    def _judge(self, answer: str) -> None:
        verdict = answer.rpartition(" ")[2]
        if verdict == FOUND:
            log.warning("malware_found", scanner_says=answer)
            raise MalwareFound
        if verdict != CLEAN:
            log.warning("scanner_failed", scanner_says=answer)
            raise ScannerAway


def _away(error: OSError) -> ScannerAway:
    log.warning("scanner_failed", reason=type(error).__name__)
    return ScannerAway()
