"""What a check of the doctor answers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class CheckVerdict(StrEnum):
    OK = "ok"  #: all is well
    NOTE = "note"  #: worth knowing; nothing is broken
    PROBLEM = "problem"  #: something is broken


@dataclass(frozen=True)
class Finding:
    """What one check found."""

    name: str
    verdict: CheckVerdict
    #: What is fine, or what is wrong.
    says: str
    #: What to do about it; empty if all is well.
    advice: str = ""
    count: int = 0
    #: Some of the rows or files concerned.
    examples: tuple[str, ...] = ()
