"""A name means one thing: a search for a class or a function finds one place."""

import ast
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2] / "nexus"
#: Their names are read outside: in the API's document, on the command line and on the queue. Each has the name of the
#: verb that it calls.
DOORS = (
    "web/api/",
    "cli/commands.py",
    "cli/feed_commands.py",
    "cli/sharing_commands.py",
    "worker/tasks.py",
)
#: Modules that offer the same functions on purpose: one per database, and Alembic's migrations.
SEAMS = ("db/drivers/", "db/migrations/versions/")


def _trees(*, leave_out: tuple[str, ...]) -> list[ast.Module]:
    paths = ((path, path.relative_to(ROOT).as_posix()) for path in sorted(ROOT.rglob("*.py")))
    return [ast.parse(path.read_text()) for path, name in paths if not name.startswith(leave_out)]


def _twice(names: list[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def test_no_two_classes_share_a_name() -> None:
    nodes = [node for tree in _trees(leave_out=()) for node in ast.walk(tree)]
    assert _twice([node.name for node in nodes if isinstance(node, ast.ClassDef)]) == []


def test_no_two_public_functions_below_the_doors_share_a_name() -> None:
    functions = [
        node.name
        for tree in _trees(leave_out=DOORS + SEAMS)
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    assert _twice([name for name in functions if not name.startswith("_")]) == []
