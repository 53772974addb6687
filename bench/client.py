"""A client that uses less CPU than the servers it measures: fixed bytes over open connections."""

from __future__ import annotations

import asyncio
import re
import time
from dataclasses import dataclass

import uvloop

_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)


@dataclass(frozen=True)
class Burst:
    per_second: float
    p99: float


def burst(port: int, target: str, headers: dict[str, str], connections: int, requests: int) -> Burst:
    """Send this many GETs over several connections; each sends its next one when it has its answer."""
    lines = [
        f"GET {target} HTTP/1.1",
        "Host: 127.0.0.1",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    request = ("\r\n".join(lines) + "\r\n\r\n").encode()
    return uvloop.run(_burst(port, request, connections, requests))


async def _burst(port: int, request: bytes, connections: int, requests: int) -> Burst:
    open_now = [await asyncio.open_connection("127.0.0.1", port) for _ in range(connections)]
    seconds: list[float] = []
    began = time.perf_counter()
    await asyncio.gather(
        *(_ask(reader, writer, request, requests // connections, seconds) for reader, writer in open_now)
    )
    total = time.perf_counter() - began
    for _, writer in open_now:
        writer.close()
    return Burst(len(seconds) / total, sorted(seconds)[int(len(seconds) * 0.99)])


async def _ask(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    request: bytes,
    times: int,
    seconds: list[float],
) -> None:
    for _ in range(times):
        began = time.perf_counter()
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if not head.startswith(b"HTTP/1.1 200") or length is None:
            raise RuntimeError(f"not the answer that was asked for: {head!r}")
        await reader.readexactly(int(length[1]))
        seconds.append(time.perf_counter() - began)
