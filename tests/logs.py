"""Logging as Nexus sets it up, for one test."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
import structlog


@pytest.fixture
def logging_as_before() -> Iterator[None]:
    """A test may configure logging: afterwards it is as it was."""
    root = logging.getLogger()
    handlers, level, kept = root.handlers, root.level, structlog.get_config()
    named = {name: logging.getLogger(name).level for name in ("alembic", "uvicorn.error")}
    yield
    root.handlers, root.level = handlers, level
    structlog.configure(**kept)
    for name, before in named.items():
        logging.getLogger(name).setLevel(before)
    logging.getLogger("uvicorn.access").disabled = False
