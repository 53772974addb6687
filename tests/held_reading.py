"""The extractor of articles that Nexus brings, with a gate before it: NEXUS_PLUGINS=tests.held_reading.

A page below /gated/ is read as soon as the gate is open, any other at once. Starts and the gate are those of
tests/plugins.py.
"""

from __future__ import annotations

import os
from pathlib import Path

from nexus.extract import AVAILABLE_EXTRACTORS, Extraction, Source
from nexus.extract.builtin import web_article
from nexus.states.media import Kind
from tests.plugins import FOLDER, _gated, _note


def extract(source: Source) -> Extraction:
    folder = Path(os.environ[FOLDER])
    _note(folder / "started", f"{source.media_id} {source.attempt} {os.getpid()}\n")
    if "/gated/" in (source.url or ""):
        _gated(source.attempt, folder)
    return web_article(source)


AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = extract
