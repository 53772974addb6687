"""The generated reference says what the code does."""

import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import nexus
from tools import reference

ROOT = Path(__file__).parents[2]
#: The target of a Markdown link into this repository.
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")
#: Something in a room, such as `media.submit.url`, with or without the package.
ROOMS = "|".join(module.name for module in pkgutil.iter_modules(nexus.__path__))
NAMED = re.compile(rf"`(?:nexus\.)?((?:{ROOMS})(?:\.\w+)+)`")
WRITTEN = [*sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs" / "decisions").glob("*.md"))]


@pytest.mark.parametrize("name", sorted(reference.pages()))
def test_the_reference_is_what_the_code_says(name: str) -> None:
    assert (ROOT / "docs" / name).read_text() == reference.pages()[name], "run: make docs"


def test_defaults_are_written_as_they_are_set() -> None:
    assert [line for line in reference.settings().splitlines() if "| `(" in line] == []


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


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.name)
def test_documents_name_only_what_is_in_the_code(page: Path) -> None:
    for name in NAMED.findall(page.read_text()):
        assert pkgutil.resolve_name(f"nexus.{name}")


def test_each_decision_has_the_number_of_its_file() -> None:
    for page in (ROOT / "docs" / "decisions").glob("*.md"):
        assert page.read_text().startswith(f"# {int(page.name[:4])}. ")
