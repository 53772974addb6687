"""A process that gets the signal SIGNAL_AT_START before it listens.

NEXUS_PLUGINS=tests.kit.plugins.signalled_at_start
"""

from __future__ import annotations

import os
import signal

from nexus.cli.startup import Opening

SIGNAL_AT_START = "SIGNAL_AT_START"

_start = Opening.start


def start(self: Opening) -> None:
    _start(self)
    signal.raise_signal(int(os.environ[SIGNAL_AT_START]))


if SIGNAL_AT_START in os.environ:  # tests import this too, for the name
    Opening.start = start  # type: ignore[method-assign]
