"""The seccomp filter of a parser: a short program that the kernel runs at each system call, see seccomp(2)."""

from __future__ import annotations

import errno
import struct
import sys
from collections.abc import Iterable, Sequence

from nexus.extract.child.seccomp_calls import (
    ALLOWED,
    GUARDED,
    REFUSED,
    SELF,
    UNKNOWN,
    Guarded,
    Numbers,
    OneOf,
    Without,
)

#: The machines whose calls are known, as the kernel names them.
MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_LOAD, _JUMP, _IF_EQUAL, _IF_AT_LEAST, _IF_ANY_BIT, _RETURN = 0x20, 0x05, 0x15, 0x35, 0x45, 0x06
_ALLOW, _FAIL, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
#: Where the kernel puts what is tested. The upper half of an argument says nothing in the calls that are guarded.
_CALL, _MACHINE, _ARGUMENTS, _ARGUMENT_SIZE = 0, 4, 16, 8
#: x86-64 has every call a second time, from this number on.
_SECOND_TABLE = 0x40000000


def build_filter(machine: str) -> bytes | None:
    """Return the program, or None if the machine's calls are not known. `for_process` makes it fit a process."""
    if machine not in MACHINES or sys.maxsize < 2**32 or sys.byteorder != "little":
        return None
    column = list(MACHINES).index(machine)
    steps = [
        _step(_LOAD, _MACHINE),
        _step(_IF_EQUAL, MACHINES[machine], yes=1),
        _step(_RETURN, _KILL),
        _step(_LOAD, _CALL),
        _step(_IF_AT_LEAST, _SECOND_TABLE, no=1),
        _step(_RETURN, _KILL),
        *_group(_numbers(ALLOWED.values(), column), _ALLOW),
    ]
    for guarded in GUARDED.values():
        for number in _numbers([guarded.numbers], column):
            steps += _guard(number, guarded)
    steps += _group(_numbers(REFUSED.values(), column), _FAIL | errno.EPERM)
    steps += _group(_numbers(UNKNOWN.values(), column), _FAIL | errno.ENOSYS)
    return b"".join([*steps, _step(_RETURN, _KILL)])


def for_process(program: bytes, pid: int) -> bytes:
    """Return the program for one process: the only one that it may send signals to."""
    return program.replace(_one_of((SELF,), 1)[0], _one_of((pid,), 1)[0])


def _numbers(rows: Iterable[Numbers], column: int) -> list[int]:
    return [number for row in rows if (number := row[column]) is not None]


def _group(numbers: Sequence[int], verdict: int) -> list[bytes]:
    """Give all of these calls one verdict."""
    tests = [_step(_IF_EQUAL, number, yes=len(numbers) - at) for at, number in enumerate(numbers)]
    return [*tests, _step(_JUMP, 1), _step(_RETURN, verdict)]


def _guard(number: int, guarded: Guarded) -> list[bytes]:
    body: list[bytes] = []
    for way in guarded.ways:
        body += _way(way)
    body.append(_step(_RETURN, _FAIL | guarded.error))
    return [_step(_IF_EQUAL, number, no=len(body)), *body]


def _way(tests: Sequence[OneOf | Without]) -> list[bytes]:
    """Allow the call if every test passes, else go on after the last step."""
    steps = [_step(_RETURN, _ALLOW)]
    for test in reversed(tests):
        rest = len(steps)
        passes = (
            [_step(_IF_ANY_BIT, test.bits, yes=rest)]
            if isinstance(test, Without)
            else _one_of(test.values, rest)
        )
        steps = [_step(_LOAD, _ARGUMENTS + _ARGUMENT_SIZE * test.argument), *passes, *steps]
    return steps


def _one_of(values: Sequence[int], rest: int) -> list[bytes]:
    """Go on if what was loaded is one of these values, else skip the rest."""
    *others, last = values
    tests = [_step(_IF_EQUAL, value, yes=len(others) - at) for at, value in enumerate(others)]
    return [*tests, _step(_IF_EQUAL, last, no=rest)]


def _step(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("=HBBI", code, yes, no, value & 0xFFFFFFFF)
