"""How the terminal speaks: colours and tables for a person, plain lines for a pipe, problems to standard error."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import typer
from rich.console import Console
from rich.text import Text

from nexus.states.media import Status

STYLES = {
    Status.PENDING: "yellow",
    Status.EXTRACTING: "cyan",
    Status.READY_FOR_READING: "green",
    Status.EMBEDDING: "cyan",
    Status.READY: "green",
    Status.FAILED: "red",
}


def out() -> Console:
    return Console(highlight=False)


def clean(text: str) -> str:
    """One line without control characters: a title comes from a stranger's page and must not steer the terminal."""
    return " ".join("".join(mark if mark.isprintable() else " " for mark in text).split())


def line(*cells: object) -> None:
    """One plain line, its cells parted by tabs."""
    typer.echo("\t".join(clean(str(cell)) for cell in cells))


def as_json(value: Any, *, indent: int | None = None) -> None:
    typer.echo(json.dumps(value, ensure_ascii=False, indent=indent))


def problem(sentence: str) -> None:
    _to_stderr("nexus:", "bold red", sentence)


def hint(sentence: str) -> None:
    _to_stderr("note:", "bold yellow", sentence)


def _to_stderr(mark: str, style: str, sentence: str) -> None:
    text = Text.assemble((mark, style), " ", clean(sentence))
    Console(stderr=True, highlight=False).print(text, soft_wrap=True)


def amount(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def joined(parts: Iterable[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    *most, last = list(parts) or [""]
    return f"{', '.join(most)} and {last}" if most else last
