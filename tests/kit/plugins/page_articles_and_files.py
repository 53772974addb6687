"""The articles of page_articles, and the readers of files that Nexus brings."""

from __future__ import annotations

from nexus.extract import AVAILABLE_EXTRACTORS
from nexus.extract.builtin import epub, pdf, text
from nexus.states.media import Kind
from tests.kit.plugins import page_articles  # noqa: F401 - registers its extractor

AVAILABLE_EXTRACTORS.update({Kind.PDF: pdf, Kind.EPUB: epub, Kind.TEXT: text})
