"""The extractors that come with Nexus: what each fetches or opens, and which reader parses it."""

from __future__ import annotations

from nexus.extract import Extraction, Source

ARTICLE = "nexus.extract.article:read_article"
EPUB = "nexus.extract.epub:read_epub"
PDF = "nexus.extract.pdf:read_pdf"
TEXT = "nexus.extract.text:read_text"
#: The modules that parser processes import before the first document.
READERS = tuple(reader.partition(":")[0] for reader in (ARTICLE, EPUB, PDF, TEXT))

PDF_TYPE = "application/pdf"
PLAIN_TYPES = frozenset({"text/plain", "text/markdown"})


def web_article(source: Source) -> Extraction:
    """Read a page. If the address answers with a PDF, that becomes the media's file and its text the media's text."""
    fetched = source.bench.fetch(source.url or "")
    if fetched.content_type == PDF_TYPE:
        source.bench.keep(fetched)
        reader = PDF
    else:
        reader = TEXT if fetched.content_type in PLAIN_TYPES else ARTICLE
    return source.bench.read(reader, fetched.body, fetched.hints())


def pdf(source: Source) -> Extraction:
    return _read_file(source, PDF)


def epub(source: Source) -> Extraction:
    return _read_file(source, EPUB)


def text(source: Source) -> Extraction:
    return _read_file(source, TEXT)


def _read_file(source: Source, reader: str) -> Extraction:
    with source.bench.file() as file:
        return source.bench.read(reader, file.stream, file.hints())
