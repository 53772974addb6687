"""Finds out what confines a parser, by letting one try what it must not be able to do.

Flags and kernel versions prove little: a container may refuse what its kernel offers.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import socket
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile

from nexus.extract import Extraction, Hints
from nexus.extract.child.frames import SHORT
from nexus.extract.child.handles import NurseryGone, NurseryHandle, ParserInput
from nexus.extract.child.messages import ReadDone, ReadRequest

SECONDS, MEMORY = 10.0, 128 * 1024 * 1024
SIGNAL_OF_FILTER = signal.SIGSYS
#: No kernel has a call of this number, so nothing happens if the filter lets it through.
_NO_CALL = 4000
_NAMESPACES = {"net": "network", "pid": "processes", "ipc": "shared memory", "mnt": "mounts"}
_REFUSED, _DONE = "refused", "done"

_DEEDS: dict[str, Callable[[str], object]] = {
    "files": lambda path: Path(path).read_bytes(),
    "network": lambda _: socket.socket(),
    "processes": lambda _: os.fork() or os._exit(0),
    "signals": lambda _: os.kill(os.getppid(), 0),
    "limits": lambda _: resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2),
}


@dataclass(frozen=True)
class Protection:
    """One thing that confines a parser, or doesn't."""

    name: str
    holds: bool
    #: Whether a parser that was taken over can do harm without it. The others are a second line.
    needed: bool
    says: str


#: What to say of a parser if the attempt was refused, and if it succeeded.
_SAYS = {
    "files": ("Parsers can't open files of this machine.", "Parsers can open files."),
    "network": ("Parsers have no network.", "Parsers can open connections."),
    "processes": ("Parsers can't start processes.", "Parsers can start processes."),
    "signals": ("Parsers can't signal other processes.", "Parsers can signal other processes."),
    "limits": ("Parsers can't raise their limits.", "Parsers can raise their limits."),
    "calls": ("Parsers can make only the system calls that they need.", "Parsers can make any system call."),
}


def probe() -> list[Protection]:
    """Run parsers and see what they can do. Raises NurseryGone or UnknownReader if none can be started."""
    with closing(NurseryHandle()) as nursery, NamedTemporaryFile(prefix="nexus-") as secret:
        told = _ask(nursery, "try_out", secret.name)
        filtered = _ask(nursery, "make_forbidden_call", "") == SIGNAL_OF_FILTER
    if not isinstance(told, list):
        raise NurseryGone
    user, *spaces = told[len(_DEEDS) :]
    held = {name: outcome == _REFUSED for name, outcome in zip(_DEEDS, told, strict=False)} | {
        "calls": filtered
    }
    found = [Protection(name, holds, True, _SAYS[name][not holds]) for name, holds in held.items()]
    return [*found, _user(int(user)), _namespaces(spaces)]


def _ask(nursery: NurseryHandle, function: str, path: str) -> list[str] | int:
    """Return what a reader of this module says, or the signal that ended its process."""
    reader = f"{__name__}:{function}"
    nursery.learn(reader)
    parser = nursery.fork()
    try:
        if not parser.is_ready():
            raise NurseryGone
        answer = parser.ask(
            ReadRequest(reader, 0, SECONDS, MEMORY, SHORT, Hints(filename=path)), ParserInput(b"")
        )
    except EOFError:
        return -parser.end().code
    finally:
        parser.leave()
    return [one.text for one in answer.extraction().fragments] if isinstance(answer, ReadDone) else 0


def try_out(_: bytes, hints: Hints) -> Extraction:
    """Try each deed, and say which user and namespaces this process has. Runs in a parser."""
    outcomes = [_outcome(deed, hints.filename or "") for deed in _DEEDS.values()]
    return Extraction.plain(None, *outcomes, str(os.getuid()), *map(_namespace, _NAMESPACES))


def make_forbidden_call(_: bytes, __: Hints) -> Extraction:
    """Ends the process if its system calls are filtered."""
    ctypes.CDLL(None).syscall(_NO_CALL)
    return Extraction.plain(None, _DONE)


def _outcome(deed: Callable[[str], object], path: str) -> str:
    try:
        deed(path)
    except (OSError, ValueError):
        return _REFUSED
    return _DONE


def _namespace(kind: str) -> str:
    with suppress(OSError):
        return str(Path(f"/proc/self/ns/{kind}").readlink())
    return ""


def _user(user: int) -> Protection:
    """A parser of somebody other than root stays that user, whose files are out of its reach all the same."""
    alone = os.getuid() == 0 and user != 0
    says = "Parsers are users of their own." if alone else "Parsers run as the same user as Nexus."
    return Protection("user", alone, needed=False, says=says)


def _namespaces(theirs: list[str]) -> Protection:
    own = {
        name
        for (kind, name), link in zip(_NAMESPACES.items(), theirs, strict=True)
        if link and link != _namespace(kind)
    }
    shared = [name for name in _NAMESPACES.values() if name not in own]
    says = (
        "Parsers share no namespace with Nexus."
        if not shared
        else f"Parsers share with Nexus: {', '.join(shared)}."
    )
    return Protection("namespaces", not shared, needed=False, says=says)
