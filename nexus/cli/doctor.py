"""`nexus doctor`: says what is wrong with an installation, and what to do about it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import typer

from nexus.app import build_files
from nexus.cli import say
from nexus.cli.context import load_settings, make_front
from nexus.cli.failures import FAILED
from nexus.settings import Settings
from nexus.upkeep import doctor
from nexus.upkeep.doctor import Patient
from nexus.upkeep.findings import Finding


def examine_installation(data_dir: Path | None, *, security: bool, as_json: bool) -> None:
    chosen = load_settings(data_dir)
    findings = _examine_security(chosen) if security else _examine(chosen)
    healthy = doctor.is_healthy(findings)
    if as_json:
        say.as_json({"healthy": healthy, "checks": [asdict(finding) for finding in findings]}, indent=2)
    else:
        _show(findings, healthy=healthy)
    if not healthy:
        raise typer.Exit(FAILED)


def _examine_security(chosen: Settings) -> list[Finding]:
    from nexus.upkeep.security import examine_security  # noqa: PLC0415 the usual examination starts no parser

    return examine_security(chosen)


def _examine(chosen: Settings) -> list[Finding]:
    front = make_front(chosen)
    try:
        return doctor.examine(Patient(chosen, front.sessions, front.extractors, build_files(chosen)))
    finally:
        front.close()


def _show(findings: list[Finding], *, healthy: bool) -> None:
    if say.is_to_a_person():
        from nexus.cli import doctor_table  # noqa: PLC0415 rich is slow to load, and a pipe does not need it

        doctor_table.draw_findings(findings, healthy=healthy)
        return
    for finding in findings:
        named = " ".join(finding.examples)
        say.line(finding.verdict.value, finding.name, finding.says, finding.advice, named)
