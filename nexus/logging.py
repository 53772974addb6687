"""Structured logs that carry request_id and media_id, and never tokens, query strings or text."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

#: Names under which a secret or a source's text could slip into a log line.
PRIVATE = frozenset(
    {"authorization", "cookie", "token", "secret", "password", "text", "html", "body", "x-nexus-internal"}
)

PRIVATE_ENDS = ("_secret", "_token", "_password")


def configure(*, json: bool, level: str) -> None:
    """Log lines go to standard error, from structlog and from the standard library alike."""
    colours = sys.stderr.isatty()
    # Plain tracebacks: the pretty ones draw local variables, and with them whatever a request carries.
    readable = structlog.dev.ConsoleRenderer(
        colors=colours, exception_formatter=structlog.dev.plain_traceback
    )
    render: Processor = structlog.processors.JSONRenderer() if json else readable
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        redact,
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )
    finish: list[Processor] = [structlog.stdlib.ProcessorFormatter.remove_processors_meta]
    if json:
        finish.append(structlog.processors.format_exc_info)
    formatter = structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=[*finish, render])
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    # What they say at every start and stop is of no use to anyone who did not ask for it.
    for chatty in ("alembic", "uvicorn.error"):
        logging.getLogger(chatty).setLevel(logging.DEBUG if level == "debug" else logging.WARNING)
    # Access lines are Nexus's own, with the request id and without the query string.
    logging.getLogger("uvicorn.access").disabled = True


def get(name: str) -> structlog.stdlib.BoundLogger:
    logger: structlog.stdlib.BoundLogger = structlog.stdlib.get_logger(name)
    return logger


def redact(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    for name in event:
        if name.lower() in PRIVATE or name.lower().endswith(PRIVATE_ENDS):
            event[name] = "[redacted]"
    return event


@contextmanager
def task_log_context(request_id: str | None, **extra: object) -> Iterator[None]:
    """Every log line inside carries these, in this thread and task alone."""
    fields = {
        name: str(value) for name, value in {"request_id": request_id, **extra}.items() if value is not None
    }
    with structlog.contextvars.bound_contextvars(**fields):
        yield
