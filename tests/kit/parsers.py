"""The processes of a sandbox, as Linux shows them, and a sandbox that borrows those of another."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import BinaryIO
from uuid import UUID

from nexus.extract import Extraction, Hints
from nexus.extract.results import P
from nexus.extract.sandbox import CancelToken, ParserLimits, Sandbox, SandboxClosed

#: As if the kernel had none of them: unknown system calls, no namespaces, an unknown machine.
OLDER = """
import sys; sys.path[:] = sys.argv[2:]
from nexus.extract.child import seccomp_filter, kernel, nursery
kernel._CREATE_RULESET = 9999
kernel._NAMESPACES = ()
seccomp_filter.MACHINES = {}
kernel.leave_root = lambda number: None
nursery.run_nursery()
"""


class LentSandbox(Sandbox):
    """The parsers of another sandbox, with limits of its own. They outlive it: to start some takes a while."""

    def __init__(self, owner: Sandbox, limits: ParserLimits, processes: int) -> None:
        super().__init__(limits, processes)
        self._owner = owner

    def read(
        self,
        reader: str,
        data: bytes | BinaryIO,
        hints: Hints = Hints(),
        limits: ParserLimits | None = None,
        cancel: CancelToken | None = None,
        user: UUID | None = None,
    ) -> Extraction:
        return self._lender().read(reader, data, hints, limits or self.limits, cancel, user)

    def read_as(
        self,
        kind: type[P],
        reader: str,
        data: bytes | BinaryIO,
        hints: Hints = Hints(),
        limits: ParserLimits | None = None,
        cancel: CancelToken | None = None,
        user: UUID | None = None,
    ) -> P:
        return self._lender().read_as(kind, reader, data, hints, limits or self.limits, cancel, user)

    def _lender(self) -> Sandbox:
        if self._closed:
            raise SandboxClosed
        return self._owner


def nursery_of(sandbox: Sandbox) -> int:
    """The process that the worker started: the nursery, or its guardian on systems that give it a world of its own."""
    assert sandbox._nursery is not None
    return sandbox._nursery._process.pid


def parsers_of(nursery: int) -> list[int]:
    """All processes below it that have none below themselves, oldest first."""
    below = children(nursery)
    return [leaf for child in below for leaf in (parsers_of(child) if children(child) else [child])]


def children(pid: int) -> list[int]:
    """Including zombies."""
    with suppress(FileNotFoundError, ProcessLookupError):
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def gone(pid: int) -> bool:
    """Also true of a zombie."""
    return state(pid) in {"", "Z"}


def state(pid: int) -> str:
    """R while it runs, S while it waits, Z when it has ended and was not reaped; empty if there is none."""
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return ""


def waiting(sandbox: Sandbox, count: int) -> list[int]:
    """The parsers, once there are so many and each waits for its document."""
    found = parsers_of(nursery_of(sandbox))
    return found if len(found) == count and {state(pid) for pid in found} == {"S"} else []
