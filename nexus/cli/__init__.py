"""The command line: parse, call one verb, answer."""

import gc
import os

from nexus.cli.commands import app as _app

#: How many new objects start a garbage collection. A start makes hundreds of thousands of objects that stay: with
#: Python's own 700, looking for garbage among them takes a tenth of the time.
NEW_OBJECTS = 20_000


def main() -> None:
    os.umask(0o077)  # only the owner may read what Nexus writes
    gc.set_threshold(NEW_OBJECTS)
    # Looking for plugins of pydantic among all installed packages takes a thirtieth of a start; Nexus has none.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")
    try:
        _app(prog_name="nexus")
    finally:
        gc.freeze()  # the process ends: there is no need to look for garbage once more
