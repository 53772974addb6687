"""TCP lines on loopback, between Nexus and what it depends on, that can be cut, held, and cut at a chosen moment."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self

PIECE = 65536
#: What begins a transaction of PostgreSQL: a trap's words are counted within one.
BEGIN = b"BEGIN"


@dataclass
class Trap:
    """Waits for a connection that says these words, one after the other, and then acts once.

    `moment` is "said": before the last word goes on; "answered": when its answer has come and nobody has seen it;
    "within": when half of the next answer has gone on.
    """

    words: tuple[bytes, ...]
    moment: str
    act: Callable[[Connection], None]


class Connection:
    """A client and its server, and what lies between."""

    def __init__(
        self, line: Line, near: tuple[Any, asyncio.StreamWriter], far: tuple[Any, asyncio.StreamWriter]
    ) -> None:
        self._line = line
        self._near, self._far = near, far
        self._said = 0
        self._caught: Trap | None = None

    def cut(self) -> None:
        """At once, with a reset."""
        for _, writer in (self._near, self._far):
            sock = writer.get_extra_info("socket")
            with suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()

    async def run(self) -> None:
        ways = [asyncio.create_task(self._ask()), asyncio.create_task(self._answer())]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            for _, writer in (self._near, self._far):
                writer.close()

    async def _ask(self) -> None:
        with suppress(OSError):
            while data := await self._near[0].read(PIECE):
                await self._line.opened.wait()
                trap = self._springs(data)
                if trap is not None and trap.moment == "said":
                    trap.act(self)
                    return
                self._caught = trap or self._caught
                self._far[1].write(data)
                await self._far[1].drain()

    async def _answer(self) -> None:
        with suppress(OSError):
            while data := await self._far[0].read(PIECE):
                await self._line.opened.wait()
                trap, self._caught = self._caught, None
                if trap is not None and trap.moment == "within":
                    self._near[1].write(data[: len(data) // 2])
                    await self._near[1].drain()
                if trap is not None:
                    trap.act(self)
                if self._near[1].is_closing():
                    return
                self._near[1].write(data)
                await self._near[1].drain()

    def _springs(self, data: bytes) -> Trap | None:
        """The line's trap, when its last word is in this."""
        trap = self._line.trap
        if BEGIN in data:
            self._said = 0
        if trap is None:
            return None
        while self._said < len(trap.words) and trap.words[self._said] in data:
            self._said += 1
        if self._said < len(trap.words):
            return None
        self._said, self._line.trap = 0, None
        return trap


@dataclass
class Line:
    """One line: everybody who connects to its port is put through to the target."""

    loop: asyncio.AbstractEventLoop
    host: str
    target: int
    port: int = 0
    trap: Trap | None = None
    refusing: bool = False
    opened: asyncio.Event = field(default_factory=asyncio.Event)
    connections: set[Connection] = field(default_factory=set)
    server: asyncio.Server | None = None

    def cut(self) -> None:
        self._do(self._cut)

    def refuse(self) -> None:
        """As if nobody were there."""
        self.refusing = True
        self.cut()

    def hold(self) -> None:
        """Nothing goes through, and nothing is lost."""
        self._do(self.opened.clear)

    def arm(self, trap: Trap) -> None:
        self.trap = trap

    def restore(self) -> None:
        self.refusing, self.trap = False, None
        self._do(self.opened.set)

    def _cut(self) -> None:
        for connection in self.connections:
            connection.cut()

    def _do(self, act: Callable[[], object]) -> None:
        done = threading.Event()
        self.loop.call_soon_threadsafe(lambda: (act(), done.set()))
        done.wait()

    async def listen(self) -> None:
        self.opened.set()
        self.server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self.server.sockets[0].getsockname()[1]

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if self.refusing:
                raise ConnectionRefusedError
            far = await asyncio.open_connection(self.host, self.target)
        except OSError:
            writer.transport.abort()
            return
        connection = Connection(self, (reader, writer), far)
        self.connections.add(connection)
        try:
            await connection.run()
        finally:
            self.connections.discard(connection)


class Lines:
    """All lines of a run, in one thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._lines: list[Line] = []
        self._thread = threading.Thread(target=self._loop.run_forever, name="chaos-lines")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def to(self, port: int, host: str = "127.0.0.1") -> Line:
        line = Line(self._loop, host, port)
        self._lines.append(line)
        self._run(line.listen())
        return line

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _end(self) -> None:
        for line in self._lines:
            if line.server is not None:
                line.server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
