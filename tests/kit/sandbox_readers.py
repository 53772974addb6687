"""Readers for the tests of the sandbox, which run in parser processes and mostly ignore their document."""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import mmap
import os
import platform
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
from unittest.mock import patch

from nexus.errors import EmptyContent, FetchTimeout, PdfDamaged
from nexus.extract import Asset, Extraction, Facts, Fragment, Heading, Hints
from nexus.extract.child import frames, messages
from nexus.extract.child.nursery import LINE

RICH = Extraction(
    "Ein Titel – 标题 😀",
    (Fragment("one\n\ttwo\x00", "<p>one two</p>"), Fragment("", ""), Fragment("𝔘nicode \ufffe", None)),
    Facts("A. Writer", "", None, "de", "https://example.com/ä.png", "An\u2028excerpt"),
    (Heading("First", 1, "f0"), Heading("", 2, "f2-a")),
    (Asset("a-b.png", "image/png", bytes(range(256))), Asset("c.gif", "image/gif", b"")),
)
PR_GET_NO_NEW_PRIVS = 39
DEEDS: dict[str, Callable[[str], Any]] = {
    "open a socket": lambda _: socket.socket(),
    "open a local socket": lambda _: socket.socket(socket.AF_UNIX),
    "look up a name": lambda _: socket.getaddrinfo("example.com", 80),
    "read a file": lambda place: Path(place, "secret").read_text(),
    "read the users": lambda _: Path("/etc/passwd").read_text(),
    "read its parent's environment": lambda _: Path(f"/proc/{os.getppid()}/environ").read_bytes(),
    "write to its own memory": lambda _: os.open("/proc/self/mem", os.O_RDWR),
    "list a folder": lambda place: list(Path(place).iterdir()),
    "write a file": lambda place: Path(place, "new").write_text("text"),
    "empty a file": lambda place: os.truncate(Path(place, "secret"), 0),
    "delete a file": lambda place: Path(place, "secret").unlink(),
    "make a folder": lambda place: Path(place, "new").mkdir(),
    "show a file to everybody": lambda place: Path(place, "secret").chmod(0o666),
    "link to a file": lambda place: Path(place, "new").hardlink_to(Path(place, "secret")),
    "rename a file": lambda place: Path(place, "secret").rename(Path(place, "new")),
    "fork": lambda _: os.fork(),
    "run a program": lambda _: subprocess.run(["/bin/true"], check=True),
    "become a program": lambda _: os.execv("/bin/true", ["/bin/true"]),
    "start a thread": lambda _: threading.Thread(target=print).start(),
    "send a signal": lambda _: os.kill(os.getppid(), 0),
    "send a signal to all": lambda _: os.kill(-1, 0),
    "limit its parent": lambda _: resource.prlimit(os.getppid(), resource.RLIMIT_CPU, (1, 1)),
    "limit the server": lambda _: resource.prlimit(1, resource.RLIMIT_CPU, (1, 1)),
    "have memory that is written and run": lambda _: mmap.mmap(-1, 4096, prot=7),
    "make a file in memory": lambda _: os.memfd_create("program"),
    "make a pipe": lambda _: os.pipe(),
    "have signals sent for it": lambda _: fcntl.fcntl(LINE, fcntl.F_SETOWN, 1),
    "type into a terminal": lambda _: fcntl.ioctl(0, 0x5412, b"x"),
    "take more memory than it was given": lambda _: resource.setrlimit(resource.RLIMIT_AS, (-1, -1)),
    "take more time than it was given": lambda _: resource.setrlimit(resource.RLIMIT_CPU, (-1, -1)),
}
#: Calls that no library tries: number on x86-64, number on 64-bit ARM, arguments. Each ends the process.
FATAL_CALLS: dict[str, tuple[int, int, tuple[object, ...]]] = {
    "ptrace": (101, 117, (16, 1, 0, 0)),
    "process_vm_readv": (310, 270, (1, 0, 0, 0, 0, 0)),
    "process_vm_writev": (311, 271, (1, 0, 0, 0, 0, 0)),
    "pidfd_open": (434, 434, (1, 0)),
    "pidfd_getfd": (438, 438, (3, 0, 0)),
    "pidfd_send_signal": (424, 424, (3, 0, 0, 0)),
    "rt_sigqueueinfo": (129, 138, (1, 0, 0)),
    "mount": (165, 40, (b"none", b"/", b"tmpfs", 0, 0)),
    "mount_setattr": (442, 442, (-100, b"/", 0, 0, 0)),
    "chroot": (161, 51, (b"/",)),
    "unshare": (272, 97, (0x10000000,)),
    "setns": (308, 268, (3, 0)),
    "keyctl": (250, 219, (0, -3, 0)),
    "add_key": (248, 217, (b"user", b"name", b"value", 5, -3)),
    "bpf": (321, 280, (0, 0, 0)),
    "io_uring_setup": (425, 425, (8, 0)),
    "io_uring_enter": (426, 426, (3, 0, 0, 0, 0, 0)),
    "userfaultfd": (323, 282, (0,)),
    "perf_event_open": (298, 241, (0, 0, -1, -1, 0)),
    "open_by_handle_at": (304, 265, (-100, 0, 0)),
    "setuid": (105, 146, (0,)),
    "capset": (126, 91, (0, 0)),
    "personality": (135, 92, (0,)),
    "kexec_load": (246, 104, (0, 0, 0, 0)),
    "init_module": (175, 105, (0, 0, b"")),
    "finit_module": (313, 273, (3, b"", 0)),
    "seccomp": (317, 277, (1, 0, 0)),
    "landlock_create_ruleset": (444, 444, (0, 0, 1)),
    "mq_open": (240, 180, (b"name", 0)),
    "shmat": (30, 196, (0, 0, 0)),
    "splice": (275, 76, (0, 0, 3, 0, 1, 0)),
    "sendfile": (40, 71, (3, 0, 0, 1)),
    "swapon": (167, 224, (b"/", 0)),
    "reboot": (169, 142, (0, 0, 0, 0)),
    "sethostname": (170, 161, (b"name", 4)),
    "clock_settime": (227, 112, (0, 0)),
    "fchmodat2": (452, 452, (-100, b"/", 0o777, 0)),
    "fanotify_init": (300, 262, (0, 0)),
    "name_to_handle_at": (303, 264, (-100, b"/", 0, 0, 0)),
    "pkey_mprotect": (329, 288, (0, 4096, 7, 0)),
    "a call of the second table": (0x40000000 + 39, 0x40000000 + 172, ()),
    "a call that is yet to come": (1000, 1000, ()),
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


def readers(data: bytes, hints: Hints) -> Extraction:
    """Which of Nexus's own readers this process has imported."""
    return say(
        *(name for name in ("article", "epub", "pdf", "text") if f"nexus.extract.{name}" in sys.modules)
    )


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
    os.write(LINE, frames.frame(b"garbage " * 100))
    return say("text")


def endless(data: bytes, hints: Hints) -> NoReturn:
    """An answer that begins well and never ends."""
    os.write(LINE, frames.HEAD.pack(1 << 50))
    while True:
        os.write(LINE, bytes(1_000_000))


def unfinished(data: bytes, hints: Hints) -> NoReturn:
    os.write(LINE, frames.HEAD.pack(1000))
    os._exit(0)


def not_an_extraction(data: bytes, hints: Hints) -> NoReturn:
    os.write(LINE, frames.frame(messages.encode(["ReadDone", 0, ["title", []]])))
    spin(data, hints)


def a_lie_about_the_error(data: bytes, hints: Hints) -> NoReturn:
    os.write(
        LINE,
        frames.frame(messages.encode(["ReadRefused", 0, "E_FORBIDDEN", "message", "line\nbreak"])),
    )
    os._exit(0)


def bad_utf8(data: bytes, hints: Hints) -> NoReturn:
    os.write(LINE, frames.frame(messages.encode_done(0, say("\x7f"), 1000).replace(b"\x7f", b"\xff")))
    spin(data, hints)


def stay(data: bytes, hints: Hints) -> NoReturn:
    """Take over the process: answer, stay alive, and answer whatever else comes with a text of its own."""
    answer = frames.frame(messages.encode_done(0, say("forged"), 1000))
    while True:
        os.write(LINE, answer)
        if not os.read(LINE, 1000):
            spin(data, hints)


def leave_a_mark(data: bytes, hints: Hints) -> Extraction:
    """Change what a later document would meet in the same process: modules, readers, the answer itself."""
    seen = getattr(messages, "mark", b"nothing")
    messages.mark = data  # type: ignore[attr-defined]
    messages.encode_done = lambda *_: b"forged"  # type: ignore[assignment]
    return say(seen.decode())


def mark(data: bytes, hints: Hints) -> Extraction:
    """What an earlier document left."""
    return say(getattr(messages, "mark", b"nothing").decode())


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


def identity(data: bytes, hints: Hints) -> Extraction:
    """Its users and groups, and the groups that it is in besides."""
    return say({*os.getresuid(), *os.getresgid()}, os.getgroups())


def namespaces(data: bytes, hints: Hints) -> Extraction:
    return say(*(Path(f"/proc/self/ns/{name}").readlink() for name in ("net", "ipc", "pid", "mnt")))


def late_import(data: bytes, hints: Hints) -> Extraction:
    """Of the standard library, of Nexus, and of what is installed."""
    import wsgiref.util  # noqa: PLC0415

    import can_ada  # noqa: PLC0415

    import nexus.urls  # noqa: PLC0415

    return say(wsgiref.util.__name__, can_ada.__name__, nexus.urls.__name__)


def late_work(data: bytes, hints: Hints) -> Extraction:
    """What the process of an article imports and compiles for it, although the next process will have to again."""
    from nexus.extract import article  # noqa: PLC0415

    known = set(sys.modules)
    with patch("re._compiler.compile", wraps=re._compiler.compile) as made:  # type: ignore[attr-defined]
        article.read_article(data, hints)
    return say(*sorted(sys.modules.keys() - known), *(str(one.args[0]) for one in made.call_args_list))


def call(data: bytes, hints: Hints) -> Extraction:
    """Make a system call that must end the process, and report that it didn't."""
    *numbers, given = FATAL_CALLS[data.decode()]
    number = numbers[platform.machine() == "aarch64"]
    outcome = ctypes.CDLL(None, use_errno=True).syscall(number, *given)
    return say("alive", outcome, ctypes.get_errno())


def attempt(data: bytes, hints: Hints) -> Extraction:
    """Try a forbidden deed, and report the outcome."""
    try:
        return say("done", DEEDS[data.decode()](hints.filename or ""))
    except (OSError, RuntimeError, ValueError) as error:
        return say("refused", repr(error))
