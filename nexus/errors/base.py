"""What every error has: a code and a message."""

from __future__ import annotations

import inspect
from typing import ClassVar, TypeVar

E = TypeVar("E", bound="NexusError")


class NexusError(Exception):
    """Something went wrong."""

    code: ClassVar[str]

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or describe(type(self)))

    @property
    def message(self) -> str:
        return str(self.args[0])


def describe(error: type[NexusError]) -> str:
    """Return the default message of a class."""
    return " ".join((inspect.getdoc(error) or "").split())


def tree(root: type[E]) -> list[type[E]]:
    """Return every class below a root that defines a code, in the order of definition."""
    found = [root] if "code" in root.__dict__ else []
    for child in root.__subclasses__():
        found += tree(child)
    return found
