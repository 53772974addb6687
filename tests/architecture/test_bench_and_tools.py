"""What stands beside the package uses names that the package still has."""

import ast
import importlib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILES = sorted(path for folder in ("bench", "chaos", "tools") for path in (ROOT / folder).rglob("*.py"))


def imported(path: Path) -> Iterator[tuple[str, str]]:
    """Every module and name that a file imports from the package or from what its tests share."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in {"nexus", "tests"}:
            yield from ((str(node.module), name.name) for name in node.names)


def test_there_are_files_to_look_at() -> None:
    assert len([name for path in FILES for name in imported(path)]) > 100


def test_every_imported_name_exists() -> None:
    missing = [
        f"{path.relative_to(ROOT)}: {module} has no {name}"
        for path in FILES
        for module, name in imported(path)
        if not hasattr(importlib.import_module(module), name) and not find_spec(f"{module}.{name}")
    ]
    assert missing == []
