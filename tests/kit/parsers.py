"""The processes of a sandbox, as Linux shows them, and an app that borrows those of another."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from nexus.app import App, kernel_for
from nexus.extract.sandbox import Sandbox
from nexus.imports.service import Imports

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


@contextmanager
def lent(parsers: Sandbox, app: App) -> Iterator[App]:
    """The app with parsers that run already, for imports too: to start its own takes longer than most tests."""
    tools = replace(app.tools, sandbox=parsers)
    imports = Imports(tools, app.settings.data_dir / "imports")
    yield replace(app, tools=tools, kernel=kernel_for(tools), imports=imports)
    imports.close()


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
