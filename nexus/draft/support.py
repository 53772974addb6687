"""How far the quotes of a text support it: found, still about these words, and with all its facts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from nexus.draft import Evidence


class Support(NamedTuple):
    #: There is evidence, and all of it was found.
    is_found: bool
    #: The words were changed after the evidence was found.
    is_edited: bool
    #: Numbers, dates and names that the quotes lack.
    missing: tuple[str, ...]

    @property
    def is_full(self) -> bool:
        return self.is_found and not self.is_edited and not self.missing


def support_of(text: str, evidence: Sequence[Evidence]) -> Support:
    """Say how far quotes support a text. What was not found needs no closer look."""
    from nexus.draft.facts import missing_facts  # noqa: PLC0415 its patterns take milliseconds that no start needs

    is_found = bool(evidence) and all(one.found for one in evidence)
    missing = missing_facts(text, tuple(one.quote for one in evidence)) if is_found else ()
    return Support(is_found, is_found and any(one.edited for one in evidence), missing)
