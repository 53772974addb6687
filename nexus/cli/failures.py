# ruff: noqa: PLC0415
"""Explains failures that a person can cause in one sentence with a next step. Only bugs get a traceback."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperGroup

from nexus.cli import say
from nexus.errors import ApiError

#: Something went wrong while the command ran.
FAILED = 1
#: Options or settings make no sense.
MISUSED = 2

_SQLITE = {
    "unable to open": "The database file can't be opened. Check that its folder exists and that you may write there, "
    "or choose another with --data-dir.",
    "readonly": "The database can't be written. Check the permissions of the data folder and of the files in it.",
    "locked": "Another program has locked the database. Stop it, or try again in a moment.",
    "full": "The disk is full. Free some space, then try again.",
    "no such table": "The database is not migrated. Run: nexus db upgrade",
    "no such column": "The database is not migrated. Run: nexus db upgrade",
    "not a database": "The database file is damaged or is not a database. Restore a copy of it, or choose another "
    "folder with --data-dir.",
    "malformed": "The database file is damaged. Restore a copy of it; nexus doctor says how much is broken.",
}


#: How PostgreSQL says, in English, that somebody has to correct something and waiting does not help.
_POSTGRES_REFUSALS = (
    "password authentication failed",
    "no password supplied",
    "no pg_hba.conf entry",
    "is not permitted to log in",
    "does not exist",
)


class Refused(Exception):
    """A command can't do what it was asked to do. Its text says why, and what to do next."""

    def __init__(self, sentence: str, code: int = FAILED) -> None:
        super().__init__(sentence)
        self.code = code


class Polite(TyperGroup):
    """A group of commands that shows no traceback for failures that a person can cause."""

    def invoke(self, ctx: Any) -> Any:
        with reporting_failures():
            return super().invoke(ctx)


@contextmanager
def reporting_failures() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        explained = explain(error)
        if explained is None:
            raise
        sentence, code = explained
        say.problem(sentence)
        raise typer.Exit(code) from error


def explain(error: Exception) -> tuple[str, int] | None:
    """Return a sentence and an exit code, or None for what must be a bug."""
    if isinstance(error, Refused):
        return str(error), error.code
    if isinstance(error, ApiError):
        return error.message, FAILED
    return next((said for explain_it in _explainers(error) if (said := explain_it(error))), None)


def _explainers(error: Exception) -> list[Callable[[Exception], tuple[str, int] | None]]:
    """Yield explainers for the libraries that are already imported: no other can have raised the error."""
    homes = {base.__module__.partition(".")[0] for base in type(error).__mro__}
    return [explain_it for explain_it, theirs in _EXPLAINERS.items() if homes & theirs]


def _settings(error: Exception) -> tuple[str, int] | None:
    from pydantic import ValidationError

    from nexus.settings import BadSettings

    if isinstance(error, BadSettings):
        return str(error), MISUSED
    if not isinstance(error, ValidationError) or error.title != "Settings":
        return None
    return " ".join(_setting(problem) for problem in error.errors(include_url=False)), MISUSED


def _setting(problem: Any) -> str:
    """Name the variable, never its value, which may be a secret."""
    reason = problem["msg"].removeprefix("Value error, ").rstrip(".")
    if not problem["loc"]:
        return f"{reason}. Set it in the environment or in .env in the data folder."
    name = str(problem["loc"][0]).upper().removeprefix("NEXUS_")
    return (
        f"NEXUS_{name} is not valid: {reason}. Correct it in the environment or in .env in the data folder."
    )


def _database(error: Exception) -> tuple[str, int] | None:
    from alembic.util import CommandError
    from sqlalchemy.exc import ArgumentError

    if isinstance(error, ArgumentError):
        return (
            "NEXUS_DATABASE_URL is not valid. Use one such as postgresql://user@host/name.",
            MISUSED,
        )
    if isinstance(error, CommandError):
        return _migration(str(error)), FAILED
    return _driver(getattr(error, "orig", None) or error)


def _driver(cause: Exception) -> tuple[str, int] | None:
    if isinstance(cause, sqlite3.Error):
        return _sqlite(str(cause)), FAILED
    from psycopg import Error, OperationalError
    from psycopg.errors import UndefinedColumn, UndefinedTable

    if isinstance(cause, (UndefinedTable, UndefinedColumn)):
        return _SQLITE["no such table"], FAILED
    if isinstance(cause, OperationalError):
        reason = _first_line(cause)
        if is_refusal(cause):
            return (
                "The database refuses the connection. Check the user, the password and the name of the database in "
                f"NEXUS_DATABASE_URL. ({reason})",
                FAILED,
            )
        return f"The database can't be reached. Start it, or check NEXUS_DATABASE_URL. ({reason})", FAILED
    if isinstance(cause, Error):
        return f"The database reported an error: {_first_line(cause)}. Run: nexus doctor", FAILED
    return None


def is_refusal(error: Exception) -> bool:
    """Whether PostgreSQL was reached and refuses this user, password or database.

    Only its message tells: libpq passes on no code for a failed connection. A server that speaks another language
    than English counts as away.
    """
    said = str(getattr(error, "orig", None) or error)
    return any(refusal in said for refusal in _POSTGRES_REFUSALS)


def _sqlite(reason: str) -> str:
    found = (sentence for part, sentence in _SQLITE.items() if part in reason)
    return next(found, f"The database reported an error: {reason}. Run: nexus doctor")


def _migration(reason: str) -> str:
    if "locate revision" in reason:
        return f"{reason}. This Nexus does not know it: check the revision, or install the newer Nexus that made it."
    return f"The database can't be migrated: {reason}."


def _redis(error: Exception) -> tuple[str, int] | None:
    from kombu.exceptions import OperationalError
    from redis.exceptions import AuthenticationError, RedisError

    from nexus.queue import Away

    if isinstance(error, AuthenticationError):
        return "Redis refuses the connection. Check the user and the password in NEXUS_REDIS_URL.", FAILED
    if isinstance(error, (Away, OperationalError, RedisError)):
        return "Redis can't be reached. Start it, or check NEXUS_REDIS_URL.", FAILED
    return None


def _store(error: Exception) -> tuple[str, int] | None:
    from nexus.storage import StorageError

    if isinstance(error, StorageError):
        return (
            f"The file store reported an error ({_first_line(error)}). To see what is wrong, run: nexus doctor",
            FAILED,
        )
    return None


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".:")


_EXPLAINERS: dict[Callable[[Exception], tuple[str, int] | None], set[str]] = {
    _settings: {"nexus", "pydantic_core"},
    _database: {"sqlalchemy", "alembic", "psycopg", "sqlite3"},
    _redis: {"nexus", "kombu", "redis"},
    _store: {"nexus"},
}
