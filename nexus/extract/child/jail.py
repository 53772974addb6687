"""What a parser process may not do, even if a document takes it over.

Resource limits hold on every system, except the one on memory, which only Linux enforces. Linux also takes away files,
the network and other processes (kernel.py), and all system calls but those that a reader needs (seccomp_filter.py).
"""

from __future__ import annotations

import math
import os
import platform
import resource
import stat
import sys
import sysconfig
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

LINUX = sys.platform == "linux"
if LINUX:
    from nexus.extract.child import kernel, seccomp_filter

OPEN_FILES = 32
LIMITS = (
    (resource.RLIMIT_CORE, 0),
    (resource.RLIMIT_FSIZE, 0),
    (resource.RLIMIT_NPROC, 0),
    (resource.RLIMIT_NOFILE, OPEN_FILES),
)
#: The worker's own timeout comes first; the limit on processor time is the second line.
CPU_GRACE_SECONDS = 1
_KIB = 1024
#: Where libraries look for shared objects, time zones and file types when first used.
_SYSTEM_PLACES = (
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/usr/share/zoneinfo",
    "/etc/ld.so.cache",
    "/etc/mime.types",
)


@dataclass(frozen=True)
class Jail:
    """What the nursery works out once for all parsers: a parser that did so itself would take longer, and would copy
    pages that it shares with the nursery."""

    #: How many bytes were mapped and in use before the document.
    mapped: int
    used: int
    #: Landlock's rules, as an open file.
    rules: int | None
    #: Whether reading the readers' files takes one of root's powers.
    needs_power: bool
    #: The filter of system calls.
    program: bytes | None

    def enter(self, number: int) -> None:
        """Give up everything a reader doesn't need, for good. Each parser has a number of its own.

        Limits that differ by document are set by `set_limits`, and files are closed by the caller.
        """
        if LINUX:
            kernel.gain_no_powers()
            if self.rules is not None:
                kernel.obey_rules(self.rules)
            kernel.leave_root(number)
            # Without Landlock, this power would open every file of the machine.
            kernel.drop_powers(keep_reading=self.needs_power and self.rules is not None)
        for what, most in LIMITS:
            _set_limit(what, most, most)

    def lock(self) -> None:
        """The last step: from now on only the calls that a reader needs are possible."""
        if LINUX and self.program is not None:
            kernel.filter_calls(seccomp_filter.for_process(self.program, os.getpid()))

    def close(self) -> None:
        if self.rules is not None:
            os.close(self.rules)


def build_jail() -> Jail:
    """For the readers imported so far."""
    places = readable_places()
    rules = kernel.reading_rules(places) if LINUX else None
    program = seccomp_filter.build_filter(platform.machine()) if LINUX else None
    return Jail(*memory_in_use(), rules, not all(map(_open_to_all, places)), program)


def leave_machine() -> bool:
    """Leave the machine's network, processes and mounts for empty ones, as far as the system allows. True if children
    will be the only processes that they see."""
    return LINUX and kernel.leave_namespaces()


def be_first_to_go() -> None:
    """When memory runs out, the kernel ends parsers before the server."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def return_memory() -> None:
    """Give memory that is free back to the system: less to copy when a parser is made, and when it takes memory."""
    if LINUX:
        kernel.trim_memory()


def set_limits(seconds: float, memory_bytes: int, mapped: int) -> None:
    """Allow this much processor time, and this much memory beyond what was mapped at the start. They can't be raised
    again; when the time is over, a signal comes first, and the end a second later."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    last = math.ceil(used.ru_utime + used.ru_stime + seconds) + CPU_GRACE_SECONDS
    _set_limit(resource.RLIMIT_CPU, last, last + 1)
    if mapped:
        _set_limit(resource.RLIMIT_AS, mapped + memory_bytes, mapped + memory_bytes)


def memory_in_use() -> tuple[int, int]:
    """Return how many bytes are mapped and how many are in use. Imported libraries are a good part of both.

    Mapped is 0 if the system doesn't tell.
    """
    try:
        mapped, used = map(int, Path("/proc/self/statm").read_text().split()[:2])
    except OSError:
        return 0, peak_memory(resource.getrusage(resource.RUSAGE_SELF))
    return mapped * resource.getpagesize(), used * resource.getpagesize()


def peak_memory(usage: resource.struct_rusage) -> int:
    """Return the most memory that was in use at once, in bytes."""
    return usage.ru_maxrss * (_KIB if LINUX else 1)


def die_with(parent: int) -> None:
    """End this process when its parent ends, on systems that can do that. The parent may be gone already."""
    if LINUX:
        kernel.die_with_parent()
    if os.getppid() != parent:
        os._exit(1)


def readable_places() -> list[str]:
    """List the folders that Python and the packages imported so far may still import from: many import lazily.

    Not all of sys.path, which may name somebody's working folder and everything else in it.
    """
    standard = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    sites = {path for path in sys.path if Path(path).name in {"site-packages", "dist-packages"}}
    roots = {str(Path(sys.base_prefix, "lib")), *standard, *sites, *_SYSTEM_PLACES}
    return sorted(roots | {path for path in _package_folders() if not _within(path, roots)})


def _package_folders() -> Iterable[str]:
    tops = [module for name, module in list(sys.modules.items()) if "." not in name]
    for module in tops:
        yield from map(str, getattr(module, "__path__", ()))


def _within(path: str, roots: Iterable[str]) -> bool:
    return any(path.startswith(root + os.sep) for root in roots)


def _open_to_all(place: str) -> bool:
    """Whether every user can read it, as far as its folders say; also true of what is not there."""
    path = Path(place)
    with suppress(FileNotFoundError):
        return path.stat().st_mode & stat.S_IROTH != 0 and all(
            folder.stat().st_mode & stat.S_IXOTH for folder in path.parents
        )
    return True


def _set_limit(what: int, soft: int, hard: int) -> None:
    """Some systems lack some limits, and a container may have set a lower one already."""
    most = resource.getrlimit(what)[1]
    if most != resource.RLIM_INFINITY:
        soft, hard = min(soft, most), min(hard, most)
    with suppress(OSError, ValueError):
        resource.setrlimit(what, (soft, hard))
