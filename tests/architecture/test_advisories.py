"""No locked version has a known flaw, and a version that has one is found."""

import json
import re
from pathlib import Path

import pytest

from nexus.upkeep.advisories import LISTED, read_advisories, vulnerable
from tools import advisories

LIST = """
checked = 2026-11-18

[[advisory]]
id = "CVE-1"
package = "Py_JWT"
affected = ">=1.0,<2.4.0"
about = "Forged."
source = "https://example.com/advisory"
"""


@pytest.mark.parametrize(
    ("lock", "found"),
    [
        ("py-jwt==2.3.9 \\\n    --hash=sha256:00\n", 1),
        ("py.jwt[crypto]==1.0 ; python_version > '3'\n", 1),
        ("py-jwt==2.3.0rc1\n", 1),
        ("py-jwt==2.4.0\n", 0),
        ("py-jwt==0.9\n", 0),
        ("other==1.0\n# py-jwt==1.0\n", 0),
    ],
)
def test_a_locked_version_with_a_flaw_is_found(lock: str, found: int) -> None:
    _, listed = read_advisories(LIST)
    assert len(vulnerable(advisories.pins(lock), listed)) == found


def test_no_locked_version_has_a_known_flaw(capsys: pytest.CaptureFixture[str]) -> None:
    assert advisories.main() == 0, capsys.readouterr().out


def test_every_advisory_names_one_that_is_not_locked_any_more_and_where_it_was_read() -> None:
    """An entry about a package that Nexus never had would only look like care."""
    locks = [path.read_text() for path in advisories.FOLDER.glob("*.txt")]
    names = {name.lower() for lock in locks for name, _ in advisories.pins(lock)}
    _, listed = read_advisories(LISTED.read_text())
    assert {one.package for one in listed} <= names
    assert all(
        re.fullmatch(r"https://github\.com/[\w.-]+/[\w.-]+/(issues|pull)/\d+", one.source) for one in listed
    )
    assert all(re.fullmatch(r"(CVE-\d{4}-\d+|GHSA(-\w{4}){3})(, (CVE-\d{4}-\d+))*", one.id) for one in listed)


def test_every_lock_file_is_read() -> None:
    folder = advisories.FOLDER
    assert {path.name for path in folder.glob("*.txt")} == set(advisories.LOCKS)
    assert ("starlette" in {name for name, _ in advisories.pins((folder / "run.txt").read_text())}) is True


@pytest.mark.parametrize(
    ("says", "found"),
    [
        (json.dumps({"dependencies": [{"name": "a", "version": "1", "vulns": []}]}), 0),
        (
            json.dumps(
                {
                    "dependencies": [
                        {"name": "a", "version": "1", "vulns": [{"id": "X", "fix_versions": ["2"]}]}
                    ]
                }
            ),
            1,
        ),
        ("ERROR: no connection", None),
        ("", None),
    ],
)
def test_what_pip_audit_says_counts_if_it_says_something(
    tmp_path: Path, says: str, found: int | None
) -> None:
    command = tmp_path / "pip-audit"
    command.write_text(f"#!/bin/sh\ncat <<'END'\n{says}\nEND\nexit 1\n")
    command.chmod(0o700)
    told = advisories.from_database(str(command), tmp_path / "run.txt")
    assert (None if told is None else len(told)) == found
