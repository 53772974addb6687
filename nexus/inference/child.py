"""What every model's process does: it gives up rights, loads its model, and answers one frame after the other.

The process has an empty environment, no network if the kernel allows, and a limit on memory. It ends when its socket
closes, when nobody has asked for a while, and when an answer takes far too long.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from nexus.inference import frames
from nexus.inference.frames import encode_facts

#: How many files may be open, how large a file it may write, and whether its memory is dumped if it crashes.
LIMITS = ((resource.RLIMIT_NOFILE, 64), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0))
#: How many times the time for an answer may pass before the process ends itself, in case nobody else does.
GRACE = 2
_NEW_USERS, _NEW_NETWORK = 0x10000000, 0x40000000

#: Answers one frame. Raises MemoryError if the process is good for nothing any more.
Answers = Callable[[bytes], bytes]


class ChildLimits(NamedTuple):
    """What a model's process may take."""

    niceness: int
    idle_seconds: float
    answer_seconds: float
    #: The longest frame that it is sent.
    most_bytes: int = frames.MOST_BYTES


class WrongModel(Exception):
    """The model can't be used. The text says why, and continues the sentence "The model …"."""


class LoadedModel(NamedTuple):
    answer: Answers
    #: What Nexus is told about the model.
    facts: dict[str, object]


class Loading(NamedTuple):
    """What an order means for the process: its limits, and how the model is loaded."""

    limits: ChildLimits
    load: Callable[[], LoadedModel]


def serve_model(understand: Callable[[dict[str, Any]], Loading]) -> None:
    """Never returns."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # they are for Nexus, which closes the socket in its own time
    line = socket.socket(fileno=int(sys.argv[1]))
    code = 0
    try:
        loading = understand(json.loads(frames.read_frame(line)))
        _give_up_rights(loading.limits)
        answer = _load(line, loading.load)
        while answer is not None:
            _serve_frame(line, answer, loading.limits)
    except (EOFError, TimeoutError, OSError):
        pass  # Nexus is gone, or has had nothing to do for a while
    except MemoryError:
        code = frames.OUT_OF_MEMORY
    finally:
        os._exit(code)


def _give_up_rights(limits: ChildLimits) -> None:
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")  # before the server
    os.nice(limits.niceness)
    if sys.platform == "linux":
        unshare = getattr(ctypes.CDLL(None), "unshare", None)
        if unshare is not None:
            unshare(_NEW_NETWORK if os.geteuid() == 0 else _NEW_USERS | _NEW_NETWORK)
    for what, most in LIMITS:
        _lower_limit(what, most)


def _lower_limit(what: int, most: int) -> None:
    """A container may have set a lower one already."""
    held = resource.getrlimit(what)[1]
    wanted = most if held == resource.RLIM_INFINITY else min(most, held)
    with suppress(OSError, ValueError):
        resource.setrlimit(what, (wanted, wanted))


def limit_memory(most: int) -> None:
    """Allow this many bytes beyond what is mapped now. Only Linux says how much that is."""
    with suppress(OSError):
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        _lower_limit(resource.RLIMIT_AS, pages * resource.getpagesize() + most)


def _load(line: socket.socket, load: Callable[[], LoadedModel]) -> Answers | None:
    try:
        model = load()
    except MemoryError:
        raise
    except WrongModel as error:
        frames.write_frame(line, encode_facts({"wrong": str(error)}))
        return None
    except Exception as error:
        if is_about_memory(error):
            raise MemoryError from error
        frames.write_frame(line, encode_facts({"wrong": f"can't be loaded ({type(error).__name__})"}))
        return None
    frames.write_frame(line, encode_facts(model.facts))
    return model.answer


def _serve_frame(line: socket.socket, answer: Answers, limits: ChildLimits) -> None:
    asked = frames.read_frame(line, time.monotonic() + limits.idle_seconds, limits.most_bytes)
    signal.setitimer(signal.ITIMER_REAL, GRACE * limits.answer_seconds)
    frames.write_frame(line, answer(asked))
    signal.setitimer(signal.ITIMER_REAL, 0)


def is_about_memory(error: Exception) -> bool:
    """Whether a library says that it ran out of memory: most have no class of their own for this."""
    said = ("bad_alloc", "allocate memory", "bad allocation", "out of memory")
    return isinstance(error, MemoryError) or any(word in str(error) for word in said)


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file. Raises WrongModel if it can't be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise WrongModel(f"is not whole: {path.name} can't be read") from error


def require_whole(folder: Path, digests: Mapping[str, str]) -> None:
    """Raises WrongModel if a file is not what it was."""
    for name, digest in digests.items():
        if file_digest(folder / name) != digest:
            raise WrongModel(f"has changed: {name} is not what it was")
