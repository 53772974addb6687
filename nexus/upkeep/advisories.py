"""Which versions of packages have known flaws: `advisories.toml`, which needs no network."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

LISTED = Path(__file__).with_name("advisories.toml")


@dataclass(frozen=True)
class Advisory:
    id: str
    package: str
    affected: SpecifierSet
    about: str
    #: Where somebody has read it.
    source: str

    def hits(self, package: str, version: str) -> bool:
        same = canonicalize_name(package) == canonicalize_name(self.package)
        return same and self.affected.contains(Version(version), prereleases=True)


def read_advisories(text: str) -> tuple[date, list[Advisory]]:
    """Return the day the list was last gone through, and its entries."""
    given: dict[str, Any] = tomllib.loads(text)
    listed = [
        Advisory(one["id"], one["package"], SpecifierSet(one["affected"]), one["about"], one["source"])
        for one in given["advisory"]
    ]
    return given["checked"], listed


def vulnerable(versions: Iterable[tuple[str, str]], listed: Iterable[Advisory]) -> list[str]:
    """Return a line for each package and version that an advisory names."""
    known = list(listed)
    return [
        f"{name} {version}: {advisory.id} ({advisory.affected}): {advisory.about}"
        for name, version in sorted(versions)
        for advisory in known
        if advisory.hits(name, version)
    ]


def installed() -> set[tuple[str, str]]:
    """Return every package of this Python with its version. One that names no version can't be compared."""
    found = {(str(one.name), str(one.version)) for one in metadata.distributions() if one.name}
    return {(name, version) for name, version in found if _is_version(version)}


def _is_version(version: str) -> bool:
    try:
        Version(version)
    except InvalidVersion:
        return False
    return True
