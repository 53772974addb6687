"""The terminal's door: parse, call one verb, answer."""

import gc
import os

from nexus.cli.commands import app as _app

#: New objects between two collections. A start makes hundreds of thousands that stay, and Python's own 700 would look
#: for garbage among them for a tenth of the time that it takes.
NEW_OBJECTS = 20_000


def main() -> None:
    os.umask(0o077)  # what Nexus writes is its owner's alone
    gc.set_threshold(NEW_OBJECTS)
    try:
        _app(prog_name="nexus")
    finally:
        gc.freeze()  # the process ends: a last look for garbage among all that is there would be in vain
