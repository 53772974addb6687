"""What a parser process may not do, whatever a document makes of it.

The limits of a process hold on every system, but for memory, which only Linux limits. Linux also takes away files,
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
#: The worker looks at the clock; the limit on processor time stands behind it.
CPU_GRACE_SECONDS = 1
_KIB = 1024
#: Where libraries look for shared objects, time zones and types of files when they are used for the first time.
_OF_THE_SYSTEM = (
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/usr/share/zoneinfo",
    "/etc/ld.so.cache",
    "/etc/mime.types",
)


def enter(readable: Sequence[str]) -> None:
    """For good. The limits that differ from one document to the next are set by `limit`."""
    _offer_to_the_oom_killer()
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


def limit(seconds: float, memory_bytes: int, mapped: int) -> None:
    """From now on: so much more processor time, and so much memory beyond what was mapped at the start."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    spent = used.ru_utime + used.ru_stime
    _set_soft_limit(resource.RLIMIT_CPU, math.ceil(spent + seconds) + CPU_GRACE_SECONDS)
    if mapped:
        _set_soft_limit(resource.RLIMIT_AS, mapped + memory_bytes)


def memory() -> tuple[int, int]:
    """What is mapped and what is in use now, in bytes: imported libraries are a good part of both. Nothing is known
    to be mapped where the system does not say."""
    try:
        mapped, used = map(int, Path("/proc/self/statm").read_text().split()[:2])
    except OSError:
        return 0, peak(resource.getrusage(resource.RUSAGE_SELF))
    return mapped * resource.getpagesize(), used * resource.getpagesize()


def peak(usage: resource.struct_rusage) -> int:
    """The most memory that was in use at once, in bytes."""
    return usage.ru_maxrss * (_KIB if LINUX else 1)


def die_with(parent: int) -> None:
    """Wherever the system can, this process ends when its parent does; it may have done so already."""
    if LINUX:
        kernel.die_with_parent()
    if os.getppid() != parent:
        os._exit(1)


def installation() -> list[str]:
    """Where Python and everything imported so far may have more to import: packages are read late, in pieces.

    Not all of sys.path: it may name the folder in which somebody works, with whatever else is there.
    """
    standard = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    sites = {path for path in sys.path if Path(path).name in {"site-packages", "dist-packages"}}
    roots = {str(Path(sys.base_prefix, "lib")), *standard, *sites, *_OF_THE_SYSTEM}
    return sorted(roots | {path for path in _package_folders() if not _within(path, roots)})


def _package_folders() -> Iterable[str]:
    tops = [module for name, module in list(sys.modules.items()) if "." not in name]
    for module in tops:
        yield from map(str, getattr(module, "__path__", ()))


def _within(path: str, roots: Iterable[str]) -> bool:
    return any(path.startswith(root + os.sep) for root in roots)


def _offer_to_the_oom_killer() -> None:
    """When memory runs out, a parser goes first, not the server."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def _set_soft_limit(what: int, most: int) -> None:
    hard = resource.getrlimit(what)[1]
    _set_limit(what, most if hard == resource.RLIM_INFINITY else min(most, hard), hard)


def _set_limit(what: int, soft: int, hard: int) -> None:
    """Not every system knows every limit, and a container may have set a lower one."""
    with suppress(OSError, ValueError):
        resource.setrlimit(what, (soft, hard))
