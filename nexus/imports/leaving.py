"""Whether a user may go away from an import, and what would be lost."""

from __future__ import annotations

from dataclasses import dataclass

from nexus.imports.attempts import State
from nexus.imports.staging import Batch
from nexus.states.attempt import Phase


@dataclass(frozen=True)
class Leave:
    #: Nothing is lost.
    safe: bool
    #: Ask before leaving.
    should_warn: bool
    #: Leaving throws away what is staged, and what is done of it.
    would_discard: bool


SAFE = Leave(safe=True, should_warn=False, would_discard=False)
LOSES = Leave(safe=False, should_warn=True, would_discard=True)
#: The commit is on its way: going away does not change its outcome, which is not known yet.
IN_DOUBT = Leave(safe=False, should_warn=True, would_discard=False)


def judge(batch: Batch, state: State, *, active: bool, in_doubt: bool) -> Leave:
    """RUNNING alone says nothing: what counts is whether the text is committed."""
    committed = active and state.phase is Phase.TEXT_COMMITTED
    if committed or not batch.sources or not batch.is_draft:
        return SAFE
    return IN_DOUBT if active and in_doubt else LOSES
