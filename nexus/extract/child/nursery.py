"""The nursery process: it imports readers and forks parsers until the worker closes its socket.

A parser's number on the wire is the worker's; its process id stays here, and is free for others only once the nursery
has reaped it.
"""

from __future__ import annotations

import gc
import importlib
import os
import signal
import socket
import sys
from contextlib import suppress
from types import ModuleType

from nexus.extract.child import frames, jail, messages, parser
from nexus.extract.child.messages import End, Forget, Fork, Learn, Learned, Order, ParserEnded

#: A parser's socket is its only open file besides the standard ones, which lead nowhere.
LINE = 3
MOST_FILES = 65536
#: Nearly all objects live as long as the document is read, so looking for garbage among them is seldom worth it.
GARBAGE = 100_000
#: What is said of a parser that could not be made.
NEVER_BORN = -signal.SIGKILL


def run_nursery() -> None:
    """Run the nursery. It ignores signals to stop: they are for the worker, which closes the socket in its own time."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    line = socket.socket(fileno=int(sys.argv[1]))
    jail.be_first_to_go()
    if jail.leave_machine():
        _run_inside(line)
    nursery = Nursery(line)
    with suppress(EOFError, OSError):
        nursery.serve()
    nursery.end_all()


def _run_inside(line: socket.socket) -> None:
    """Go on in a child, the first process of a world of its own: all others there end with it.

    Only the child returns. This process stays for the worker to wait for, and to kill.
    """
    pid = os.fork()
    if pid == 0:
        jail.die_with(0)
        return
    line.close()
    os.waitpid(pid, 0)
    os._exit(0)


class Nursery:
    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._children: dict[int, int] = {}
        self._warm: set[ModuleType] = set()
        self._jail = jail.build_jail()
        gc.set_threshold(GARBAGE)

    def serve(self) -> None:
        while True:
            answer = self._obey(messages.decode_order(frames.receive_frame(self._line)))
            if answer is not None:
                self._line.sendall(frames.frame(messages.encode(answer)))

    def end_all(self) -> None:
        for number in list(self._children):
            self._end(number)

    def _obey(self, order: Order) -> Learned | ParserEnded | None:
        match order:
            case Learn():
                return self._learn(order)
            case Fork():
                self._fork(order.number)
            case Forget():
                self._end(order.number)
            case End():
                return self._end(order.number)
        return None

    def _learn(self, order: Learn) -> Learned:
        sys.path[:] = map(os.fsdecode, order.path)
        importlib.invalidate_caches()
        try:
            if ":" in order.name:
                parser.load_reader(order.name)
            module = importlib.import_module(order.name.partition(":")[0])
            if module not in self._warm and hasattr(module, "warm_up"):
                module.warm_up()
            self._warm.add(module)
        except BaseException as error:
            return Learned(type(error).__name__)
        gc.collect()
        jail.return_memory()
        self._jail.close()
        self._jail = jail.build_jail()
        # What is left is never garbage, and looking for some in a child would copy the pages it shares.
        gc.freeze()
        return Learned(None)

    def _fork(self, number: int) -> None:
        """The worker learns of a failure when the parser's socket closes before a word was said."""
        (line,) = socket.recv_fds(self._line, 1, 1)[1]
        nursery = os.getpid()
        with suppress(OSError):
            pid = os.fork()
            if pid == 0:
                self._become_parser(line, number, nursery)
            self._children[number] = pid
        os.close(line)

    def _end(self, number: int) -> ParserEnded:
        if number not in self._children:
            return ParserEnded(NEVER_BORN, 0)
        pid = self._children.pop(number)
        os.kill(pid, signal.SIGKILL)
        _, status, usage = os.wait4(pid, 0)
        # What a parser shares with the nursery is not its growth.
        grown = max(0, jail.peak_memory(usage) - self._jail.used)
        return ParserEnded(os.waitstatus_to_exitcode(status), grown)

    def _become_parser(self, line: int, number: int, nursery: int) -> None:
        """Never returns."""
        try:
            self._line.detach()
            self._jail.enter(number)
            jail.die_with(nursery)
            os.dup2(line, LINE)
            os.closerange(LINE + 1, MOST_FILES)
            speaks = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, fileno=LINE)
            self._jail.lock()
            parser.serve_one_document(speaks, self._jail.mapped, self._jail.used)
        finally:
            os._exit(1)
