"""What no linter checks about the code: who writes a status, and how long files and functions may get."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from nexus.db.moves import SUBJECTS

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "nexus").rglob("*.py"))
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


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


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


def is_door(path: Path) -> bool:
    return name(path).startswith(("nexus/web/", "nexus/cli", "nexus/worker/"))


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_nothing_but_the_move_writes_a_status(path: Path) -> None:
    """A door may name the column as a field of its answer, because it speaks no SQL."""
    if name(path) not in MAY_NAME and "/migrations/" not in name(path) and not is_door(path):
        assert list(written_statuses(ast.parse(path.read_text()))) == []


@pytest.mark.parametrize("path", [path for path in SOURCES if is_door(path)], ids=name)
def test_doors_speak_no_sql(path: Path) -> None:
    assert not imports_sql(ast.parse(path.read_text()))


def imports_sql(tree: ast.AST) -> bool:
    modules = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    modules |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    return any(module.split(".")[0] == "sqlalchemy" for module in modules - {"sqlalchemy.exc"})


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


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_functions_and_files_stay_short(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= LONGEST_FILE
    functions = [
        node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    # A migration is one long list of tables.
    if "/migrations/" not in name(path):
        assert [f.name for f in functions if f.end_lineno - f.lineno >= LONGEST_FUNCTION] == []


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_only_the_command_line_prints(path: Path) -> None:
    if name(path).startswith("nexus/cli"):
        return
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    assert [
        call.lineno for call in calls if isinstance(call.func, ast.Name) and call.func.id == "print"
    ] == []


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_only_the_session_commits(path: Path) -> None:
    """Lifecycle functions never commit: the caller that opened the transaction ends it."""
    if name(path) == "nexus/db/session.py" or "/migrations/" in name(path):
        return
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    attributes = [call.func.attr for call in calls if isinstance(call.func, ast.Attribute)]
    assert not {"commit", "rollback"} & set(attributes)


INVARIANTS = [ROOT / "chaos" / "ledger.py", *sorted((ROOT / "chaos" / "invariants").glob("*.py"))]


@pytest.mark.parametrize("path", INVARIANTS, ids=name)
def test_checks_of_invariants_do_not_depend_on_the_code_they_check(path: Path) -> None:
    """Nor on tests that use it: otherwise a mistake in a table of edges would confirm itself."""
    tree = ast.parse(path.read_text())
    modules = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    modules |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    own = {module for module in modules if module.split(".")[0] in {"nexus", "tests", "chaos"}}
    assert {module for module in own if not module.startswith(("chaos.invariants", "chaos.ledger"))} == set()
