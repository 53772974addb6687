"""A processor of articles for tests of the pages: the path of the address says what becomes of it.

/held/NAME waits until a file NAME is in the folder NEXUS_TEST_GATES; /fails-once/… and /never/… fail;
/hostile/… has markup for a title; /long/… has many pages of text; everything else is read at once.
Videos have no processor.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from urllib.parse import urlsplit

from nexus.errors import ExtractionFailed, FetchFailed
from nexus.extract import AVAILABLE_EXTRACTORS, Extraction, Source
from nexus.states.media import Kind

HOSTILE = "<script>window.ran = 1</script><img src=x onerror='window.ran = 1'>&amp;"


class Gone(FetchFailed):
    """The source answered that it is gone. Check the address, then add it again."""

    transient = False


def extract(source: Source) -> Extraction:
    what, _, name = urlsplit(source.url or "").path.strip("/").partition("/")
    if what == "held":
        wait_for(Path(os.environ["NEXUS_TEST_GATES"], name))
    if what == "never":
        raise Gone
    if what == "fails-once" and source.attempt == 1:
        raise ExtractionFailed
    if what == "hostile":
        return Extraction(HOSTILE, (HOSTILE, "javascript:window.ran = 1"))
    title = (name or what).replace("-", " ").capitalize()
    last = 120 if what == "long" else 3
    return Extraction(title, tuple(f"Paragraph {number} of {title}." for number in range(1, last + 1)))


def wait_for(gate: Path) -> None:
    for _ in range(3000):
        if gate.exists():
            return
        threading.Event().wait(0.02)


AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = extract
