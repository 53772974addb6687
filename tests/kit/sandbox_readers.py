"""Readers for the tests of the sandbox, which run in parser processes and mostly ignore their document."""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from nexus.errors import EmptyContent, FetchTimeout, PdfDamaged
from nexus.extract import Asset, Extraction, Facts, Fragment, Heading, Hints
from nexus.extract.child import frames, messages
from nexus.extract.child.nursery import LINE

RICH = Extraction(
    "Ein Titel – 标题 😀",
    (Fragment("one\n\ttwo\x00", "<p>one two</p>"), Fragment("", ""), Fragment("𝔘nicode \ufffe", None)),
    Facts("A. Writer", "", None, "de", "https://example.com/ä.png", "An\u2028excerpt"),
    (Heading("First", 1, "f0"), Heading("", 2, "f2-a")),
    (Asset("a/b.png", "image/png", bytes(range(256))), Asset("", "", b"")),
)
PR_GET_NO_NEW_PRIVS = 39
_read_before = False
DEEDS: dict[str, Callable[[str], Any]] = {
    "open a socket": lambda _: socket.socket(),
    "open a local socket": lambda _: socket.socket(socket.AF_UNIX),
    "look up a name": lambda _: socket.getaddrinfo("example.com", 80),
    "read a file": lambda place: Path(place, "secret").read_text(),
    "read the users": lambda _: Path("/etc/passwd").read_text(),
    "read its parent's environment": lambda _: Path(f"/proc/{os.getppid()}/environ").read_bytes(),
    "list a folder": lambda place: list(Path(place).iterdir()),
    "write a file": lambda place: Path(place, "new").write_text("text"),
    "empty a file": lambda place: os.truncate(Path(place, "secret"), 0),
    "delete a file": lambda place: Path(place, "secret").unlink(),
    "make a folder": lambda place: Path(place, "new").mkdir(),
    "fork": lambda _: os.fork(),
    "run a program": lambda _: subprocess.run(["/bin/true"], check=True),
    "become a program": lambda _: os.execv("/bin/true", ["/bin/true"]),
    "start a thread": lambda _: threading.Thread(target=print).start(),
    "send a signal": lambda _: os.kill(os.getppid(), 0),
}


def say(*texts: object) -> Extraction:
    return Extraction.plain(None, *map(str, texts))


def nothing(data: bytes, hints: Hints) -> Extraction:
    return say("text")


def rich(data: bytes, hints: Hints) -> Extraction:
    return RICH


def echo(data: bytes, hints: Hints) -> Extraction:
    return say(hashlib.sha256(data).hexdigest(), repr(hints))


def process(data: bytes, hints: Hints) -> Extraction:
    return say(os.getpid())


def order(data: bytes, hints: Hints) -> Extraction:
    return say({f"word {n}" for n in range(20)})


def surrogates(data: bytes, hints: Hints) -> Extraction:
    return Extraction("a\ud800b", (Fragment("\udfff\ud83d\ude00x", "<p>\udfff\ud83d\ude00x</p>"),))


def gate(data: bytes, hints: Hints) -> Extraction:
    """Waits for a file, which it may not open but can see."""
    while not Path(data.decode()).exists():
        pass
    return say("through the gate")


# readers that fail


def no_text(data: bytes, hints: Hints) -> NoReturn:
    raise EmptyContent


def damaged(data: bytes, hints: Hints) -> NoReturn:
    raise PdfDamaged("page 7 " + "x" * 10_000)


def not_ours(data: bytes, hints: Hints) -> NoReturn:
    raise FetchTimeout("a reader fetches nothing")


def breaks(data: bytes, hints: Hints) -> NoReturn:
    raise KeyError("a secret of the document")


def recursion(data: bytes, hints: Hints) -> Extraction:
    return recursion(data, hints)


def leaves(data: bytes, hints: Hints) -> NoReturn:
    sys.exit(0)


def gives_nothing(data: bytes, hints: Hints) -> None:
    return None


def gives_something_else(data: bytes, hints: Hints) -> Extraction:
    return Extraction(["a", "list"], (Fragment({}),))  # type: ignore[arg-type]


# readers that do harm


def spin(data: bytes, hints: Hints) -> NoReturn:
    while True:
        pass


def spin_in_c(data: bytes, hints: Hints) -> Extraction:
    return say(re.match(r"(a|aa)+$", "a" * 200 + "b"))


def ignores_signals(data: bytes, hints: Hints) -> NoReturn:
    for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN)
    spin(data, hints)


def eat(data: bytes, hints: Hints) -> NoReturn:
    eaten = []
    while True:
        eaten.append(b"x" * 1_000_000)


def eat_at_once(data: bytes, hints: Hints) -> Extraction:
    return say(len(bytearray(1 << 40)))


def eat_and_deny(data: bytes, hints: Hints) -> NoReturn:
    """Fail as a C library does that runs out of memory."""
    try:
        eat(data, hints)
    except MemoryError as error:
        raise ValueError("could not parse") from error


def eat_and_crash(data: bytes, hints: Hints) -> NoReturn:
    try:
        eat(data, hints)
    except MemoryError:
        crash(data, hints)


def grow(data: bytes, hints: Hints) -> Extraction:
    return say(os.getpid(), len(b"x" * int(data)))


def crash(data: bytes, hints: Hints) -> NoReturn:
    ctypes.string_at(0)
    raise AssertionError


def leave_at_once(data: bytes, hints: Hints) -> NoReturn:
    os._exit(0)


def much(data: bytes, hints: Hints) -> Extraction:
    return say(*["x" * 100_000] * 1000)


def many(data: bytes, hints: Hints) -> Extraction:
    return say(*[""] * 300_000)


def garbage(data: bytes, hints: Hints) -> Extraction:
    os.write(LINE, b"garbage " * 100)
    return say("text")


def _tag() -> bytes:
    """The number of the present request, from the frame of the reader's caller."""
    frame = sys._getframe()
    while "tag" not in frame.f_locals:
        assert frame.f_back is not None
        frame = frame.f_back
    tag: bytes = frame.f_locals["tag"]
    return tag


def endless(data: bytes, hints: Hints) -> NoReturn:
    """An answer that begins well and never ends."""
    os.write(LINE, frames.HEAD.pack(_tag(), 1 << 50))
    while True:
        os.write(LINE, bytes(1_000_000))


def unfinished(data: bytes, hints: Hints) -> NoReturn:
    os.write(LINE, frames.HEAD.pack(_tag(), 1000))
    os._exit(0)


def not_an_extraction(data: bytes, hints: Hints) -> NoReturn:
    os.write(LINE, frames.frame(messages.encode(["ReadDone", 0, ["title", []]]), _tag()))
    spin(data, hints)


def a_lie_about_the_error(data: bytes, hints: Hints) -> NoReturn:
    os.write(
        LINE,
        frames.frame(messages.encode(["ReadRefused", 0, "E_FORBIDDEN", "message", "line\nbreak"]), _tag()),
    )
    os._exit(0)


def bad_utf8(data: bytes, hints: Hints) -> NoReturn:
    os.write(LINE, frames.frame(messages.encode_done(0, say("\x7f"), 1000).replace(b"\x7f", b"\xff"), _tag()))
    spin(data, hints)


def afterthought(data: bytes, hints: Hints) -> Extraction:
    """Writes more after the answer was sent."""
    signal.signal(signal.SIGALRM, lambda *_: os.write(LINE, b"garbage") and None)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    return say(os.getpid())


def poison(data: bytes, hints: Hints) -> Extraction:
    """Leaves the process in a state in which `delicate` crashes."""
    global _read_before  # noqa: PLW0603
    _read_before = True
    return say(os.getpid())


def delicate(data: bytes, hints: Hints) -> Extraction:
    if _read_before:
        crash(data, hints)
    return say(os.getpid(), len(data))


# what a process has and may do


def belongings(data: bytes, hints: Hints) -> Extraction:
    """What the process has: environment, folder, open files, and whether it may gain privileges."""
    opened = [number for number in range(256) if _is_open(number)]
    leads_to = {os.fstat(number).st_rdev for number in opened[:3]}
    gains = ctypes.CDLL(None).prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0
    return say(dict(os.environ), str(Path.cwd()), opened, leads_to, gains)


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def limits(data: bytes, hints: Hints) -> Extraction:
    names = ("CORE", "FSIZE", "NPROC", "NOFILE")
    return say(*(resource.getrlimit(getattr(resource, f"RLIMIT_{name}")) for name in names))


def late_import(data: bytes, hints: Hints) -> Extraction:
    """Of the standard library, of Nexus, and of what is installed."""
    import wsgiref.util  # noqa: PLC0415

    import can_ada  # noqa: PLC0415

    import nexus.urls  # noqa: PLC0415

    return say(wsgiref.util.__name__, can_ada.__name__, nexus.urls.__name__)


def attempt(data: bytes, hints: Hints) -> Extraction:
    """Try a forbidden deed, and report the outcome."""
    try:
        return say("done", DEEDS[data.decode()](hints.filename or ""))
    except (OSError, RuntimeError) as error:
        return say("refused", repr(error))
