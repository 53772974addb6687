"""The gate that runs the README's "For a team" (`make shipped`) knows what the README says, and is run by CI."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nexus.settings import Settings
from tools.shipped.recipe import Drifted, fill, read

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"


def test_the_recipe_for_a_team_exports_only_existing_settings() -> None:
    known = {f"NEXUS_{name.upper()}" for name in Settings.model_fields}
    exported = set(re.findall(r"(\w+)=", read(README).settings))
    assert exported <= known
    assert {"NEXUS_S3_ACCESS_KEY", "NEXUS_S3_SECRET_KEY", "NEXUS_PUBLIC_URL"} <= exported


def test_the_recipe_for_a_team_upgrades_checks_serves_and_works() -> None:
    recipe = read(README)
    assert [line.split(" --")[0] for line in recipe.commands] == [
        "nexus db upgrade",
        "nexus doctor",
        "nexus serve",
        "nexus worker",
    ]
    assert "--require-hashes -r requirements/run.txt" in recipe.install


def test_an_example_command_without_a_value_is_not_run() -> None:
    assert fill("export A=https://db.internal", {"https://db.internal": "x"}) == "export A=x"
    for left in ("export KEY=…", "redis://new.internal/0", "https://id.example.com/", "--host 0.0.0.0"):
        with pytest.raises(Drifted, match="no value"):
            fill(left, {})


def test_a_value_without_an_example_is_noticed() -> None:
    with pytest.raises(Drifted, match=r"db\.internal"):
        fill("export A=1", {"db.internal": "127.0.0.1"})


def test_a_recipe_of_another_shape_is_noticed(tmp_path: Path) -> None:
    changed = tmp_path / "README.md"
    changed.write_text(README.read_text().replace("## For a team", "## For many"))
    with pytest.raises(Drifted, match="two blocks"):
        read(changed)


def test_ci_runs_what_is_shipped() -> None:
    assert re.search(r"^make .*\bshipped\b", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
