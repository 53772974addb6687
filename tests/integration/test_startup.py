"""What a command imports before it answers: everything slow that it does not need stays out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

#: What reads documents, speaks to brokers, stores and models, and migrates: each takes long to import.
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
#: What only a database needs that is not the configured one.
OTHER_DATABASE = {"psycopg", "psycopg_binary", "sqlalchemy.dialects.postgresql"}
DATABASE = {"sqlalchemy"} | OTHER_DATABASE

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
#: Told to stop before uvicorn looks out for it.
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
    """Where a database is that needs no migration."""
    folder = tmp_path_factory.mktemp("home")
    loaded(folder, "status")
    return folder


@pytest.mark.parametrize("arguments", [["--help"], ["status", "--help"], ["serve", "--help"]])
def test_help_imports_neither_the_database_nor_the_server(home: Path, arguments: list[str]) -> None:
    assert not loaded(home, *arguments) & (WORKERS | SERVER | DATABASE)


def test_status_imports_the_database_and_nothing_else_that_is_slow(home: Path) -> None:
    found = loaded(home, "status")
    assert "sqlalchemy" in found
    assert not found & (WORKERS | SERVER | OTHER_DATABASE)


@pytest.mark.parametrize("arguments", [["retry", "--all-failed"], ["doctor"]])
def test_commands_on_the_database_import_neither_the_server_nor_another_database(
    home: Path, arguments: list[str]
) -> None:
    found = loaded(home, *arguments)
    assert "sqlalchemy" in found
    assert not found & (WORKERS | SERVER | OTHER_DATABASE | {"nexus.web.api.schemas"})


def test_a_token_needs_neither_the_database_nor_the_server(home: Path) -> None:
    assert not loaded(home, "token") & (WORKERS | DATABASE | (SERVER - {"jwt"}))


def test_a_server_is_ready_without_what_its_work_needs(home: Path) -> None:
    found = loaded(home, "serve", "--port", "0", before=SERVE)
    assert "uvicorn" in found
    assert not found & (WORKERS | OTHER_DATABASE | {"httpcore2", "httpx2", "jinja2", "websockets"})


def test_a_server_that_is_stopped_while_it_starts_ends(home: Path) -> None:
    assert "uvicorn" in loaded(home, "serve", "--port", "0", before=STOPPED_EARLY)


def test_the_schemas_of_answers_are_left_to_the_documentation() -> None:
    look = """
import nexus.web.application
from nexus.web.api.schemas import Answer
def below(kind):
    return [kind, *(found for child in kind.__subclasses__() for found in below(child))]
print(*(kind.__name__ for kind in below(Answer) if kind.__pydantic_complete__))
"""
    ran = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert set(ran.stdout.split()) <= {"Data"}, "Data alone, which Pydantic builds to make its kinds"
