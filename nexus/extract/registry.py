"""Extractors of installed packages: entry points of the group `nexus.extractors`, each named after its kind.

Those that come with Nexus are found the same way as everybody else's.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points

from nexus.extract import AVAILABLE_EXTRACTORS, Extraction, Extractor, Source
from nexus.states.media import Kind

GROUP = "nexus.extractors"
OWN = "nexus"


class BadExtractor(ImportError):
    """An installed extractor can't be used. Its text says which, and why."""


@dataclass(frozen=True)
class Installed:
    """An extractor and where it comes from."""

    extract: Extractor
    #: As `module:function`.
    place: str
    #: The package and its version.
    package: str

    def __call__(self, source: Source) -> Extraction:
        return self.extract(source)


def load_installed() -> None:
    """Register all of them. What Nexus brings comes first: a package that somebody installed on purpose replaces it."""
    for entry in sorted(entry_points(group=GROUP), key=_turn):
        AVAILABLE_EXTRACTORS[_kind(entry)] = _load(entry)


def origin(extractor: Extractor) -> str:
    """Who reads with it, and in which version: kept beside the text, so that an older one can be read anew."""
    return extractor.package if isinstance(extractor, Installed) else place(extractor)


def place(extractor: Extractor) -> str:
    if isinstance(extractor, Installed):
        return extractor.place
    name = getattr(extractor, "__qualname__", type(extractor).__qualname__)
    return f"{extractor.__module__}:{name}"


def _turn(entry: EntryPoint) -> tuple[bool, str, str]:
    package = _package(entry)
    return not package.startswith(f"{OWN} "), package, entry.name


def _package(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else entry.value


def _kind(entry: EntryPoint) -> Kind:
    try:
        return Kind(entry.name)
    except ValueError as error:
        kinds = ", ".join(Kind)
        raise BadExtractor(
            f"{_package(entry)} has an extractor for {entry.name}; kinds are {kinds}"
        ) from error


def _load(entry: EntryPoint) -> Installed:
    try:
        return Installed(entry.load(), entry.value, _package(entry))
    except (ImportError, AttributeError) as error:
        raise BadExtractor(f"{entry.value} of {_package(entry)}: {error}") from error
