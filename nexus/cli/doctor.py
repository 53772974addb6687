"""`nexus doctor`: what is as it must be, what is not, and what to do."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path

import typer
from rich.table import Table
from rich.text import Text

from nexus.cli import say
from nexus.cli.context import build, load
from nexus.cli.failures import FAILED
from nexus.upkeep import doctor
from nexus.upkeep.doctor import Finding, Patient, Verdict

MARKS = {Verdict.OK: ("✓", "green"), Verdict.NOTE: ("!", "yellow"), Verdict.PROBLEM: ("✗", "bold red")}


def run(data_dir: Path | None, *, as_json: bool) -> None:
    app = build(load(data_dir), quiet=True)
    try:
        findings = doctor.examine(Patient(app.settings, app.sessions, app.tools.extractors, app.files))
    finally:
        app.close()
    healthy = doctor.is_healthy(findings)
    if as_json:
        say.as_json({"healthy": healthy, "checks": [asdict(finding) for finding in findings]}, indent=2)
    else:
        _show(findings, healthy=healthy)
    if not healthy:
        raise typer.Exit(FAILED)


def _show(findings: list[Finding], *, healthy: bool) -> None:
    console = say.out()
    if console.is_terminal:
        console.print(_table(findings))
        console.print(_summary(findings, healthy=healthy))
        return
    for finding in findings:
        named = " ".join(finding.examples)
        say.line(finding.verdict.value, finding.name, finding.says, finding.advice, named)


def _table(findings: list[Finding]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    for finding in findings:
        mark, style = MARKS[finding.verdict]
        table.add_row(Text(mark, style), Text(finding.name, "dim"), _described(finding, style))
    return table


def _described(finding: Finding, style: str) -> Text:
    lines = [Text(say.clean(finding.says) + (f" ({finding.count})" if finding.count > 1 else ""))]
    lines += [Text(say.clean(example), "dim") for example in finding.examples]
    if finding.advice:
        lines.append(Text(f"→ {finding.advice}", style))
    return Text("\n").join(lines)


def _summary(findings: list[Finding], *, healthy: bool) -> Text:
    counts = Counter(finding.verdict for finding in findings)
    notes = say.amount(counts[Verdict.NOTE], "note", "notes")
    if healthy:
        also = f", with {notes}" if counts[Verdict.NOTE] else ""
        return Text(f"\n{len(findings)} checks: healthy{also}.", "bold green")
    problems = say.amount(counts[Verdict.PROBLEM], "problem", "problems")
    return Text(f"\n{len(findings)} checks: {problems} and {notes}.", "bold red")
