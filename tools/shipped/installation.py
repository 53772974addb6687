"""Builds the wheel and installs it, with its pinned requirements alone, outside of the checkout."""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from pathlib import Path

from tools.shipped.recipe import Recipe, fill

ROOT = Path(__file__).parents[2]
MODULES = Path(__file__).with_name("modules.py")
#: What a wheel is built from. A copy, because setuptools also packs what earlier builds left in a checkout.
SOURCES = ("nexus", "requirements", "pyproject.toml", "README.md", "LICENSE")


class NotShipped(Exception):
    """What was built or installed is not whole. The text says what is missing."""


def install(recipe: Recipe, folder: Path) -> Path:
    """The folder with the `nexus` command. Raises NotShipped."""
    source, environment = folder / "source", folder / "nexus"
    _copy(source)
    script = fill(recipe.install, {"/opt/nexus": str(environment)})
    ran = subprocess.run(["bash", "-euc", script], cwd=source, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise NotShipped(f"The README's installation fails:\n{ran.stdout}{ran.stderr}")
    _require_files(next(source.glob("dist/*.whl")))
    return environment / "bin"


def import_everything(programs: Path, folder: Path) -> None:
    """Raises NotShipped for modules that need more than was installed."""
    command = [programs / "python", "-I", MODULES]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise NotShipped(f"These can't be imported where only the pinned requirements are:\n{ran.stderr}")


def _copy(source: Path) -> None:
    source.mkdir()
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, source / name)
    (source / ".venv").symlink_to(ROOT / ".venv")


def _require_files(wheel: Path) -> None:
    """Every file below nexus/: modules, templates, static files, migrations, the model of articles."""
    with zipfile.ZipFile(wheel) as packed:
        names = set(packed.namelist())
    source = wheel.parents[1]
    files = (path for path in (source / "nexus").rglob("*") if path.is_file())
    wanted = {path.relative_to(source).as_posix() for path in files if "__pycache__" not in path.parts}
    if missing := sorted(wanted - names):
        raise NotShipped(f"These files are not in the wheel: {', '.join(missing)}")
