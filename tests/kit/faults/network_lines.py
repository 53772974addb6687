"""TCP lines on loopback between Nexus and what it depends on.

They can be cut, held or refused, and a trap cuts them at a chosen moment of an exchange.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self
from urllib.parse import urlsplit

PIECE = 65536


def query(text: str) -> bytes:
    """A simple query as PostgreSQL's protocol has it: a Q, its length and its text."""
    return b"Q" + (len(text) + 5).to_bytes(4) + text.encode() + b"\0"


BEGIN, COMMIT = query("BEGIN"), query("COMMIT")


class Moment(StrEnum):
    """When a trap springs, around the last of its words."""

    BEFORE = "before"  #: the server never hears the word
    AFTER = "after"  #: the server has answered, and the caller has not heard it
    WITHIN = "within"  #: the caller has heard half of the answer
    HELD = "held"  #: as before, and the server hears the word later, if the test decides so


@dataclass(frozen=True)
class Trap:
    """Springs once, at a connection that says these words one after the other within a transaction."""

    words: tuple[bytes, ...]
    moment: Moment


@dataclass(eq=False)
class Armed:
    """A trap on a line, and what it does to the connection."""

    trap: Trap
    act: Callable[[Connection], object]
    #: Set just before it acts.
    sprung: threading.Event = field(default_factory=threading.Event)
    #: Whether a word that is held arrives: the test's decision.
    arrives: Future[bool] = field(default_factory=Future)

    def spring(self, connection: Connection) -> None:
        self.sprung.set()
        self.act(connection)


class Connection:
    """A caller and its server, and what lies between."""

    def __init__(
        self,
        line: Line,
        near: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        far: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        self._line = line
        self._asked, self._near = near
        self._answered, self._far = far
        self._trap: Armed | None = None
        self._said = 0
        self._caught: Armed | None = None

    def cut(self) -> None:
        """The caller is cut off at once, with a reset. The server sees a client that has gone."""
        with suppress(OSError):
            reset = struct.pack("ii", 1, 0)
            self._near.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
        self._near.transport.abort()

    async def run(self) -> None:
        ways = [asyncio.create_task(self._ask()), asyncio.create_task(self._answer())]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            self._far.close()

    async def _ask(self) -> None:
        with suppress(OSError):
            while data := await self._asked.read(PIECE):
                await self._line.opened.wait()
                if self._near.is_closing():
                    return
                caught = self._catch(data)
                if caught is not None and caught.trap.moment in {Moment.BEFORE, Moment.HELD}:
                    caught.spring(self)
                    if caught.trap.moment is Moment.BEFORE or not await asyncio.wrap_future(caught.arrives):
                        return
                else:
                    self._caught = caught or self._caught
                self._far.write(data)
                await self._far.drain()

    async def _answer(self) -> None:
        with suppress(OSError):
            while data := await self._answered.read(PIECE):
                await self._line.opened.wait()
                caught, self._caught = self._caught, None
                if caught is not None:
                    heard = len(data) // 2 if caught.trap.moment is Moment.WITHIN else 0
                    self._near.write(data[:heard])
                    await self._near.drain()
                    data = data[heard:]
                    caught.spring(self)
                if self._near.is_closing():
                    return
                self._near.write(data)
                await self._near.drain()

    def _catch(self, data: bytes) -> Armed | None:
        """The line's next trap, if this has the last of its words. It is off the line then."""
        armed = next(iter(self._line.armed), None)
        if armed is not self._trap or BEGIN in data:
            self._trap, self._said = armed, 0
        if armed is None:
            return None
        words = armed.trap.words
        while self._said < len(words) and words[self._said] in data:
            self._said += 1
        if self._said < len(words):
            return None
        self._line.armed.remove(armed)
        return armed


class Line:
    """Connections to its port are put through to the target."""

    def __init__(self, lines: Lines, target: str) -> None:
        self._lines = lines
        self.target = target
        self.port = 0
        #: The traps that still wait for their words, one after the other.
        self.armed: list[Armed] = []
        self.opened = asyncio.Event()
        self._refuses = False
        self._connections: set[Connection] = set()

    @property
    def is_used(self) -> bool:
        """Whether somebody is connected."""
        return bool(self._connections)

    @property
    def url(self) -> str:
        """The target's URL, through this line."""
        target = urlsplit(self.target)
        user, at, _ = target.netloc.rpartition("@")
        return target._replace(netloc=f"{user}{at}127.0.0.1:{self.port}").geturl()

    def arm(self, trap: Trap, act: Callable[[Connection], object] = Connection.cut) -> Armed:
        armed = Armed(trap, act)
        self._lines.do(lambda: self.armed.append(armed))
        return armed

    def cut(self) -> None:
        """Cut every open connection."""
        self._lines.do(self._cut)

    def refuse(self) -> None:
        """Cut every connection and accept no new one."""
        self._refuses = True
        self.cut()

    def hold(self) -> None:
        """Let nothing through, and lose nothing."""
        self._lines.do(self.opened.clear)

    def restore(self) -> None:
        """Let everything through, and remove all traps."""
        self._refuses = False
        self._lines.do(self.armed.clear)
        self._lines.do(self.opened.set)

    def _cut(self) -> None:
        for connection in self._connections:
            connection.cut()

    async def listen(self) -> None:
        self.opened.set()
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def close(self) -> None:
        self._server.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        target = urlsplit(self.target)
        try:
            far = await asyncio.open_connection(target.hostname, target.port)
            connection = Connection(self, (reader, writer), far)
            self._connections.add(connection)
            if self._refuses:
                connection.cut()
            await connection.run()
            self._connections.discard(connection)
        except OSError:
            return
        finally:
            writer.close()


class Lines:
    """Lines that share one thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._lines: list[Line] = []
        self._thread = threading.Thread(target=self._loop.run_forever, name="lines")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def to(self, url: str) -> Line:
        line = Line(self, url)
        self._lines.append(line)
        self._run(line.listen())
        return line

    def do(self, act: Callable[[], object]) -> None:
        """Run this in the lines' own thread, in which traps spring, and wait for its end."""

        async def do_it() -> None:
            act()

        if threading.current_thread() is self._thread:
            act()
        else:
            self._run(do_it())

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _end(self) -> None:
        for line in self._lines:
            line.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
