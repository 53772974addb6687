"""What Linux can take away from a process for good: files, the network, other processes, root's powers.

Each function silently skips features that the kernel or the container lacks.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import struct
import sys
from collections.abc import Iterable
from pathlib import Path

_PR_SET_PDEATHSIG, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 1, 22, 38

#: The one power kept (CAP_DAC_READ_SEARCH): reading an installation that belongs to another user.
_CAPABILITIES_VERSION, _MAY_READ = 0x20080522, 1 << 2

# Landlock, see landlock(7). The numbers of its calls are the same on every machine.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_ASK_VERSION, _PATH_BENEATH = 1, 1
_READ_FILE, _READ_DIR = 1 << 2, 1 << 3
#: How many kinds of file access each version knows. Later versions know as many as the last one here.
_FILE_ACCESSES = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
_TCP, _TCP_SINCE = 0b11, 4
#: Signals to processes outside, and abstract sockets.
_SCOPES, _SCOPES_SINCE = 0b11, 6

# Seccomp, see seccomp(2): a short program that checks the number of each system call.
_FILTER = 2
_LOAD, _IF_EQUAL, _IF_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _REFUSE, _KILL = 0x7FFF0000, 0x00050001, 0x80000000
_CALL, _MACHINE = 0, 4
#: x86-64 has every call a second time, from this number on.
_SECOND_TABLE = 0x40000000
_MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
#: Calls that no reader needs, by their numbers on x86-64 and 64-bit ARM. A parser has one thread and no children.
_REFUSED: dict[str, tuple[int, int | None]] = {
    "socket": (41, 198),
    "io_uring_setup": (425, 425),
    "fork": (57, None),
    "vfork": (58, None),
    "clone": (56, 220),
    "clone3": (435, 435),
    "execve": (59, 221),
    "execveat": (322, 281),
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "semget": (64, 190),
}

_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent() -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL), 0, 0, 0)


def drop_powers() -> None:
    """Give up root's powers, and the chance to regain them by running a program."""
    header, held = struct.pack("=Ii", _CAPABILITIES_VERSION, 0), ctypes.create_string_buffer(24)
    _libc.capget(header, held)
    kept = struct.unpack_from("=I", held)[0] & _MAY_READ
    _libc.capset(header, struct.pack("=6I", kept, kept, 0, 0, 0, 0))
    _libc.prctl(_PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), 0, 0, 0)


def landlock_version() -> int:
    """Return the version of Landlock, or 0 if there is none."""
    version: int = _libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _ASK_VERSION)
    return max(0, version)


def allow_reading(places: Iterable[str]) -> None:
    """Allow reading these files and folders, and nothing else: no writing, no programs, no connections."""
    version = landlock_version()
    files = (1 << _FILE_ACCESSES.get(version, max(_FILE_ACCESSES.values()))) - 1
    tcp = _TCP if version >= _TCP_SINCE else 0
    scopes = _SCOPES if version >= _SCOPES_SINCE else 0
    rules = _ruleset(files, tcp, scopes)
    if rules < 0:
        # Some kernels report a version whose scopes they lack.
        rules = _ruleset(files, tcp, 0)
    if rules < 0:
        return
    for place in places:
        _allow(rules, place)
    _libc.syscall(_RESTRICT_SELF, rules, 0)
    os.close(rules)


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


def refuse_calls() -> None:
    """Make the calls in `_REFUSED` fail with EPERM, on machines whose call numbers are known."""
    machine = platform.machine()
    if machine not in _MACHINES or sys.maxsize < 2**32:
        return
    program = b"".join(_program(machine))
    code = ctypes.create_string_buffer(program, len(program))
    listing = struct.pack("@HP", len(program) // 8, ctypes.addressof(code))
    _libc.prctl(_PR_SET_SECCOMP, ctypes.c_ulong(_FILTER), listing, 0, 0)


def _program(machine: str) -> list[bytes]:
    """Build the filter. Each refused call jumps over the rest of the list to the last line."""
    column = list(_MACHINES).index(machine)
    numbers = [number for row in _REFUSED.values() if (number := row[column]) is not None]
    tests = [(_IF_AT_LEAST, _SECOND_TABLE), *((_IF_EQUAL, number) for number in numbers)]
    return [
        _step(_LOAD, _MACHINE),
        _step(_IF_EQUAL, _MACHINES[machine], yes=1),
        _step(_RETURN, _KILL),
        _step(_LOAD, _CALL),
        *(_step(test, number, yes=len(tests) - place) for place, (test, number) in enumerate(tests)),
        _step(_RETURN, _ALLOW),
        _step(_RETURN, _REFUSE),
    ]


def _step(code: int, value: int, yes: int = 0) -> bytes:
    return struct.pack("=HBBI", code, yes, 0, value)
