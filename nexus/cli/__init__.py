"""The terminal's door."""

from nexus.cli.commands import app as _app


def main() -> None:
    _app()
