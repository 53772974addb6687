"""The extractors that come with Nexus: what each fetches or opens, and which reader parses it."""

from __future__ import annotations

from nexus.extract import Extraction, Source

ARTICLE = "nexus.extract.article:read_article"
EPUB = "nexus.extract.epub:read_epub"
PDF = "nexus.extract.pdf:read_pdf"
TEXT = "nexus.extract.text:read_text"

#: What becomes the item's file if its address answers with it, and what reads it.
FILE_READERS = {"application/pdf": PDF, "application/epub+zip": EPUB}
PLAIN_TYPES = frozenset({"text/plain", "text/markdown"})


def web_article(source: Source) -> Extraction:
    """Read a page. A PDF or EPUB that the address answers with becomes the item's file, and its text the item's."""
    fetched = source.bench.fetch(source.url or "")
    reader = FILE_READERS.get(fetched.content_type)
    if reader is not None:
        source.bench.keep(fetched)
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
