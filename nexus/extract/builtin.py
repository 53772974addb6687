"""The extractors that come with Nexus: what to get, and which reader reads it."""

from __future__ import annotations

from nexus.extract import Extraction, Fetched, Source

ARTICLE = "nexus.extract.article:read"
EPUB = "nexus.extract.epub:read"
PDF = "nexus.extract.pdf:read"
TEXT = "nexus.extract.text:read"
#: What parser processes import before they are shut in.
READERS = tuple(reader.partition(":")[0] for reader in (ARTICLE, EPUB, PDF, TEXT))

PDF_TYPE = "application/pdf"
PLAIN_TYPES = frozenset({"text/plain", "text/markdown"})


def web_article(source: Source) -> Extraction:
    """A page. An address that answers with a PDF keeps it as its file, and has the PDF's text."""
    fetched = source.bench.fetch(source.url or "")
    if fetched.content_type == PDF_TYPE:
        source.bench.keep(fetched)
    return source.bench.read(_page_reader(fetched), fetched.body, fetched.hints())


def pdf(source: Source) -> Extraction:
    return _read_file(source, PDF)


def epub(source: Source) -> Extraction:
    return _read_file(source, EPUB)


def text(source: Source) -> Extraction:
    return _read_file(source, TEXT)


def _read_file(source: Source, reader: str) -> Extraction:
    with source.bench.file() as file:
        return source.bench.read(reader, file.stream, file.hints())


def _page_reader(fetched: Fetched) -> str:
    if fetched.content_type == PDF_TYPE:
        return PDF
    return TEXT if fetched.content_type in PLAIN_TYPES else ARTICLE
