"""One attempt to get a media's text: its source, its workbench, and what came of it, fit for a database."""

from __future__ import annotations

import traceback
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any, TypeVar

from nexus import logging
from nexus.db.tables import UNSTORABLE
from nexus.errors import EmptyContent, ExtractionFailed, ExtractorNotImplemented, WorkError
from nexus.extract import Extraction, Extractor, Facts, Fragment, Heading, Source
from nexus.extract.registry import extractor_origin
from nexus.extract.sandbox import SandboxClosed
from nexus.media.documents import Kept, Origin
from nexus.media.workbench import Bench, Material, Tools, Unchanged
from nexus.states.media import Kind

log = logging.get(__name__)
T = TypeVar("T", Facts, Fragment, Heading)


@dataclass(frozen=True)
class Found:
    """A text, and where it comes from."""

    extraction: Extraction
    origin: Origin


@dataclass(frozen=True)
class Nothing:
    """Why there is none, and the file that came instead of it, if one did."""

    error: WorkError
    kept: Kept | None = None


def attempt(tools: Tools, media: Material, number: int, bench: Bench | None = None) -> Found | Nothing:
    """Run the extractor of its kind. Raises Unchanged where the bench knows a document and its address has nothing
    new, and SandboxClosed where this process is ending."""
    bench = bench or Bench(tools, media, attempt=number)
    try:
        extractor = _extractor(tools, media.kind)
        extraction = storable(extractor(_source(media, number, bench)))
    except (Unchanged, SandboxClosed):
        # Nothing is wrong with the media: there is nothing new, or the process is ending and leaves it to its lease.
        raise
    except WorkError as error:
        return Nothing(error, bench.kept)
    except Exception as error:
        # Its message may hold the source's text: only its name and its place are kept.
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{PurePath(place.filename).name}:{place.lineno}"
        log.warning("extractor_crashed", media_id=str(media.id), reason=type(error).__name__, where=where)
        return Nothing(ExtractionFailed(), bench.kept)
    return Found(extraction, bench.origin(extractor_origin(extractor)))


def _extractor(tools: Tools, kind: Kind) -> Extractor:
    extractor = tools.extractors.get(kind)
    if extractor is None:
        raise ExtractorNotImplemented
    return extractor


def _source(media: Material, number: int, bench: Bench) -> Source:
    return Source(
        media_id=media.id,
        kind=media.kind,
        url=media.canonical_url,
        provider=media.provider,
        provider_id=media.provider_id,
        attempt=number,
        bench=bench,
    )


def storable(found: Extraction) -> Extraction:
    """Without what no database can hold. Raises EmptyContent where no text is left."""
    fragments = tuple(map(_storable, found.fragments))
    if not any(fragment.text.strip() for fragment in fragments):
        raise EmptyContent
    return Extraction(
        title=None if found.title is None else UNSTORABLE.sub("", found.title).strip() or None,
        fragments=fragments,
        facts=_storable(found.facts),
        outline=tuple(map(_storable, found.outline)),
        assets=found.assets,
    )


def _storable(part: T) -> T:
    """The same with every text of it fit for a database; what is fit already is not copied."""
    texts = {name: value for name, value in vars(part).items() if isinstance(value, str)}
    mended: dict[str, Any] = {
        name: UNSTORABLE.sub("", value) for name, value in texts.items() if not _is_fit(value)
    }
    return replace(part, **mended) if mended else part


def _is_fit(text: str) -> bool:
    """To look for halves of characters takes many times longer than to write the text out."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text
