"""The life of the nursery: it imports readers and forks parsers, until its line to the worker ends.

It reaps a parser only when it is asked to, so that a process id never comes to mean another process.
"""

from __future__ import annotations

import gc
import importlib
import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress

from nexus.extract.child import jail, parser, wire
from nexus.extract.child.wire import Value

#: In a parser: the number of its only open file besides the standard ones, which lead nowhere.
LINE = 3
MOST_FILES = 65536


def main() -> None:
    """Signals to stop are for the worker, which then closes the line in its own time."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    nursery = Nursery(socket.socket(fileno=int(sys.argv[1])))
    with suppress(EOFError, OSError):
        nursery.live()
    nursery.end_all()


class Nursery:
    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._children: set[int] = set()
        #: Worked out here and not in a parser, where to look at every module would copy its page.
        self._readable = jail.installation()

    def live(self) -> None:
        while True:
            _, values = wire.receive(self._line)
            verb = wire.text(next(values))
            verbs = {"learn": self._learn, "fork": self._fork, "end": self._end}
            self._line.sendall(wire.frame(verbs[verb](values)))

    def end_all(self) -> None:
        for pid in self._children:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

    def _learn(self, values: Iterator[bytes | None]) -> list[Value]:
        """Import a module, or that of a reader, as the worker would. The answer is the kind of error, if any."""
        name, *path = values
        sys.path[:] = [os.fsdecode(wire.blob(entry)) for entry in path]
        importlib.invalidate_caches()
        try:
            _import(wire.text(name))
        except BaseException as error:
            return [type(error).__name__]
        self._readable = jail.installation()
        return [None]

    def _fork(self, _: Iterator[bytes | None]) -> list[Value]:
        (line,) = socket.recv_fds(self._line, 1, 1)[1]
        # What is there now is never garbage: to look for it in the child would only copy its pages.
        gc.freeze()
        nursery = os.getpid()
        pid = os.fork()
        if pid == 0:
            self._become_parser(line, nursery)
        os.close(line)
        self._children.add(pid)
        return [pid]

    def _end(self, values: Iterator[bytes | None]) -> list[Value]:
        """Its exit code, and how much memory it took beyond its share of what is here."""
        pid = wire.number(next(values))
        self._children.remove(pid)
        os.kill(pid, signal.SIGKILL)
        _, status, usage = os.wait4(pid, 0)
        return [str(os.waitstatus_to_exitcode(status)), max(0, jail.peak(usage) - jail.memory()[1])]

    def _become_parser(self, line: int, nursery: int) -> None:
        """Never returns."""
        try:
            self._line.detach()
            os.dup2(line, LINE)
            os.closerange(LINE + 1, MOST_FILES)
            jail.die_with(nursery)
            parser.live(socket.socket(fileno=LINE), self._readable)
        finally:
            os._exit(1)


def _import(name: str) -> None:
    if ":" in name:
        parser.find(name)
    else:
        importlib.import_module(name)
