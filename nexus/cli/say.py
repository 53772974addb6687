# ruff: noqa: PLC0415
"""Writes to the terminal: colours and tables for a person, plain lines for a pipe, problems to standard error.

rich is slow to import, so only what a person reads is written with it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TextIO

import typer

from nexus.states.media import MediaStatus

if TYPE_CHECKING:
    from rich.console import Console

#: Variables that make rich treat anything as a terminal.
TERMINALS_BY_DECREE = {"FORCE_COLOR", "TTY_COMPATIBLE"}

STYLES = {
    MediaStatus.PENDING: "yellow",
    MediaStatus.EXTRACTING: "cyan",
    MediaStatus.READY_FOR_READING: "green",
    MediaStatus.EMBEDDING: "cyan",
    MediaStatus.READY: "green",
    MediaStatus.FAILED: "red",
}


def out() -> Console:
    from rich.console import Console

    return Console(highlight=False)


def is_to_a_person() -> bool:
    """Whether standard output is a terminal, as rich sees it."""
    return _may_be_terminal(sys.stdout) and out().is_terminal


def _may_be_terminal(stream: TextIO) -> bool:
    return stream.isatty() or not TERMINALS_BY_DECREE.isdisjoint(os.environ)


def printable(text: str) -> str:
    """Return one line without control characters: a stranger's title must not control the terminal."""
    return " ".join("".join(mark if mark.isprintable() else " " for mark in text).split())


def line(*cells: object) -> None:
    """Print one plain line of cells, separated by tabs."""
    typer.echo("\t".join(printable(str(cell)) for cell in cells))


def as_json(value: Any, *, indent: int | None = None) -> None:
    typer.echo(json.dumps(value, ensure_ascii=False, indent=indent))


def problem(sentence: str) -> None:
    _to_stderr("nexus:", "bold red", sentence)


def hint(sentence: str) -> None:
    _to_stderr("note:", "bold yellow", sentence)


def _to_stderr(mark: str, style: str, sentence: str) -> None:
    if not _may_be_terminal(sys.stderr):
        typer.echo(f"{mark} {printable(sentence)}", err=True)
        return
    from rich.console import Console
    from rich.text import Text

    text = Text.assemble((mark, style), " ", printable(sentence))
    Console(stderr=True, highlight=False).print(text, soft_wrap=True)


def amount(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def joined(parts: Iterable[str]) -> str:
    """Return `a`, `a and b`, or `a, b and c`."""
    *most, last = list(parts) or [""]
    return f"{', '.join(most)} and {last}" if most else last
