"""Where the objects of one test run stand in a store: a prefix of its own, removed at its end."""

from __future__ import annotations

import os
import uuid

_RUN = "NEXUS_TEST_RUN"


def run_prefix() -> str:
    """`test_runs/{run_id}/`: the one place where it is made. Every process of a run has the same."""
    run_id = os.environ.setdefault(_RUN, uuid.uuid4().hex)
    return f"test_runs/{run_id}/"
