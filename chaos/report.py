"""What happened, and which promises were broken."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from chaos.invariants import Violation
from chaos.ledger import Ledger
from chaos.plan import Scene

#: How many violations of one invariant are listed.
SHOWN = 12


@dataclass(frozen=True)
class Report:
    seed: int
    seconds: float
    scene: Scene
    #: How often each kind of fault was planned.
    planned: Counter[str]
    #: How often it really happened: a trap may never spring, and nobody may write to a full disk.
    faults: Counter[str]
    ledger: Ledger
    rest_seconds: float
    left_behind: int
    violations: list[Violation]

    @property
    def text(self) -> str:
        scene = f"{self.scene.database}, {self.scene.queue} queue, {self.scene.storage} store"
        asked, acknowledged = self.ledger.asked.total(), self.ledger.acknowledged.total()
        answers = ", ".join(
            f"{status or 'none'} {many}" for status, many in sorted(self.ledger.statuses.items())
        )
        faults = ", ".join(
            f"{kind} {self.faults[kind]}/{many}" for kind, many in sorted(self.planned.items())
        )
        lines = [
            f"seed {self.seed}, {self.seconds:.0f} s of faults on {scene}",
            f"operations   {asked}, {acknowledged} acknowledged; promises to keep {len(list(self.ledger.promises()))}",
            f"answers      {answers}",
            f"faults       {self.faults.total()} happened of {self.planned.total()} planned: {faults}",
            f"at rest      after {self.rest_seconds:.1f} s; {self.left_behind} objects left to upkeep",
            *self._told(),
        ]
        return "\n".join(lines)

    def _told(self) -> list[str]:
        if not self.violations:
            return ["kept         everything"]
        lines = []
        counts = Counter(one.invariant for one in self.violations)
        for invariant, many in counts.items():
            lines.append(f"NOT KEPT     {invariant} ({many})")
            about = [one.about for one in self.violations if one.invariant == invariant]
            lines += [f"             - {one}" for one in about[:SHOWN]]
        return lines


def refused(ledger: Ledger) -> list[Violation]:
    """List each kind of answer that nobody should get once, with its count."""
    counts = Counter((one.request, one.status) for one in ledger.refusals)
    first = {(one.request, one.status): one.body for one in reversed(ledger.refusals)}
    return [
        Violation(
            "every answer is one that may be given", f"{request} answered {status}, {many} times: {body}"
        )
        for ((request, status), many) in counts.items()
        for body in [first[request, status]]
    ]
