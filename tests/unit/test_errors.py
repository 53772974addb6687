"""The tree of errors that is drawn in the docs is the one in the code."""

from __future__ import annotations

from collections.abc import Iterator

from nexus import errors
from nexus.errors import (
    ApiError,
    FetchBlockedAddress,
    FetchHttp4xx,
    FetchInsecure,
    NexusError,
    WorkError,
    describe,
)


def drawn(error: type[NexusError], indent: str = "", branch: str = "") -> Iterator[tuple[str, str]]:
    """Each line up to the name, and what is said of the class."""
    yield f"{indent}{branch}{error.__name__}", facts(error)
    children = [child for child in error.__subclasses__() if child.__module__.startswith("nexus.")]
    below = indent + {"": "", "├── ": "│   ", "└── ": "    "}[branch]
    for child in children:
        yield from drawn(child, below, "└── " if child is children[-1] else "├── ")


def facts(error: type[NexusError]) -> str:
    if "code" not in vars(error) and not hasattr(error, "code"):
        return ""
    if issubclass(error, ApiError):
        return f"{error.code} {error.status}"
    assert issubclass(error, WorkError)
    flags = [
        word for word, told in (("transient", error.transient), ("not counted", not error.counted)) if told
    ]
    return f"{error.code} {', '.join(flags)}".strip()


def test_tree_in_the_docstring_is_the_tree_of_classes() -> None:
    documented = [line[4:] for line in (errors.__doc__ or "").splitlines() if line.startswith("    ")]
    expected = list(drawn(NexusError))
    roots = {"NexusError", "├── ApiError", "└── WorkError"}
    for line, (name, said) in zip(documented, expected, strict=True):
        assert f"{line} ".startswith(f"{name} ")
        if name not in roots:
            assert " ".join(line.removeprefix(name).split()) == said


def test_what_is_said_of_all_failures_with_a_code_is_true_of_every_cause() -> None:
    """The sentence heads a list of failures that have only their code in common."""
    causes = {FetchHttp4xx: "refused", FetchBlockedAddress: "private network", FetchInsecure: "certificate"}
    assert [error for error, cause in causes.items() if cause in describe(error)] == []


def test_every_error_says_what_happened_and_is_exported() -> None:
    for name, _ in drawn(NexusError):
        error = getattr(errors, name.split()[-1])
        assert describe(error).endswith(".")
