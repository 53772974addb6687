"""What a command imports before it answers: everything slow that it does not need stays out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

#: Modules for documents, brokers, stores, models and migrations: each takes long to import.
WORKERS = {
    "alembic",
    "billiard",
    "boto3",
    "celery",
    "kombu",
    "lxml",
    "numpy",
    "openai",
    "pypdfium2",
    "redis",
    "resiliparse",
    "trafilatura",
}
SERVER = {"fastapi", "httpcore2", "httpx2", "jinja2", "jwt", "starlette", "uvicorn"}
#: Modules that only the other database needs.
OTHER_DATABASE = {"psycopg", "psycopg_binary", "sqlalchemy.dialects.postgresql"}
DATABASE = {"sqlalchemy"} | OTHER_DATABASE
#: What only a person at a terminal sees, and what only a line in the log needs.
DRAWN_OR_LOGGED = {"rich", "structlog"}
#: Where work is done.
WORK = {
    "nexus.draft",
    "nexus.extract.probing",
    "nexus.extract.sandbox",
    "nexus.fetch",
    "nexus.imports",
    "nexus.media.runner",
    "nexus.media.submit",
    "nexus.media.workbench",
}

RUN = """
import atexit, json, sys
atexit.register(lambda: print("LOADED", json.dumps(sorted(sys.modules))))
from nexus.cli import main
main()
"""
#: Told to stop as soon as it is ready.
SERVE = """
import os, signal
from nexus.cli import server
server._welcome = lambda *_: os.kill(os.getpid(), signal.SIGTERM)
"""
#: Told to stop before uvicorn handles signals.
STOPPED_EARLY = """
import os, signal
from nexus.cli import server
run = server.Server.run
def stopped(self, sockets):
    os.kill(os.getpid(), signal.SIGTERM)
    run(self, sockets)
server.Server.run = stopped
"""


def loaded(folder: Path, *arguments: str, before: str = "") -> set[str]:
    """The modules that are imported when the command ends, in a process of its own."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NEXUS_")}
    place = {"HOME": str(folder), "XDG_DATA_HOME": str(folder / "share")}
    command = [sys.executable, "-c", before + RUN, *arguments]
    ran = subprocess.run(
        command, env=environment | place, cwd=folder, capture_output=True, text=True, check=True
    )
    line = next(line for line in ran.stdout.splitlines() if line.startswith("LOADED "))
    return set(json.loads(line.removeprefix("LOADED ")))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with a migrated database."""
    folder = tmp_path_factory.mktemp("home")
    loaded(folder, "status")
    return folder


@pytest.mark.parametrize("arguments", [["--help"], ["status", "--help"], ["serve", "--help"]])
def test_help_imports_neither_the_database_nor_the_server(home: Path, arguments: list[str]) -> None:
    assert not loaded(home, *arguments) & (WORKERS | SERVER | DATABASE)


def test_status_imports_nothing_slow_but_the_database(home: Path) -> None:
    found = loaded(home, "status")
    assert "sqlalchemy" in found
    assert not found & (WORKERS | SERVER | OTHER_DATABASE | DRAWN_OR_LOGGED | WORK)


@pytest.mark.parametrize("arguments", [["retry", "--all-failed"], ["doctor"]])
def test_commands_on_the_database_import_neither_the_server_nor_what_does_the_work(
    home: Path, arguments: list[str]
) -> None:
    found = loaded(home, *arguments)
    assert "sqlalchemy" in found
    assert not found & (
        WORKERS | SERVER | OTHER_DATABASE | DRAWN_OR_LOGGED | WORK | {"nexus.web.api.schemas"}
    )


def test_issuing_a_token_imports_neither_the_database_nor_the_server(home: Path) -> None:
    assert not loaded(home, "token") & (WORKERS | DATABASE | DRAWN_OR_LOGGED | (SERVER - {"jwt"}))


def test_a_server_becomes_ready_before_it_imports_what_its_work_needs(home: Path) -> None:
    found = loaded(home, "serve", "--port", "0", before=SERVE)
    assert "uvicorn" in found
    assert not found & (
        WORKERS | OTHER_DATABASE | {"cryptography", "httpcore2", "httpx2", "jinja2", "jwt", "websockets"}
    )


def test_a_server_that_is_stopped_during_its_start_ends(home: Path) -> None:
    assert "uvicorn" in loaded(home, "serve", "--port", "0", before=STOPPED_EARLY)


def test_schemas_of_answers_are_built_only_for_the_documentation() -> None:
    look = """
import nexus.web.application
from nexus.web.http.envelope import Answer
def below(kind):
    return [kind, *(found for child in kind.__subclasses__() for found in below(child))]
print(*(kind.__name__ for kind in below(Answer) if kind.__pydantic_complete__))
"""
    ran = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert set(ran.stdout.split()) <= {"Data"}, "Data alone, which Pydantic builds to make its kinds"


def test_endpoints_are_looked_at_only_when_they_are_asked_for() -> None:
    look = """
from nexus.web.application import ROUTERS
print(*(route.path for router in ROUTERS for route in router.routes if hasattr(route, "dependant")))
"""
    ran = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == []


def test_the_statements_of_moves_are_built_only_when_they_are_used() -> None:
    look = """
import gc
import nexus.web.application
from nexus.db.moves import Move
print(*(move.edge.verb for move in gc.get_objects() if isinstance(move, Move) and not callable(move.query.clause)))
"""
    ran = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == []
