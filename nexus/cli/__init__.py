"""The command line: parse, call one verb, answer."""

import os

from nexus.cli import garbage


def main() -> None:
    os.umask(0o077)  # only the owner may read what Nexus writes
    # Looking for plugins of pydantic among all installed packages takes a thirtieth of a start; Nexus has none.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")
    with garbage.uncollected():
        from nexus.cli.commands import app  # noqa: PLC0415 importing it is most of a start

        app(prog_name="nexus")
