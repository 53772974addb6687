"""What must hold whatever happened, by plain SQL and HTTP, written from the specification.

Nothing here imports Nexus: a mistake in its tables of edges or in its own doctor would otherwise confirm itself.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Violation:
    invariant: str
    about: str
