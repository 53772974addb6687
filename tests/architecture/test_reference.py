"""The generated reference says what the code does."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools import reference

ROOT = Path(__file__).parents[2]
#: The target of a Markdown link into this repository.
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")


@pytest.mark.parametrize("name", sorted(reference.pages()))
def test_the_reference_is_what_the_code_says(name: str) -> None:
    assert (ROOT / "docs" / name).read_text() == reference.pages()[name], "run: make docs"


def test_every_setting_is_described() -> None:
    rows = [line for line in reference.settings().splitlines() if line.startswith("| `")]
    assert rows
    assert all(line.split("|")[-2].strip() for line in rows)


def test_the_reference_check_names_outdated_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "DOCS", tmp_path)
    monkeypatch.setattr(sys, "argv", ["reference.py", "--check"])
    with pytest.raises(SystemExit, match=r"states\.md.*make docs"):
        reference.main()


def test_links_in_the_documentation_lead_somewhere() -> None:
    tracked = subprocess.run(
        ["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in tracked.stdout.split():
        page = ROOT / name
        for target in LINK.findall(page.read_text()):
            assert (page.parent / target).exists(), f"{name} links to {target}"
