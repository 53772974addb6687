"""What users install is requirements/run.txt; the environment of the tests holds more, and must not help."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PINNED = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==", re.MULTILINE)

#: Imports what Nexus may need in a process that can import no other distribution than those named.
ALONE = """
import re, sys
from importlib.metadata import packages_distributions

allowed = set(sys.argv[1:]) | {"nexus"}
owners = {
    module: {re.sub(r"[-_.]+", "-", name).lower() for name in names}
    for module, names in packages_distributions().items()
}

class Closed:
    def find_spec(self, name, path=None, target=None):
        if path is None and not owners.get(name, allowed) & allowed:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Closed())
from tools.shipped import modules
print("\\n".join(modules.problems()))
"""


def pinned(name: str) -> set[str]:
    """The distributions that a file of requirements names, spelled as PyPI does."""
    found = PINNED.findall((ROOT / "requirements" / name).read_text())
    return {re.sub(r"[-_.]+", "-", one).lower() for one in found}


def problems(distributions: set[str]) -> list[str]:
    command = [sys.executable, "-c", ALONE, *sorted(distributions)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return ran.stdout.split("\n")[:-1] if ran.stdout.strip() else []


def test_everything_that_nexus_can_import_is_pinned_for_users() -> None:
    assert problems(pinned("run.txt")) == []


def test_a_requirement_that_is_left_out_is_missed() -> None:
    left_out = {
        "kombu.transport.redis: ": "packaging",
        "cryptography.hazmat": "cryptography",
        "authlib.oidc.core: ": "authlib",
        "tokenizers: ": "tokenizers",
    }
    found = problems(pinned("run.txt") - set(left_out.values()))
    for fails, why in left_out.items():
        assert [one for one in found if one.startswith(fails) and why in one]


@pytest.mark.parametrize("path", sorted((ROOT / "requirements").glob("*.txt")), ids=lambda path: path.name)
def test_locked_requirements_name_no_place_to_get_them_from(path: Path) -> None:
    """Everybody installs from the index of their choice."""
    assert not re.search(r"://|^--(?!hash)|^-[ef]|file:", path.read_text(), re.MULTILINE)
