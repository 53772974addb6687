"""`nexus doctor --security` says what a parser can really do, and prod doesn't start if that is too much."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from nexus.cli.failures import Refused
from nexus.cli.server import _confined
from nexus.extract import probing
from nexus.extract.child import handles
from nexus.upkeep import security
from nexus.upkeep.doctor import CheckVerdict
from tests.kit.parsers import OLDER
from tests.kit.settings import make_settings

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux confines parsers")
NEEDED = {"files", "network", "processes", "signals", "limits", "calls"}


@pytest.fixture
def older_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handles, "START", OLDER)


def test_a_parser_on_this_machine_is_confined() -> None:
    found = {one.name: one for one in probing.probe()}
    assert {name for name, one in found.items() if one.needed} == NEEDED
    assert [one for one in found.values() if one.needed and not one.holds] == []
    assert found["user"].holds == (os.geteuid() == 0)
    assert security.why_not_confined() == []


@pytest.mark.usefixtures("older_kernel")
def test_what_a_parser_can_do_on_a_kernel_without_sandbox_features_is_a_problem(tmp_path: Path) -> None:
    findings = {one.name: one for one in security.examine_security(make_settings("", tmp_path))}
    problems = {name for name, one in findings.items() if one.verdict is CheckVerdict.PROBLEM}
    assert {"sandbox.files", "sandbox.network", "sandbox.calls"} <= problems
    assert all(findings[name].advice for name in problems)
    assert findings["sandbox.namespaces"].verdict is CheckVerdict.NOTE


def test_a_nursery_that_never_starts_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handles, "START", "raise SystemExit(1)")
    (finding,) = security.examine_security(make_settings("", tmp_path))
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
