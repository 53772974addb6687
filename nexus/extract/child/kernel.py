"""What Linux can take away from a process for good: files, the network, other processes, root's powers, system calls.

Each function silently skips features that the kernel or the container lacks. What a parser really has is found out by
trying (`extract/probing.py`).
"""

from __future__ import annotations

import ctypes
import os
import signal
import struct
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_PR_SET_PDEATHSIG, _PR_SET_KEEPCAPS, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 1, 8, 22, 38
_SECCOMP_FILTER, _STEP_SIZE = 2, 8

#: The one power that may be kept (CAP_DAC_READ_SEARCH): reading an installation that belongs to another user.
_CAPABILITIES_VERSION, _MAY_READ = 0x20080522, 1 << 2

#: Users that nobody has, one for each parser; and nobody, if a container has no such numbers.
_FIRST_USER, _USERS, _NOBODY = 1_900_000_000, 100_000_000, 65534

#: Network, System V memory, mounts, processes, host name, control groups; see namespaces(7).
_OWN_USERS = 0x10000000
_NAMESPACES = (0x40000000, 0x08000000, 0x00020000, 0x20000000, 0x04000000, 0x02000000)
_OWN_MOUNTS, _OWN_PROCESSES = 0x00020000, 0x20000000
#: The number of mount_setattr is the same on every machine. All mounts become private and read-only.
_MOUNT_SETATTR, _HERE, _RECURSIVE = 442, -100, 0x8000
_READ_ONLY, _NO_SUID, _PRIVATE = 0x1, 0x2, 1 << 18

# Landlock, see landlock(7). The numbers of its calls are the same on every machine.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_ASK_VERSION, _PATH_BENEATH = 1, 1
_READ_FILE, _READ_DIR = 1 << 2, 1 << 3
#: How many kinds of file access each version knows. Later versions know as many as the last one here.
_FILE_ACCESSES = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
_TCP, _TCP_SINCE = 0b11, 4
#: Signals to processes outside, and abstract sockets.
_SCOPES, _SCOPES_SINCE = 0b11, 6

_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent() -> None:
    """End this process when its parent ends. The kernel forgets this when the process changes its user."""
    _libc.prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL), 0, 0, 0)


def gain_no_powers() -> None:
    """Give up the chance to gain powers by running a program. The other restrictions need this."""
    _libc.prctl(_PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), 0, 0, 0)


def leave_namespaces() -> bool:
    """Leave the machine's network, processes, mounts and so on for empty ones, and say whether new children are alone.

    Only root may do so; anybody else becomes root of a new set of users first, if the system lets them.
    """
    if os.geteuid() != 0:
        _libc.unshare(_OWN_USERS)
    left = [kind for kind in _NAMESPACES if _libc.unshare(kind) == 0]
    if _OWN_MOUNTS in left:
        wanted = struct.pack("=4Q", _READ_ONLY | _NO_SUID, 0, _PRIVATE, 0)
        _libc.syscall(_MOUNT_SETATTR, _HERE, b"/", _RECURSIVE, wanted, ctypes.c_size_t(len(wanted)))
    return _OWN_PROCESSES in left


def leave_root(number: int) -> None:
    """If this is root, become a user who owns nothing. Powers are kept for `drop_powers` to choose from."""
    if os.geteuid() != 0:
        return
    _libc.prctl(_PR_SET_KEEPCAPS, ctypes.c_ulong(1), 0, 0, 0)
    for user in (_FIRST_USER + number % _USERS, _NOBODY):
        with suppress(OSError):
            os.setgroups([])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
            return


def drop_powers(*, keep_reading: bool) -> None:
    """Give up root's powers, all or all but the one to read files of other users."""
    header, held = struct.pack("=Ii", _CAPABILITIES_VERSION, 0), ctypes.create_string_buffer(24)
    _libc.capget(header, held)
    permitted = struct.unpack_from("=II", held)[1]
    kept = permitted & _MAY_READ if keep_reading else 0
    _libc.capset(header, struct.pack("=6I", kept, kept, 0, 0, 0, 0))


def landlock_version() -> int:
    """Return the version of Landlock, or 0 if there is none."""
    version: int = _libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _ASK_VERSION)
    return max(0, version)


def reading_rules(places: Iterable[str]) -> int | None:
    """Return a file that stands for the right to read these files and folders, and to do nothing else: no writing, no
    programs, no connections. None if the kernel has no Landlock."""
    version = landlock_version()
    files = (1 << _FILE_ACCESSES.get(version, max(_FILE_ACCESSES.values()))) - 1
    tcp = _TCP if version >= _TCP_SINCE else 0
    scopes = _SCOPES if version >= _SCOPES_SINCE else 0
    rules = _ruleset(files, tcp, scopes)
    if rules < 0:
        # Some kernels report a version whose scopes they lack.
        rules = _ruleset(files, tcp, 0)
    if rules < 0:
        return None
    for place in places:
        _allow(rules, place)
    return rules


def obey_rules(rules: int) -> None:
    _libc.syscall(_RESTRICT_SELF, rules, 0)


def _ruleset(files: int, tcp: int, scopes: int) -> int:
    wanted = struct.pack("=QQQ", files, tcp, scopes)
    made: int = _libc.syscall(_CREATE_RULESET, wanted, ctypes.c_size_t(len(wanted)), 0)
    return made


def _allow(rules: int, place: str) -> None:
    try:
        found = os.open(place, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    access = _READ_FILE | (_READ_DIR if Path(place).is_dir() else 0)
    _libc.syscall(_ADD_RULE, rules, _PATH_BENEATH, struct.pack("=Qi", access, found), 0)
    os.close(found)


def trim_memory() -> None:
    """Give pages that hold nothing any more back to the system. Only glibc can be asked to."""
    with suppress(AttributeError):
        _libc.malloc_trim(ctypes.c_size_t(0))


def filter_calls(program: bytes) -> None:
    code = ctypes.create_string_buffer(program, len(program))
    listing = struct.pack("@HP", len(program) // _STEP_SIZE, ctypes.addressof(code))
    _libc.prctl(_PR_SET_SECCOMP, ctypes.c_ulong(_SECCOMP_FILTER), listing, 0, 0)
