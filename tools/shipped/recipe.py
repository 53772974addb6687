"""The README's "For a team": its own lines, with hosts, folders and secrets of this machine filled in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_SECTION = re.compile(r"^## For a team\n(.*?)^## ", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"(?:^ {4}.*\n)+", re.MULTILINE)
#: What only an example holds. Nothing of it may be left when the recipe is run.
_EXAMPLE = re.compile(r"…|\S*\.internal\b|\S*example\.com|/opt/\S*|\b0\.0\.0\.0\b")


class Drifted(Exception):
    """The README and this gate no longer mean the same. The text says where."""


@dataclass(frozen=True)
class Recipe:
    #: The lines that build and install.
    install: str
    #: The lines that export settings.
    settings: str
    #: The commands of Nexus, in their order.
    commands: tuple[str, ...]

    def command(self, beginning: str) -> str:
        """The one command that begins so. Raises Drifted."""
        found = [line for line in self.commands if line.startswith(beginning)]
        if len(found) != 1:
            raise Drifted(f'"For a team" has {len(found)} commands that begin with: {beginning}')
        return found[0]


def read(readme: Path) -> Recipe:
    section = _SECTION.search(readme.read_text())
    blocks = _BLOCK.findall(section[1]) if section else []
    if len(blocks) != 2:
        raise Drifted('"For a team" needs two blocks of commands: to install Nexus, and to run it.')
    install, run = ([_without_comment(line) for line in block.splitlines()] for block in blocks)
    settings = [line for line in run if line.startswith("export ")]
    return Recipe("\n".join(install), "\n".join(settings), tuple(run[len(settings) :]))


def fill(text: str, values: Mapping[str, str]) -> str:
    """Each example replaced by its value. Raises Drifted for one that is not there, or that has none."""
    for example, value in values.items():
        if example not in text:
            raise Drifted(f'"For a team" no longer holds: {example}')
        text = text.replace(example, value)
    if left := _EXAMPLE.search(text):
        raise Drifted(f'"For a team" holds an example that this gate has no value for: {left[0]}')
    return text


def _without_comment(line: str) -> str:
    return re.sub(r"\s+#.*", "", line).strip()
