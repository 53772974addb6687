"""Compare the locked versions with known security advisories.

Needs no network: `requirements/advisories.toml` is the list that is always compared. Where pip-audit is installed and
reaches its database, what it finds counts as well.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

FOLDER = Path(__file__).parents[1] / "requirements"
LOCKS = ("setup.txt", "run.txt", "dev.txt", "bench.txt")
PIN = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==([^\s;\\]+)", re.MULTILINE)
AUDIT_SECONDS = 300


@dataclass(frozen=True)
class Advisory:
    id: str
    package: str
    affected: SpecifierSet
    about: str

    def hits(self, package: str, version: str) -> bool:
        same = canonicalize_name(package) == canonicalize_name(self.package)
        return same and self.affected.contains(Version(version), prereleases=True)


def advisories(text: str) -> tuple[date, list[Advisory]]:
    """Read the list, and the day it was last gone through."""
    given: dict[str, Any] = tomllib.loads(text)
    listed = [
        Advisory(one["id"], one["package"], SpecifierSet(one["affected"]), one["about"])
        for one in given["advisory"]
    ]
    return given["checked"], listed


def pins(lock: str) -> set[tuple[str, str]]:
    """Return every package of a lock file with its version."""
    return {(name, version) for name, version in PIN.findall(lock)}


def vulnerable(locked: Iterable[tuple[str, str]], listed: Iterable[Advisory]) -> list[str]:
    """Return a line for each locked version that an advisory names."""
    known = list(listed)
    return [
        f"{name} {version}: {advisory.id} ({advisory.affected}): {advisory.about}"
        for name, version in sorted(locked)
        for advisory in known
        if advisory.hits(name, version)
    ]


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
    checked, listed = advisories((FOLDER / "advisories.toml").read_text())
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
