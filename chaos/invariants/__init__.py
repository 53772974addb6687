"""What must be true whatever happened, checked with plain SQL and HTTP, and written from the specification.

Nothing here imports Nexus: a mistake in its tables of edges or in its own doctor would otherwise confirm itself.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Violation:
    invariant: str
    about: str
