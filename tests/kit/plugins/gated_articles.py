"""The built-in extractor of articles, behind a gate: NEXUS_PLUGINS=tests.kit.plugins.gated_articles.

A page below /gated/ is read as soon as the gate is open, any other at once. Starts and the gate are those of
tests/kit/plugins/extract_by_url.py.
"""

from __future__ import annotations

import os
from pathlib import Path

from nexus.extract import AVAILABLE_EXTRACTORS, Extraction, Source
from nexus.extract.builtin import web_article
from nexus.states.media import Kind
from tests.kit.plugins.extract_by_url import FOLDER, _gated, _note


def extract(source: Source) -> Extraction:
    folder = Path(os.environ[FOLDER])
    _note(folder / "started", f"{source.media_id} {source.attempt} {os.getpid()}\n")
    if "/gated/" in (source.url or ""):
        _gated(source.attempt, folder)
    return web_article(source)


AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = extract
