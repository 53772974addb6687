"""Polls whose process dies at the moment that DIE_IN_POLL names: NEXUS_PLUGINS=tests.kit.plugins.dying_polls."""

from __future__ import annotations

import os
from itertools import count
from typing import Any

from nexus.extract.sandbox import Sandbox
from nexus.fetch import Fetcher
from nexus.media.feeds import arrivals, taking
from tests.kit.faults.killed_in_storage import die

DIE_IN_POLL = "DIE_IN_POLL"
#: The function that is called at that moment, and how many calls pass first.
MOMENTS: dict[str, tuple[Any, str, int]] = {
    "fetching": (Fetcher, "get_data", 0),
    "reading": (Sandbox, "read_as", 0),
    "inside the transaction": (arrivals, "write_arrivals", 0),
    "before the first is taken in": (taking, "take_item", 0),
    "after the first is taken in": (taking, "take_item", 1),
    "after all are taken in": (taking, "count_wanted", 0),
}


def arm_poll(moment: str) -> None:
    owner, name, passes = MOMENTS[moment]
    real, calls = getattr(owner, name), count()

    def called(*given: Any, **named: Any) -> Any:
        return (real if next(calls) < passes else die)(*given, **named)

    setattr(owner, name, called)


if moment := os.environ.get(DIE_IN_POLL):
    arm_poll(moment)
