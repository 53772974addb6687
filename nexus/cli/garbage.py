"""When Python looks for garbage. A start makes hundreds of thousands of objects that stay: looking through them again
and again takes a tenth of its time, and finds nothing.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

#: How many new objects start a collection; Python's own 700 are too few for a server.
NEW_OBJECTS = 20_000


@contextmanager
def uncollected() -> Iterator[None]:
    """Collect no garbage at a start, nor once more when the process ends. Reference counts free nearly everything."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()


def collect_from_now_on() -> None:
    """For processes that go on after a start without: collect garbage among what is made from now on."""
    if not gc.isenabled():
        gc.freeze()
        gc.set_threshold(NEW_OBJECTS)
        gc.enable()
