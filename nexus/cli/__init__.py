"""The terminal's door: parse, call ingest, answer."""

import os

from nexus.cli.commands import app as _app


def main() -> None:
    os.umask(0o077)  # what Nexus writes is its owner's alone
    _app(prog_name="nexus")
