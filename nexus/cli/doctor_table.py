"""What `nexus doctor` shows in a terminal: a table and a summary."""

from __future__ import annotations

from collections import Counter

from rich.table import Table
from rich.text import Text

from nexus.cli import say
from nexus.upkeep.findings import CheckVerdict, Finding

MARKS = {
    CheckVerdict.OK: ("✓", "green"),
    CheckVerdict.NOTE: ("!", "yellow"),
    CheckVerdict.PROBLEM: ("✗", "bold red"),
}


def draw_findings(findings: list[Finding], *, healthy: bool) -> None:
    console = say.out()
    console.print(_table(findings))
    console.print(_summary(findings, healthy=healthy))


def _table(findings: list[Finding]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    for finding in findings:
        mark, style = MARKS[finding.verdict]
        table.add_row(Text(mark, style), Text(finding.name, "dim"), _described(finding, style))
    return table


def _described(finding: Finding, style: str) -> Text:
    lines = [Text(say.printable(finding.says) + (f" ({finding.count})" if finding.count > 1 else ""))]
    lines += [Text(say.printable(example), "dim") for example in finding.examples]
    if finding.advice:
        lines.append(Text(f"→ {finding.advice}", style))
    return Text("\n").join(lines)


def _summary(findings: list[Finding], *, healthy: bool) -> Text:
    counts = Counter(finding.verdict for finding in findings)
    notes = say.amount(counts[CheckVerdict.NOTE], "note", "notes")
    if healthy:
        also = f", with {notes}" if counts[CheckVerdict.NOTE] else ""
        return Text(f"\n{len(findings)} checks: healthy{also}.", "bold green")
    problems = say.amount(counts[CheckVerdict.PROBLEM], "problem", "problems")
    return Text(f"\n{len(findings)} checks: {problems} and {notes}.", "bold red")
