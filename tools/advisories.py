"""Compare the locked versions with known security advisories.

Needs no network: `nexus/upkeep/advisories.toml` is the list that is always compared. Where pip-audit is installed and
reaches its database, what it finds counts as well.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

from nexus.upkeep.advisories import LISTED, read_advisories, vulnerable

FOLDER = Path(__file__).parents[1] / "requirements"
LOCKS = ("setup.txt", "run.txt", "speech.txt", "dev.txt", "bench.txt")
PIN = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==([^\s;\\]+)", re.MULTILINE)
AUDIT_SECONDS = 300


def pins(lock: str) -> set[tuple[str, str]]:
    """Return every package of a lock file with its version."""
    return {(name, version) for name, version in PIN.findall(lock)}


def from_database(command: str, lock: Path) -> list[str] | None:
    """Ask pip-audit about a lock file; None if it can't reach its database."""
    asked = [command, "--requirement", str(lock), "--disable-pip", "--require-hashes", "--format", "json"]
    try:
        ran = subprocess.run(  # noqa: S603 a tool of the developer's own
            asked, capture_output=True, text=True, timeout=AUDIT_SECONDS, check=False
        )
        found = json.loads(ran.stdout)["dependencies"]
    except (subprocess.TimeoutExpired, OSError, ValueError, KeyError, TypeError):
        return None
    return [
        f"{one['name']} {one['version']}: {flaw['id']}, fixed in {', '.join(flaw['fix_versions']) or 'no version'}"
        for one in found
        for flaw in one.get("vulns", [])
    ]


def main() -> int:
    checked, listed = read_advisories(LISTED.read_text())
    locked = set[tuple[str, str]]().union(*(pins((FOLDER / name).read_text()) for name in LOCKS))
    found = vulnerable(locked, listed)
    command = shutil.which("pip-audit")
    told = None if command is None else from_database(command, FOLDER / "run.txt")
    found += told or []
    for line in found:
        print(line)
    source = "pip-audit's database" if told is not None else f"the list of {checked} alone"
    print(f"{len(locked)} locked versions, {len(found)} with a known flaw, by {source}.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
