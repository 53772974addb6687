"""A text that was found, and the rows that it becomes. Nothing here needs a database."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import unescape
from itertools import chain
from typing import Any, TypeVar
from uuid import UUID, uuid4, uuid5

from nexus import urls
from nexus.db.tables import UNSTORABLE
from nexus.errors import EmptyContent
from nexus.extract import Extraction, Facts, Fetched, Fragment, Heading, TimeSpan
from nexus.extract.safe_html import safe_extraction
from nexus.media.searching.chunking import Chunk, TextPiece, cut_chunks
from nexus.search.analysis import DEFAULT, stemmed_in
from nexus.states.media import Origin

T = TypeVar("T", Facts, Fragment, Heading)

#: How many pictures of a text are remembered; NEXUS_PICTURES_PER_TEXT may be lower.
MOST_PICTURES = 200
#: The first characters of a title are enough to sort by.
LONGEST_KEY = 80
LONGEST_EXCERPT = 200
#: In how much of how many fragments the first words of a text are looked for.
LONGEST_BEGINNING, MOST_BEGINNINGS = 20_000, 10
_NO_PROSE = re.compile(r"<(h[1-6]|figure|table|pre|math)\b[^<>]*>.*?(?:</\1>|\Z)", re.DOTALL)
_TAG = re.compile(r"<[^<>]*>")
_SOURCE = re.compile(r'<img\b[^<>]* src="(https?://[^"]*)"')

#: For each byte of UTF-8: a space, the beginning of a character of a script that has none between words, or neither.
_BYTES = bytes(
    32 if chr(byte).isspace() and byte < 0x80 else ord("d") if 0xE3 <= byte <= 0xE9 else ord("a")
    for byte in range(256)
)


@dataclass(frozen=True)
class Kept:
    """A file in the store from which a text was read."""

    #: The number that the text gets, reserved when the file was stored; 0 for the file of an upload.
    revision: int
    storage_path: str
    content_type: str
    size_bytes: int
    filename: str


@dataclass(frozen=True)
class Found:
    """A text, and where it comes from: the package that read it, what was fetched for it, and the file it kept."""

    extraction: Extraction
    extractor: str
    fetched: Fetched | None = None
    kept: Kept | None = None
    #: Where the sound is that it was heard in.
    sound: str | None = None


@dataclass(frozen=True)
class Cut:
    """What is known about a text before it is written: its number of words, and its chunks."""

    words: int
    chunks: list[Chunk]

    @classmethod
    def of(cls, extraction: Extraction) -> Cut:
        pieces = (TextPiece(place, one.text, one.html) for place, one in enumerate(extraction.fragments))
        words = sum(count_words(one.text) for one in extraction.fragments)
        return cls(words, cut_chunks(extraction.title, extraction.facts, pieces))

    def to_json(self) -> bytes:
        return json.dumps([self.words, self.chunks], default=str).encode()

    @classmethod
    def from_json(cls, data: bytes) -> Cut:
        words, chunks = json.loads(data)
        return cls(words, [_chunk_of(row) for row in chunks])


def _chunk_of(row: list[Any]) -> Chunk:
    found = Chunk(*row)
    return found._replace(id=UUID(str(found.id)))


@dataclass(frozen=True)
class Readable:
    """A text as the rows that it becomes, without its number, and the attempt that found it.

    Made before a transaction is open.
    """

    media_id: UUID
    attempt: int
    title: str | None
    fragments: list[dict[str, Any]]
    chunks: list[dict[str, Any]]
    revision: dict[str, Any]
    assets: list[dict[str, Any]]
    #: The pictures that are still to be fetched.
    pictures: list[dict[str, Any]]
    kept: Kept | None
    #: Other addresses of the item that were found with it.
    addresses: tuple[str, ...] = ()
    #: When the words of a transcript are spoken, by fragment.
    timings: list[dict[str, Any]] = field(default_factory=list)
    #: Where the sound is that it was heard in. Nobody needs it once the text is written.
    sound: str | None = None

    @classmethod
    def of(
        cls,
        media_id: UUID,
        attempt: int,
        found: Found,
        cut: Cut | None = None,
        owner: UUID | None = None,
        address: str | None = None,
    ) -> Readable:
        """Make the rows. The text is cut unless the caller has done so; a text with an owner is theirs alone.

        With the item's own address, other addresses of the same page are found.
        """
        text, fetched = found.extraction, found.fetched
        cut = cut or Cut.of(text)
        pieces = list(_fragment_rows(media_id, text.fragments))
        outline = json.dumps([[line.title, line.level, line.anchor] for line in text.outline])
        revision = {
            "media_id": media_id,
            "title": text.title,
            "title_key": title_key(text.title),
            "content_hash": _content_hash(found, outline, pieces),
            "origin": (Origin.EXTRACTED if owner is None else Origin.ENTERED).value,
            "made_by": owner,
            "private_to": owner,
            "extractor": found.extractor,
            "seen_by": found.extractor,
            "words": cut.words,
            "pieces": len(pieces),
            "characters": sum(len(piece["text"]) for piece in pieces),
            "outline": outline,
            "fetched_url": fetched and fetched.url,
            "etag": fetched and fetched.etag,
            "last_modified": fetched and fetched.last_modified,
            **vars(text.facts),
            "excerpt": text.facts.excerpt or _beginning(text),
        }
        assets = [{"media_id": media_id, **vars(asset)} for asset in text.assets]
        others = _other_addresses(address, found) if address else ()
        chunks = [{"media_id": media_id, **chunk._asdict()} for chunk in cut.chunks]
        return cls(
            media_id,
            attempt,
            text.title,
            pieces,
            chunks,
            revision,
            assets,
            _picture_rows(media_id, picture_sources(text)),
            found.kept,
            others,
            list(_timing_rows(media_id, text.fragments)),
            found.sound,
        )

    @property
    def reserved(self) -> int | None:
        """The number that was reserved for it, if one was."""
        return (self.kept and self.kept.revision) or None

    @property
    def is_all_text(self) -> bool:
        """Whether `text_rows` are all of it: English, without pictures, times, a file or another address."""
        rest = self.assets or self.pictures or self.kept or self.addresses or self.timings
        return not rest and stemmed_in(self.revision["language"]) == DEFAULT

    @property
    def size(self) -> int:
        """The characters of its text and html."""
        return sum(len(row["text"]) + len(row["html"] or "") for row in self.fragments)


def storable(found: Extraction) -> Extraction:
    """Remove what no database can hold and no browser may be shown. Raises EmptyContent if no text is left."""
    found = safe_extraction(found)
    fragments = tuple(map(_storable, found.fragments))
    if not any(fragment.text.strip() for fragment in fragments):
        raise EmptyContent
    return Extraction(
        title=None if found.title is None else UNSTORABLE.sub("", found.title).strip() or None,
        fragments=fragments,
        facts=_storable(found.facts),
        outline=tuple(map(_storable, found.outline)),
        assets=found.assets,
        canonical_url=found.canonical_url,
    )


def picture_sources(found: Extraction) -> list[str]:
    """Return the addresses of a text's pictures, each once, in their order: that above the text comes first."""
    lead = found.facts.lead_image or ""
    sources = dict.fromkeys([lead] if lead.startswith(("http://", "https://")) else [])
    for fragment in found.fragments:
        for source in _SOURCE.finditer(fragment.html or ""):
            sources[unescape(source[1])] = None
            if len(sources) == MOST_PICTURES:
                return list(sources)
    return list(sources)


def title_key(title: str | None) -> str:
    """Return what a title is sorted by: without accents, case, and the quotation marks that it begins with."""
    plain = unicodedata.normalize("NFKD", (title or "")[: 4 * LONGEST_KEY]).casefold()
    letters = "".join(char for char in plain if not unicodedata.combining(char))
    first = next((place for place, char in enumerate(letters) if char.isalnum()), 0)
    return UNSTORABLE.sub("", " ".join(letters[first:].split())[:LONGEST_KEY])


def _beginning(found: Extraction) -> str | None:
    """The first words of a text for a list, without a title that it begins with; of html, without headings, figures,
    tables and code, if there is more than that."""
    first = found.fragments[:MOST_BEGINNINGS]
    pieces = chain((_prose(one.html) if one.html else one.text for one in first), (one.text for one in first))
    text = next((" ".join(text[: 8 * LONGEST_EXCERPT].split()) for text in pieces if text.strip()), "")
    text = text.removeprefix(" ".join((found.title or "").split())).lstrip() or text
    if len(text) <= LONGEST_EXCERPT:
        return text or None
    cut = text[: LONGEST_EXCERPT - 1]
    return (cut.rpartition(" ")[0] or cut).rstrip(" ,;:.") + "…"


def _prose(html: str) -> str:
    return unescape(_TAG.sub("", _NO_PROSE.sub(" ", html[:LONGEST_BEGINNING])))


def count_words(text: str) -> int:
    """Count what stands between spaces; in scripts without them, one word for every two characters.

    Bytes are counted: 7 µs for 1,000 characters of English. A regular expression takes ten times as long.
    """
    shape = f" {text}".encode(errors="replace").translate(_BYTES)
    return shape.count(b" a") + (shape.count(b"d") + 1) // 2


def _other_addresses(own: str, found: Found) -> tuple[str, ...]:
    claims = (found.fetched.url if found.fetched else None, found.extraction.canonical_url)
    others = (urls.other_address(own, claim) for claim in claims)
    return tuple(sorted({other for other in others if other is not None}))


def _content_hash(found: Found, outline: str, pieces: Sequence[Mapping[str, Any]]) -> str:
    """Two texts have the same hash only if a reader sees no difference: title, facts, text, html, times, pictures,
    file."""
    text = found.extraction
    digest = hashlib.sha256()
    parts = (part for piece in pieces for part in (piece["text"], piece["html"]))
    facts = {**vars(text.facts)}
    source = facts.pop("source")
    for part in (text.title, *facts.values(), outline, *parts):
        data = b"" if part is None else part.encode(errors="surrogatepass")
        digest.update(b"%d:" % (-1 if part is None else len(data)))
        digest.update(data)
    for asset in sorted(text.assets, key=lambda asset: asset.name):
        picture = hashlib.sha256(asset.data).hexdigest()
        digest.update(f"{asset.name} {asset.content_type} {picture}".encode())
    if source is not None:  # only transcripts have one
        spans = [piece.times for piece in text.fragments]
        digest.update(json.dumps([source, spans]).encode())
    if found.kept is not None and found.kept.revision and found.fetched is not None:
        digest.update(hashlib.sha256(found.fetched.body).digest())
    return digest.hexdigest()


def _fragment_rows(media_id: UUID, pieces: tuple[Fragment, ...]) -> Iterator[dict[str, Any]]:
    """Ids are made from the text, with a number for texts that occur several times.

    Fragments without any text are left out, but the others keep their positions, because the outline refers to them.
    """
    seen: Counter[str] = Counter()
    for position, piece in enumerate(pieces):
        if piece.text.strip() or piece.html:
            seen[piece.text] += 1
            name = uuid5(media_id, f"{seen[piece.text]} {piece.text}")
            yield {
                "media_id": media_id,
                "position": position,
                "id": name,
                "text": piece.text,
                "html": piece.html,
            }


def _picture_rows(media_id: UUID, sources: list[str]) -> list[dict[str, Any]]:
    """Work that is due at the same time is done in the order of its ids: the first pictures come first."""
    ids = sorted(uuid4() for _ in sources)
    return [
        {"id": ids[place], "media_id": media_id, "place": place, "source": source}
        for place, source in enumerate(sources)
    ]


def _timing_rows(media_id: UUID, pieces: tuple[Fragment, ...]) -> Iterator[dict[str, Any]]:
    """Spans that lie outside of their text, or overlap an earlier one, are left out."""
    for position, piece in enumerate(pieces):
        spans: list[TimeSpan] = []
        for span in piece.times:
            after = spans[-1].end if spans else 0
            if after <= span.start < span.end <= len(piece.text) and span.starts_ms <= span.ends_ms:
                spans.append(span)
        if spans:
            yield {"media_id": media_id, "position": position, "spans": json.dumps(spans)}


def _storable(part: T) -> T:
    """Return the same part if all of its texts are storable, or else a mended copy."""
    texts = {name: value for name, value in vars(part).items() if isinstance(value, str)}
    mended: dict[str, Any] = {
        name: UNSTORABLE.sub("", value) for name, value in texts.items() if not _is_storable(value)
    }
    return replace(part, **mended) if mended else part


def _is_storable(text: str) -> bool:
    """Encoding a text is many times faster than searching it for halves of characters."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text
