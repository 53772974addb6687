"""Finds the extractors of installed packages: entry points of the group `nexus.extractors`, each named after its kind.

The extractors that come with Nexus are found the same way.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.metadata import Distribution, EntryPoint, entry_points

from nexus.extract import AVAILABLE_EXTRACTORS, Extraction, Extractor, Source
from nexus.states.media import Kind

GROUP = "nexus.extractors"
OWN = "nexus"


class BadExtractor(ImportError):
    """An installed extractor can't be used. The message says which one and why."""


@dataclass(frozen=True)
class InstalledExtractor:
    """An extractor and where it comes from."""

    extract: Extractor
    #: As `module:function`.
    place: str
    #: The package's name and version.
    package: str

    def __call__(self, source: Source) -> Extraction:
        return self.extract(source)


def load_installed() -> None:
    """Register them all, those of Nexus first: a package that somebody installed on purpose replaces them."""
    for entry in sorted(entry_points(group=GROUP), key=_turn):
        AVAILABLE_EXTRACTORS[_kind(entry)] = _load(entry)


def extractor_origin(extractor: Extractor) -> str:
    """Return the package and version of an extractor. It is kept with the text, so that outdated text can be found."""
    return extractor.package if isinstance(extractor, InstalledExtractor) else extractor_place(extractor)


def extractor_place(extractor: Extractor) -> str:
    """Return where an extractor is defined, as `module:function`."""
    if isinstance(extractor, InstalledExtractor):
        return extractor.place
    name = getattr(extractor, "__qualname__", type(extractor).__qualname__)
    return f"{extractor.__module__}:{name}"


def _turn(entry: EntryPoint) -> tuple[bool, str, str]:
    package = _package(entry)
    return not package.startswith(f"{OWN} "), package, entry.name


def _package(entry: EntryPoint) -> str:
    return entry.value if entry.dist is None else _described(entry.dist)


@cache
def _described(package: Distribution) -> str:
    """Remembered, because each look at a name or a version reads the whole description of the package."""
    return f"{package.name} {package.version}"


def _kind(entry: EntryPoint) -> Kind:
    try:
        return Kind(entry.name)
    except ValueError as error:
        kinds = ", ".join(Kind)
        raise BadExtractor(
            f"{_package(entry)} has an extractor for {entry.name}; kinds are {kinds}"
        ) from error


def _load(entry: EntryPoint) -> InstalledExtractor:
    try:
        return InstalledExtractor(entry.load(), entry.value, _package(entry))
    except (ImportError, AttributeError) as error:
        raise BadExtractor(f"{entry.value} of {_package(entry)}: {error}") from error
