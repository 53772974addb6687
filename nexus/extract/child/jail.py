"""What a parser process may not do, even if a document takes it over.

Resource limits hold on every system, except the one on memory, which only Linux enforces. Linux also takes away files,
the network and other processes (kernel.py).
"""

from __future__ import annotations

import math
import os
import resource
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

LINUX = sys.platform == "linux"
if LINUX:
    from nexus.extract.child import kernel

OPEN_FILES = 32
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


def enter_jail(readable: Sequence[str]) -> None:
    """Give up everything a reader doesn't need, for good. Limits that differ by document are set by `set_limits`."""
    # When memory runs out, the kernel ends a parser before the server.
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    for what, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_NOFILE, OPEN_FILES),
    ):
        _set_limit(what, most, most)
    if LINUX:
        kernel.drop_powers()
        kernel.allow_reading(readable)
        kernel.refuse_calls()


def set_limits(seconds: float, memory_bytes: int, mapped: int) -> None:
    """Allow this much more processor time, and this much memory beyond what was mapped at the start."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    spent = used.ru_utime + used.ru_stime
    _set_soft_limit(resource.RLIMIT_CPU, math.ceil(spent + seconds) + CPU_GRACE_SECONDS)
    if mapped:
        _set_soft_limit(resource.RLIMIT_AS, mapped + memory_bytes)


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


def _set_soft_limit(what: int, most: int) -> None:
    hard = resource.getrlimit(what)[1]
    _set_limit(what, most if hard == resource.RLIM_INFINITY else min(most, hard), hard)


def _set_limit(what: int, soft: int, hard: int) -> None:
    """Some systems lack some limits, and a container may have set a lower one already."""
    with suppress(OSError, ValueError):
        resource.setrlimit(what, (soft, hard))
