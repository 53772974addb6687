"""The terminal's door: parse, call ingest, answer."""

from nexus.cli.commands import app as _app


def main() -> None:
    _app(prog_name="nexus")
