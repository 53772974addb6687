"""`python -m bench.attacker PORT JOBS`: one user who takes as much of a Nexus as they can.

Reads the headers to send from the first line of its input, and attacks once for each further line.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import uvloop

STREAMS = 300
UPLOADS = 300
STAGED_FILES, STAGED_BYTES = 4, 50 * 1024 * 1024
PIECE = b"All work and no play. " * 3000
UPLOAD = {"kind": "pdf", "filename": "a.pdf", "content_type": "application/pdf", "size_bytes": 1000}


class Attacker:
    def __init__(self, port: int, headers: dict[str, str]) -> None:
        self._port = port
        self._fields = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self._batch = ""
        #: Whatever stays open: streams, and fetches that wait for their site.
        self._held: list[asyncio.StreamWriter] = []

    async def fetch(self, job_id: str) -> None:
        """Ask for a page whose site never answers, and don't wait."""
        _, writer = await self._send("POST", f"/api/ingestion-jobs/{job_id}/fetch")
        self._held.append(writer)

    async def attack(self) -> None:
        """Everything at once."""
        if not self._batch:
            opened = await self._ask("POST", "/imports/batches", json.dumps({"name": "Much"}).encode())
            self._batch = opened["data"]["id"]
        init = json.dumps(UPLOAD).encode()
        await asyncio.gather(
            *(self._follow() for _ in range(STREAMS)),
            *(self._ask("POST", "/media/upload/init", init) for _ in range(UPLOADS)),
            *(self._stage(number) for number in range(STAGED_FILES)),
        )

    async def _follow(self) -> None:
        reader, writer = await self._send("GET", "/events")
        head = await reader.readuntil(b"\r\n\r\n")
        if head.startswith(b"HTTP/1.1 200"):
            self._held.append(writer)
        else:
            writer.close()

    async def _stage(self, number: int) -> None:
        target = f"/imports/batches/{self._batch}/sources?name={number}.txt"
        reader, writer = await self._send("POST", target, length=STAGED_BYTES)
        left = STAGED_BYTES
        while left:
            piece = PIECE[:left]
            writer.write(piece)
            await writer.drain()
            left -= len(piece)
        await reader.readuntil(b"\r\n\r\n")
        writer.close()

    async def _ask(self, method: str, target: str, body: bytes = b"") -> Any:
        reader, writer = await self._send(method, target, body)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
        answer = json.loads(await reader.readexactly(length))
        writer.close()
        return answer

    async def _send(
        self, method: str, target: str, body: bytes = b"", length: int | None = None
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        size = len(body) if length is None else length
        head = (
            f"{method} {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            f"Content-Length: {size}\r\n{self._fields}\r\n"
        )
        writer.write(head.encode() + body)
        return reader, writer


async def main() -> None:
    port, *jobs = sys.argv[1:]
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    attacker = Attacker(int(port), json.loads(await lines.readline()))
    for job_id in jobs:
        await attacker.fetch(job_id)
    while await lines.readline():
        await attacker.attack()
        print("done", flush=True)


if __name__ == "__main__":
    uvloop.run(main())
