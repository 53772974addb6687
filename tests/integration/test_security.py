"""`nexus doctor --security` says what a parser can really do, and prod doesn't start if that is too much."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nexus.cli.failures import Refused
from nexus.cli.server import _confined
from nexus.extract import probing
from nexus.extract.child import handles
from nexus.upkeep import confinement, security
from nexus.upkeep.doctor import CheckVerdict
from tests.kit.parsers import OLDER
from tests.kit.settings import make_settings

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux confines parsers")
#: Runs Python as somebody other than root, who owns the same files, and says first who that is and whether the kernel
#: lets them have users of their own.
NOT_ROOT = """
import ctypes, os, sys
from pathlib import Path
unshare, new_users = ctypes.CDLL(None).unshare, 0x10000000
if os.geteuid() == 0:
    group = os.getegid()
    assert unshare(new_users) == 0
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text("1000 0 1")
    Path("/proc/self/gid_map").write_text(f"1000 {group} 1")
asking = os.fork()
if asking == 0:
    os._exit(int(unshare(new_users) != 0))
refused = os.waitstatus_to_exitcode(os.waitpid(asking, 0)[1])
print(os.geteuid(), not refused, sep="\\n", flush=True)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
NEEDED = {"files", "network", "processes", "signals", "limits", "calls"}


@pytest.fixture
def older_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handles, "START", OLDER)


def test_a_parser_on_this_machine_is_confined() -> None:
    found = {one.name: one for one in probing.probe()}
    assert {name for name, one in found.items() if one.needed} == NEEDED
    assert [one for one in found.values() if one.needed and not one.holds] == []
    assert found["user"].holds == (os.geteuid() == 0)
    assert confinement.why_not_confined() == []


def test_somebody_without_roots_powers_confines_parsers_as_well() -> None:
    """By a set of users of their own, if the kernel allows that; without one, only the second line is missing."""
    code = "from nexus.extract import probing; print(*((one.name, one.holds) for one in probing.probe()), sep='\\n')"
    ran = subprocess.run(
        [sys.executable, "-c", NOT_ROOT, "-c", code], capture_output=True, text=True, check=True
    )
    user, may_make_users, *lines = ran.stdout.splitlines()
    found = dict(map(ast.literal_eval, lines))
    assert int(user) != 0
    assert {name for name in NEEDED if found[name]} == NEEDED
    assert found["namespaces"] is (may_make_users == "True")
    assert found["user"] is False


@pytest.mark.usefixtures("older_kernel")
def test_what_a_parser_can_do_on_a_kernel_without_sandbox_features_is_a_problem(tmp_path: Path) -> None:
    findings = {one.name: one for one in security.examine_security(make_settings("", tmp_path))}
    problems = {name for name, one in findings.items() if one.verdict is CheckVerdict.PROBLEM}
    assert {"sandbox.files", "sandbox.network", "sandbox.calls"} <= problems
    assert all(findings[name].advice for name in problems)
    assert findings["sandbox.namespaces"].verdict is CheckVerdict.NOTE


def test_a_nursery_that_never_starts_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handles, "START", "raise SystemExit(1)")
    (finding,) = confinement.check_sandbox(make_settings("", tmp_path))
    assert (finding.name, finding.verdict) == ("sandbox.start", CheckVerdict.PROBLEM)


@pytest.mark.usefixtures("older_kernel")
@pytest.mark.parametrize(
    ("given", "starts"),
    [
        ({"env": "prod"}, False),
        ({"env": "prod", "sandbox": "optional"}, True),
        ({"env": "test"}, True),
        ({"env": "test", "sandbox": "required"}, False),
    ],
)
def test_prod_starts_without_a_sandbox_only_if_told_so_by_name(
    tmp_path: Path, given: dict[str, str], starts: bool
) -> None:
    settings = make_settings("", tmp_path).model_copy(update=given)
    if starts:
        assert _confined(settings) is settings
        return
    with pytest.raises(Refused, match="NEXUS_SANDBOX=optional") as refused:
        _confined(settings)
    assert "Parsers can open files." in str(refused.value)


def test_prod_starts_with_a_sandbox(tmp_path: Path) -> None:
    settings = make_settings("", tmp_path).model_copy(update={"env": "prod"})
    assert _confined(settings) is settings
