# ruff: noqa: PLC0415
"""Structured logs that carry request_id and media_id, but never tokens, query strings or text.

structlog is slow to import, so the first log line loads it: most commands end without one.
"""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from structlog.stdlib import BoundLogger
    from structlog.typing import EventDict, Processor, WrappedLogger

#: Fields that could carry a secret or the text of a source into a log line.
PRIVATE = frozenset(
    {"authorization", "cookie", "token", "secret", "password", "text", "html", "body", "x-nexus-internal"}
)

PRIVATE_ENDS = ("_secret", "_token", "_password")

#: Set by `configure` until structlog is configured too.
_is_due = threading.Event()


def configure(*, json: bool, level: str) -> None:
    """Send log lines to standard error, both structlog's and the standard library's."""
    _is_due.set()
    if "structlog" in sys.modules:
        _structlog()
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Formatter(json=json, colours=sys.stderr.isatty()))
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    # They report every start and stop, which is of no use to most people.
    for chatty in ("alembic", "uvicorn.error"):
        logging.getLogger(chatty).setLevel(logging.DEBUG if level == "debug" else logging.WARNING)
    # Nexus writes its own access lines, with the request id and without the query string.
    logging.getLogger("uvicorn.access").disabled = True


def get_logger(name: str) -> BoundLogger:
    """Return the logger of a module."""
    return cast("BoundLogger", _LateLogger(name))


def redact(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Replace the values of private fields."""
    for name in event:
        if name.lower() in PRIVATE or name.lower().endswith(PRIVATE_ENDS):
            event[name] = "[redacted]"
    return event


@contextmanager
def task_log_context(request_id: str | None, **extra: object) -> Iterator[None]:
    """Add these fields to every log line of this thread or task inside the block."""
    fields = {
        name: str(value) for name, value in {"request_id": request_id, **extra}.items() if value is not None
    }
    with _structlog().contextvars.bound_contextvars(**fields):
        yield


def place_of(error: BaseException) -> str:
    """Return where in the code an error was raised, for logs that must not hold its message."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{PurePath(frame.filename).name}:{frame.lineno}"


class _LateLogger:
    """Gets structlog's logger of this name when something is logged."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, method: str) -> Any:
        return getattr(_structlog().stdlib.get_logger(self._name), method)

    def isEnabledFor(self, level: int) -> bool:  # noqa: N802 as in the standard library
        """Whether lines of this level are logged. To find out by logging one takes a twentieth of a short request."""
        return logging.getLogger(self._name).isEnabledFor(level)


class _Formatter(logging.Formatter):
    """Formats lines with structlog, no matter which library logged them."""

    def __init__(self, *, json: bool, colours: bool) -> None:
        super().__init__()
        self._json, self._colours = json, colours

    def format(self, record: logging.LogRecord) -> str:
        return self._structured.format(record)

    @cached_property
    def _structured(self) -> logging.Formatter:
        structlog = _structlog()
        formatter = structlog.stdlib.ProcessorFormatter
        finish: list[Processor] = [formatter.remove_processors_meta]
        if self._json:
            finish += [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
        else:
            # Plain tracebacks: the pretty ones show local variables, and with them whatever a request carries.
            plain = structlog.dev.plain_traceback
            finish.append(structlog.dev.ConsoleRenderer(colors=self._colours, exception_formatter=plain))
        made: logging.Formatter = formatter(foreign_pre_chain=_shared(structlog), processors=finish)
        return made


def _structlog() -> Any:
    """Import structlog, and configure it if `configure` was called."""
    import structlog

    if _is_due.is_set():
        structlog.configure(
            processors=[
                structlog.stdlib.filter_by_level,
                *_shared(structlog),
                structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
            ],
            wrapper_class=structlog.stdlib.BoundLogger,
            logger_factory=structlog.stdlib.LoggerFactory(),
            cache_logger_on_first_use=False,
        )
        _is_due.clear()
    return structlog


def _shared(structlog: Any) -> list[Processor]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        redact,
    ]
