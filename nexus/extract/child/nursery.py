"""The nursery process: it imports readers and forks parsers until the worker closes its socket.

It reaps a parser only when told to, so that a process id never comes to mean another process.
"""

from __future__ import annotations

import gc
import importlib
import os
import signal
import socket
import sys
from contextlib import suppress

from nexus.extract.child import frames, jail, messages, parser
from nexus.extract.child.messages import End, Ended, Fork, Forked, Learn, Learned

#: A parser's socket is its only open file besides the standard ones, which lead nowhere.
LINE = 3
MOST_FILES = 65536


def main() -> None:
    """Run the nursery. It ignores signals to stop: they are for the worker, which closes the socket in its own time."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    nursery = Nursery(socket.socket(fileno=int(sys.argv[1])))
    with suppress(EOFError, OSError):
        nursery.serve()
    nursery.end_all()


class Nursery:
    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._children: set[int] = set()
        #: Worked out here because a parser that looks at every module copies the pages it shares with the nursery.
        self._readable = jail.readable_places()

    def serve(self) -> None:
        while True:
            _, body = frames.receive_frame(self._line)
            order = messages.decode_order(body)
            self._line.sendall(frames.frame(messages.encode(self._obey(order))))

    def end_all(self) -> None:
        for pid in self._children:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

    def _obey(self, order: Learn | Fork | End) -> Learned | Forked | Ended:
        match order:
            case Learn():
                return self._learn(order)
            case Fork():
                return self._fork()
            case End():
                return self._end(order.pid)

    def _learn(self, order: Learn) -> Learned:
        sys.path[:] = map(os.fsdecode, order.path)
        importlib.invalidate_caches()
        try:
            if ":" in order.name:
                parser.load_reader(order.name)
            else:
                importlib.import_module(order.name)
        except BaseException as error:
            return Learned(type(error).__name__)
        self._readable = jail.readable_places()
        return Learned(None)

    def _fork(self) -> Forked:
        (line,) = socket.recv_fds(self._line, 1, 1)[1]
        # Nothing here is ever garbage, and looking for some in the child would copy the pages it shares.
        gc.freeze()
        nursery = os.getpid()
        pid = os.fork()
        if pid == 0:
            self._become_parser(line, nursery)
        os.close(line)
        self._children.add(pid)
        return Forked(pid)

    def _end(self, pid: int) -> Ended:
        self._children.remove(pid)
        os.kill(pid, signal.SIGKILL)
        _, status, usage = os.wait4(pid, 0)
        # What a parser shares with the nursery is not its growth.
        grown = max(0, jail.peak_memory(usage) - jail.memory_in_use()[1])
        return Ended(os.waitstatus_to_exitcode(status), grown)

    def _become_parser(self, line: int, nursery: int) -> None:
        """Never returns."""
        try:
            self._line.detach()
            os.dup2(line, LINE)
            os.closerange(LINE + 1, MOST_FILES)
            jail.die_with(nursery)
            parser.serve(socket.socket(fileno=LINE), self._readable)
        finally:
            os._exit(1)
