"""Extractors as packages: the documented example is built, installed and used."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

from nexus.extract.registry import GROUP
from tests.kit.servers.web_pages import Answer, Pages

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"`([\w.]+)`\n\n```\w+\n(.*?)```", re.DOTALL)


def documented() -> dict[str, str]:
    """The files of the example, by name."""
    return dict(BLOCK.findall((ROOT / "docs" / "extractors.md").read_text()))


def install(files: dict[str, str], folder: Path) -> Path:
    """The folder that the package is installed into."""
    source, site = folder / "package", folder / "site"
    source.mkdir()
    for name, text in files.items():
        (source / name).write_text(text)
    uv = Path(sysconfig.get_path("scripts")) / "uv"
    command = [uv, "pip", "install", "--quiet", "--offline", "--no-deps", "--no-build-isolation"]
    place = ["--python", sys.executable, "--target", site]
    subprocess.run([*map(str, [*command, *place]), str(source)], check=True, cwd=folder)
    return site


def nexus(folder: Path, site: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    others = {name: value for name, value in os.environ.items() if not name.startswith("NEXUS_")}
    given = {**others, "HOME": str(folder), "PYTHONPATH": str(site), **environment}
    command = [sys.executable, "-m", "nexus", *arguments]
    return subprocess.run(command, env=given, cwd=folder, capture_output=True, text=True, check=False)


def test_the_documented_package_reads_a_video(tmp_path: Path, pages: Pages) -> None:
    site = install(documented(), tmp_path)
    pages["/film.txt"] = Answer(b"A film\nThe first words.\nThe last words.", "text/plain")
    listed = json.loads(nexus(tmp_path, site, "extractors", "--json").stdout)
    assert {"kind": "video", "extractor": "captions:extract_video", "package": "captions 1.0"} in listed

    here = {"NEXUS_FETCH_ALLOW": pages.place, "NEXUS_DATA_DIR": str(tmp_path / "data")}
    ran = nexus(tmp_path, site, "add", pages.url("/film"), "--kind", "video", **here)
    assert ran.returncode == 0, ran.stderr
    (film,) = json.loads(nexus(tmp_path, site, "status", "--json", **here).stdout)
    assert (film["title"], film["processing_status"]) == ("A film", "ready_for_reading")


def test_an_extractor_of_an_unknown_kind_is_named(tmp_path: Path) -> None:
    files = documented()
    files["pyproject.toml"] = files["pyproject.toml"].replace("video =", "hologram =")
    ran = nexus(tmp_path, install(files, tmp_path), "extractors")
    assert ran.returncode == 2
    assert "captions 1.0 has an extractor for hologram" in ran.stderr


def test_an_extractor_that_cannot_be_imported_is_named(tmp_path: Path) -> None:
    files = documented()
    files["captions.py"] = "import a_module_that_nobody_has\n"
    ran = nexus(tmp_path, install(files, tmp_path), "extractors")
    assert ran.returncode == 2
    assert "captions:extract_video of captions 1.0" in ran.stderr
    assert "a_module_that_nobody_has" in ran.stderr


def test_the_documentation_names_the_entry_point_group() -> None:
    assert f'entry-points."{GROUP}"' in documented()["pyproject.toml"]
