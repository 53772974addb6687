"""`nexus doctor --security`: what protects this Nexus, found out by trying. Changes nothing.

A section is a function in `SECTIONS` that returns findings, named `section.subject`.
"""

from __future__ import annotations

from collections.abc import Callable

from nexus.extract import probing
from nexus.extract.child.handles import NurseryGone, UnknownReader
from nexus.extract.probing import Protection
from nexus.settings import Settings
from nexus.upkeep.findings import CheckVerdict, Finding

Section = Callable[[Settings], list[Finding]]
_NEEDED_ADVICE = (
    "Run Nexus on Linux 5.13 or newer, on x86-64 or 64-bit ARM, with Landlock and seccomp allowed."
)
_OTHER_ADVICE = "Start Nexus as root, or allow it user namespaces, for a second line of defence."


def examine_security(settings: Settings) -> list[Finding]:
    """Run every section."""
    return [finding for section in SECTIONS for finding in section(settings)]


def why_not_confined() -> list[str]:
    """Say what a parser that was taken over could do here and must not; empty if it is confined."""
    try:
        return [found.says for found in probing.probe() if found.needed and not found.holds]
    except (NurseryGone, UnknownReader):
        return ["No parser can be started."]


def _sandbox(_: Settings) -> list[Finding]:
    try:
        return list(map(_finding, probing.probe()))
    except (NurseryGone, UnknownReader):
        says = "No parser can be started."
        return [
            Finding(
                "sandbox.start",
                CheckVerdict.PROBLEM,
                says,
                "Check that this Python can be started, and that there is memory for it.",
            )
        ]


def _finding(found: Protection) -> Finding:
    name = f"sandbox.{found.name}"
    if found.holds:
        return Finding(name, CheckVerdict.OK, found.says)
    if found.needed:
        return Finding(name, CheckVerdict.PROBLEM, found.says, _NEEDED_ADVICE)
    return Finding(name, CheckVerdict.NOTE, found.says, _OTHER_ADVICE)


SECTIONS: tuple[Section, ...] = (_sandbox,)
