"""The socket of one request: connected to a checked address, with limits on its time and its bytes."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterable
from functools import partial
from ipaddress import ip_address
from typing import Any, TypeVar

import httpcore2

from nexus.deadline import Deadline
from nexus.errors import (
    FetchBadAnswer,
    FetchBlockedAddress,
    FetchFailed,
    FetchInsecure,
    FetchTimeout,
)
from nexus.fetch.addresses import Address
from nexus.fetch.limits import BROKE_OFF

T = TypeVar("T")

#: What may come besides the body: the handshake, interim answers, headers, chunk sizes.
MOST_FRAME_BYTES = 256 * 1024
READ_BYTES = 64 * 1024
#: How long each address of a name is tried if there are several, in seconds.
ADDRESS_PATIENCE = 5.0

NOT_TRUSTED = (
    "The site's certificate is not valid. Check it in a browser; Nexus does not fetch without a valid one."
)
NO_TLS = "The site offers no secure connection that Nexus supports. Check that it opens in a browser."

Connect = Callable[[Address, int, float], socket.socket]


class CountedSocket:
    """A socket on which every wait ends by the deadline and every byte counts.

    A body pays for its own bytes and a little for its framing, so a limit on the body bounds the whole answer.
    """

    def __init__(self, sock: socket.socket, deadline: Deadline) -> None:
        self._sock = sock
        self._deadline = deadline
        self._bytes_left = MOST_FRAME_BYTES
        #: Whether the other side has closed the connection.
        self.ended = False

    def pay(self, body: bytes) -> None:
        self._bytes_left += len(body) + len(body) // 16

    def receive(self) -> bytes:
        try:
            self._sock.settimeout(self._deadline.left())
            data = self._sock.recv(READ_BYTES)
        except TimeoutError as error:
            raise FetchTimeout from error
        except OSError as error:
            raise FetchFailed(BROKE_OFF) from error
        self._bytes_left -= len(data)
        if self._bytes_left < 0:
            raise FetchBadAnswer
        self.ended = not data
        return data

    def send(self, data: bytes) -> None:
        try:
            self._sock.settimeout(self._deadline.left())
            self._sock.sendall(data)
        except TimeoutError as error:
            raise FetchTimeout from error
        except OSError as error:
            # A site may answer before it has read the whole request. httpcore2 reads on after this error.
            raise httpcore2.WriteError from error

    def close(self) -> None:
        self._sock.close()


class PlainStream(httpcore2.NetworkStream):
    def __init__(self, wire: CountedSocket) -> None:
        self._wire = wire

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002
        return self._wire.receive()

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002
        self._wire.send(buffer)

    def close(self) -> None:
        self._wire.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002
    ) -> httpcore2.NetworkStream:
        try:
            return TlsStream(self._wire, ssl_context, server_hostname)
        except BaseException:
            self.close()
            raise

    def get_extra_info(self, info: str) -> Any:  # noqa: ARG002
        return None


class TlsStream(httpcore2.NetworkStream):
    """TLS in memory, so that limits apply to the bytes on the network."""

    def __init__(self, wire: CountedSocket, context: ssl.SSLContext, name: str | None) -> None:
        self._wire = wire
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        try:
            self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=name)
            self._exchange(self._tls.do_handshake)
        except ssl.SSLCertVerificationError as error:
            raise FetchInsecure(NOT_TRUSTED) from error
        except ssl.SSLEOFError as error:
            raise FetchFailed(BROKE_OFF) from error
        except (ssl.SSLError, ValueError) as error:  # ValueError: no certificate could hold this name
            raise FetchInsecure(NO_TLS) from error

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002
        try:
            return self._exchange(partial(self._tls.read, max_bytes))
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            self._wire.ended = True
            return b""
        except ssl.SSLError as error:
            raise FetchFailed(BROKE_OFF) from error

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002
        try:
            self._exchange(partial(self._tls.write, buffer))
        except ssl.SSLError as error:
            raise FetchFailed(BROKE_OFF) from error

    def close(self) -> None:
        self._wire.close()

    def get_extra_info(self, info: str) -> Any:
        return self._tls if info == "ssl_object" else None

    def _exchange(self, step: Callable[[], T]) -> T:
        """Send and receive until a TLS step is done."""
        while True:
            try:
                done = step()
            except ssl.SSLWantReadError:
                self._flush()
                self._fill()
            else:
                self._flush()
                return done

    def _flush(self) -> None:
        if self._outgoing.pending:
            self._wire.send(self._outgoing.read())

    def _fill(self) -> None:
        data = self._wire.receive()
        if data:
            self._incoming.write(data)
        else:
            self._incoming.write_eof()


class Dialer(httpcore2.NetworkBackend):
    """Connects to the checked addresses that `find` returns for a host, and verifies which of them answered."""

    wire: CountedSocket

    def __init__(
        self, find: Callable[[str, int, Deadline], list[Address]], connect: Connect, deadline: Deadline
    ) -> None:
        self._find = find
        self._connect = connect
        self._deadline = deadline

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002
        local_address: str | None = None,  # noqa: ARG002
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,  # noqa: ARG002
    ) -> httpcore2.NetworkStream:
        addresses = self._find(host, port, self._deadline)
        for left in range(len(addresses), 0, -1):
            address = addresses[-left]
            try:
                sock = self._connect(address, port, self._share(left))
            except OSError as error:
                failure: OSError = error
            else:
                _require_peer(sock, address, port)
                self.wire = CountedSocket(sock, self._deadline)
                return PlainStream(self.wire)
        raise FetchTimeout if isinstance(failure, TimeoutError) else FetchFailed from failure

    def _share(self, addresses_left: int) -> float:
        """Return the seconds for the next address: a dead one must not use up the time of the others."""
        left = self._deadline.left()
        return left if addresses_left == 1 else min(ADDRESS_PATIENCE, left / addresses_left)


def _require_peer(sock: socket.socket, address: Address, port: int) -> None:
    """Raises FetchBlockedAddress if the socket is connected to another address."""
    try:
        host, peer_port, *_ = sock.getpeername()
        if (ip_address(host), peer_port) != (address, port):
            raise FetchBlockedAddress
    except OSError as error:
        sock.close()
        raise FetchFailed from error
    except BaseException:
        sock.close()
        raise
