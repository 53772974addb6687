"""What mypy believes of a row is what the database answers."""

from __future__ import annotations

import gc
import importlib
import pkgutil
from enum import Enum
from functools import _lru_cache_wrapper
from types import ModuleType, NoneType
from typing import Any, get_args

import pytest
from sqlalchemy import ClauseElement
from sqlalchemy.dialects import postgresql, sqlite

import nexus
from nexus.db.session import Query, bare_type, fields_of


@pytest.fixture(scope="module")
def queries() -> list[Query[Any]]:
    """Every query that is built when its module is imported."""
    for module in pkgutil.walk_packages(nexus.__path__, "nexus."):
        if not module.name.endswith("__main__") and ".migrations." not in module.name:
            _forget_made_while_running(importlib.import_module(module.name))
    gc.collect()
    gc.unfreeze()  # what was there when the tests began is frozen, and not among the objects
    found = [thing for thing in gc.get_objects() if isinstance(thing, Query)]
    gc.freeze()
    return found


def _forget_made_while_running(module: ModuleType) -> None:
    """Other tests of this process may have searched, which makes queries for each shape of filters."""
    for made in vars(module).values():
        if isinstance(made, _lru_cache_wrapper):
            made.cache_clear()


def _columns(query: Query[Any]) -> list[Any]:
    clause = query.clause if isinstance(query.clause, ClauseElement) else query.clause(sqlite.dialect())
    return list(clause.exported_columns)  # type: ignore[attr-defined]


def _complaints(query: Query[Any]) -> list[str]:
    found = []
    for column, (name, hint) in zip(_columns(query), fields_of(query.row).items(), strict=True):
        kind = bare_type(hint)
        stored = str if issubclass(kind, Enum) else kind
        if column.type.python_type is not stored:
            found.append(f"{query.row.__qualname__}.{name} is {stored}, its column {column.type.python_type}")
        if getattr(column, "nullable", False) and NoneType not in get_args(hint):
            found.append(f"{query.row.__qualname__}.{name} may be missing, its annotation denies it")
    return found


def test_every_query_answers_what_its_row_type_says(queries: list[Query[Any]]) -> None:
    assert len(queries) > 30
    assert [complaint for query in queries for complaint in _complaints(query)] == []


@pytest.mark.parametrize("dialect", [sqlite.dialect(), postgresql.dialect()], ids=["sqlite", "postgresql"])
def test_every_query_compiles_into_its_row_type(queries: list[Query[Any]], dialect: Any) -> None:
    for query in queries:
        made = query._compile(dialect).make_row(range(len(fields_of(query.row))))
        assert isinstance(made, query.row)
