"""What no linter checks about the code: who writes a status, and how long files and functions may get."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from nexus.db.moves import SUBJECTS

ROOT = Path(__file__).parents[2]
#: The columns that only an edge may change, and their tables.
STATUS = {"status_before", *(subject.status.name for subject in SUBJECTS)}
TABLES = {subject.table.name for subject in SUBJECTS}
#: The tables declare them, the move writes them, and triggers guard them.
MAY_NAME = {
    "nexus/db/tables.py",
    "nexus/db/editorial.py",
    "nexus/db/moves.py",
    "nexus/db/triggers.py",
}
_TABLE, _STATUS = "|".join(sorted(TABLES)), "|".join(sorted(STATUS))
SQL = re.compile(rf"(?is)\b(update\s+({_TABLE})\b.*\bset\b|insert\s+into\s+({_TABLE})\b|set\s+({_STATUS})\b)")
#: Make statements that write every column of a table.
WRITES_ALL = {"insert_all", "insert_or_nothing", "every_column"}
LONGEST_FUNCTION = 80
LONGEST_FILE = 400


def docstrings(tree: ast.AST) -> set[int]:
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, owners) and node.body and isinstance(node.body[0], ast.Expr)
    }


def written_statuses(tree: ast.AST) -> Iterator[int]:
    """Lines that write a status: a keyword of a call, a key of a dict, an assignment, every column, or SQL text."""
    spoken = docstrings(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr="values" | "update"), keywords=keywords):
                yield from (keyword.value.lineno for keyword in keywords if keyword.arg in STATUS)
            case ast.Dict(keys=keys):
                yield from (key.lineno for key in keys if key is not None and is_status(key))
            case ast.Assign(targets=targets):
                yield from (target.lineno for target in targets if is_status(target))
            case ast.AnnAssign(target=target) | ast.AugAssign(target=target) if is_status(target):
                yield target.lineno
            case ast.Call(func=ast.Name(id=made), args=[ast.Name(id=table), *_]):
                if made in WRITES_ALL and table in TABLES:
                    yield node.lineno
            case ast.Constant(value=str(text)) if id(node) not in spoken and SQL.search(text):
                yield node.lineno


def is_status(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=str(text)):
            return text in STATUS
        case ast.Attribute(attr=attr):
            return attr in STATUS
        case ast.Subscript(slice=ast.Constant(value=str(text))):
            return text in STATUS
    return False


@cache
def trees() -> dict[str, ast.Module]:
    """Every module of the package by its path, parsed."""
    paths = sorted((ROOT / "nexus").rglob("*.py"))
    return {path.relative_to(ROOT).as_posix(): ast.parse(path.read_text()) for path in paths}


def is_door(name: str) -> bool:
    return name.startswith(("nexus/web/", "nexus/cli", "nexus/worker/"))


def is_migration(name: str) -> bool:
    return "/migrations/" in name


def test_nothing_but_the_move_writes_a_status() -> None:
    """A door may name the column as a field of its answer, because it speaks no SQL."""
    others = {
        name: tree
        for name, tree in trees().items()
        if name not in MAY_NAME and not is_migration(name) and not is_door(name)
    }
    assert [f"{name}:{line}" for name, tree in others.items() for line in written_statuses(tree)] == []


def test_doors_speak_no_sql() -> None:
    assert [name for name, tree in trees().items() if is_door(name) and imports_sql(tree)] == []


def imports_sql(tree: ast.AST) -> bool:
    return any(
        module.split(".")[0] == "sqlalchemy" for module in imported(tree) if module != "sqlalchemy.exc"
    )


@pytest.mark.parametrize(
    "source",
    [
        "update(media).values(processing_status='ready')",
        "update(media).values({'processing_status': 'ready'})",
        "update(media).values({media.c.processing_status: 'ready'})",
        "row['processing_status'] = 'ready'",
        "row.processing_status = 'ready'",
        "update(jobs).values(status='SAVED')",
        "update(stories).values({stories.c.status: 'published'})",
        "Move(JOB_ROWS, RETRY, sets={'status': bindparam('status')})",
        "job.status: str = 'SAVED'",
        "insert_all(stories)",
        "insert_or_nothing(media)",
        "session.execute('UPDATE jobs SET status = 1')",
        "session.execute('INSERT INTO stories (status) VALUES (1)')",
        "session.execute('UPDATE media SET title = 1, processing_status = 2')",
        "run(f'update media set x = {y}')",
    ],
)
def test_the_search_for_written_statuses_finds_them(source: str) -> None:
    assert list(written_statuses(ast.parse(source)))


@pytest.mark.parametrize(
    "source",
    [
        "select(media).where(media.c.processing_status == 'ready')",
        "MediaStatus(row.processing_status)",
        "select(jobs).where(jobs.c.status == 'SAVED')",
        "insert_all(libraries)",
        "def f():\n    'UPDATE media SET processing_status is how it is done'",
    ],
)
def test_the_search_for_written_statuses_finds_nothing_else(source: str) -> None:
    assert not list(written_statuses(ast.parse(source)))


def test_only_their_registry_moves_import_attempts() -> None:
    """They have no table, so no trigger guards their status."""
    others = {name: tree for name, tree in trees().items() if name != "nexus/imports/attempts.py"}
    assert [f"{name}:{line}" for name, tree in others.items() for line in moved_attempts(tree)] == []
    assert list(moved_attempts(ast.parse("state = replace(state, status=AttemptStatus.PAUSED)")))
    assert list(moved_attempts(ast.parse("self._state = state")))


def moved_attempts(tree: ast.AST) -> Iterator[int]:
    """Lines that make the state of an attempt, or put one in its place."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="AttemptState")):
                yield node.lineno
            case ast.Assign(targets=[ast.Attribute(attr="_state")]):
                yield node.lineno
            case ast.keyword(arg="status", value=ast.Attribute(value=ast.Name(id="AttemptStatus"))):
                yield node.value.lineno


def test_functions_and_files_stay_short() -> None:
    assert [name for name in trees() if len((ROOT / name).read_text().splitlines()) > LONGEST_FILE] == []
    # A migration is one long list of tables.
    others = {name: tree for name, tree in trees().items() if not is_migration(name)}
    assert [f"{name}:{line}" for name, tree in others.items() for line in long_functions(tree)] == []


def long_functions(tree: ast.AST) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            if node.end_lineno - node.lineno >= LONGEST_FUNCTION:
                yield node.lineno


def test_only_the_command_line_prints() -> None:
    others = {name: tree for name, tree in trees().items() if not name.startswith("nexus/cli")}
    assert [f"{name}:{line}" for name, tree in others.items() for line in prints(tree)] == []


def prints(tree: ast.AST) -> Iterator[int]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="print")):
                yield node.lineno


def test_only_the_session_commits() -> None:
    """Lifecycle functions never commit: the caller that opened the transaction ends it."""
    others = {
        name: tree
        for name, tree in trees().items()
        if name != "nexus/db/session.py" and not is_migration(name)
    }
    assert [f"{name}:{line}" for name, tree in others.items() for line in ended_transactions(tree)] == []


def ended_transactions(tree: ast.AST) -> Iterator[int]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr="commit" | "rollback")):
                yield node.lineno


def test_checks_of_invariants_do_not_depend_on_the_code_they_check() -> None:
    """Nor on tests that use it: otherwise a mistake in a table of edges would confirm itself."""
    checks = [ROOT / "chaos" / "ledger.py", *(ROOT / "chaos" / "invariants").glob("*.py")]
    own = [
        f"{path.name} imports {module}"
        for path in checks
        for module in imported(ast.parse(path.read_text()))
        if module.split(".")[0] in {"nexus", "tests", "chaos"}
        and not module.startswith(("chaos.invariants", "chaos.ledger"))
    ]
    assert own == []


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module)):
                yield module
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
