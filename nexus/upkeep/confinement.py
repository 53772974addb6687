"""What confines parsers here, found out by trying."""

from __future__ import annotations

from nexus.extract import probing
from nexus.extract.child.handles import NurseryGone, UnknownReader
from nexus.extract.probing import Protection
from nexus.settings import Settings
from nexus.upkeep.findings import CheckVerdict, Finding

_NEEDED_ADVICE = (
    "Run Nexus on Linux 5.13 or newer, on x86-64 or 64-bit ARM, with Landlock and seccomp allowed."
)
_OTHER_ADVICE = "Start Nexus as root, or allow it user namespaces, for a second line of defence."


def why_not_confined() -> list[str]:
    """Say what a parser that was taken over could do here and must not; empty if it is confined."""
    try:
        return [found.says for found in probing.probe() if found.needed and not found.holds]
    except (NurseryGone, UnknownReader):
        return ["No parser can be started."]


def check_sandbox(_: Settings) -> list[Finding]:
    """What can a parser do that was taken over by its document?"""
    try:
        return list(map(_finding, probing.probe()))
    except (NurseryGone, UnknownReader):
        advice = "Check that this Python can be started, and that there is memory for it."
        return [Finding("sandbox.start", CheckVerdict.PROBLEM, "No parser can be started.", advice)]


def _finding(found: Protection) -> Finding:
    name = f"sandbox.{found.name}"
    if found.holds:
        return Finding(name, CheckVerdict.OK, found.says)
    if found.needed:
        return Finding(name, CheckVerdict.PROBLEM, found.says, _NEEDED_ADVICE)
    return Finding(name, CheckVerdict.NOTE, found.says, _OTHER_ADVICE)
