"""Imports whose process dies, or whose workspace fails, at the moment that DIE_IN names.

NEXUS_PLUGINS=tests.kit.plugins.dying_imports

If a moment comes once per file, the first file passes, so that there is something to leave behind.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from itertools import count
from typing import Any

from nexus.extract.sandbox import Sandbox
from nexus.imports import runner
from nexus.imports.attempts import Registry
from nexus.imports.workspaces import Workspace
from nexus.media import revisions, texts
from nexus.storage.local import LocalStorage
from tests.kit.faults.killed_in_storage import die

#: The function that is called at that moment, and how many calls pass first.
MOMENTS: dict[str, tuple[Any, str, int]] = {
    "preflight": (runner, "check_source", 1),
    "parsing": (Sandbox, "read", 1),
    "splitting": (texts, "cut_chunks", 1),
    "storing": (LocalStorage, "put", 1),
    "before the commit": (Registry, "committing", 0),
    "inside the transaction": (revisions, "use_languages", 0),
    "after the commit": (Registry, "complete", 0),
    "a full disk": (Workspace, "put", 3),
    "a lost disk": (Workspace, "get", 0),
}
BEFORE_THE_COMMIT = tuple(MOMENTS)[:6]


def _fail(workspace: Workspace, *_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device", str(workspace._folder))


def _from(passes: int, real: Callable[..., Any], end: Callable[..., Any]) -> Callable[..., Any]:
    calls = count()

    def called(*given: Any, **named: Any) -> Any:
        return (real if next(calls) < passes else end)(*given, **named)

    return called


def arm(moment: str) -> None:
    owner, name, passes = MOMENTS[moment]
    setattr(owner, name, _from(passes, getattr(owner, name), _fail if owner is Workspace else die))


if moment := os.environ.get("DIE_IN"):
    arm(moment)
