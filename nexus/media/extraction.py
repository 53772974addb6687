"""One attempt to get the text of an item, and what came of it, fit for a database."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import PurePath

from nexus import logging
from nexus.errors import ExtractionFailed, ExtractorNotImplemented, WorkError
from nexus.extract import Extraction, Source
from nexus.extract.registry import extractor_origin
from nexus.extract.sandbox import SandboxClosed
from nexus.media.texts import Found, Kept, storable
from nexus.media.workbench import Bench, Material, Tools, Unchanged

log = logging.get_logger(__name__)


@dataclass(frozen=True)
class Nothing:
    """Why there is no text, and the file that came instead, if one did."""

    error: WorkError
    kept: Kept | None = None


def attempt(tools: Tools, media: Material, number: int, bench: Bench | None = None) -> Found | Nothing:
    """Run the extractor of the item's kind.

    Raises Unchanged if the bench knows a document and the address has nothing new, and SandboxClosed if this process is
    ending.
    """
    bench = bench or Bench(tools, media, attempt=number)
    try:
        extractor = tools.extractors.get(media.kind)
        if extractor is None:
            raise ExtractorNotImplemented
        source = Source(
            media_id=media.id,
            kind=media.kind,
            url=media.canonical_url,
            provider=media.provider,
            provider_id=media.provider_id,
            attempt=number,
            bench=bench,
        )
        extraction = _titled(storable(extractor(source)), bench.kept)
    except (Unchanged, SandboxClosed):
        # Nothing is wrong with the item: there is nothing new, or the process is ending and leaves it to its lease.
        raise
    except WorkError as error:
        return Nothing(error, bench.kept)
    except Exception as error:
        # Its message may hold the source's text: only its name and its place are kept.
        where = logging.place_of(error)
        log.warning("extractor_crashed", media_id=str(media.id), reason=type(error).__name__, where=where)
        return Nothing(ExtractionFailed(), bench.kept)
    return Found(extraction, extractor_origin(extractor), bench.fetched, bench.kept, bench.sound)


def _titled(found: Extraction, kept: Kept | None) -> Extraction:
    """A fetched file without a title of its own is called by its file name."""
    if kept is None or found.title is not None:
        return found
    return replace(found, title=PurePath(kept.filename).stem)
