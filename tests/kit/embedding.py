"""A model that embeds by counting letters, can be made to fail, and remembers what it was asked."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import sqrt
from uuid import UUID

from sqlalchemy import bindparam, select

from nexus.app import App, kernel_for
from nexus.db.chunks import chunks, indexing, vectors
from nexus.db.rows import IdRow
from nexus.db.session import Query, Statement
from nexus.embed import Embedded, MissingModel
from nexus.media.lifecycle import EMBEDDING
from nexus.media.searching.indexing import INDEXING
from nexus.media.workbench import Tools
from nexus.queue import Work

LETTERS = "abcdefghijklmnopqrstuvwxyz "
_VECTORS = Statement(
    select(vectors).where(vectors.c.media_id == bindparam("media_id")).order_by(vectors.c.seq)
)
_CHUNKS = Statement(
    select(chunks)
    .where(chunks.c.media_id == bindparam("media_id"))
    .order_by(chunks.c.revision, chunks.c.position)
)
_REQUESTS = Query(
    select(indexing.c.id).where(indexing.c.media_id == bindparam("media_id")).order_by(indexing.c.id), IdRow
)

#: Where tests/kit/plugins/gated_model.py notes every call, in the folder of an installation.
ASKED = "embedded"


class CountingModel:
    """Its vectors are the shares of each letter, so texts with the same letters are near each other."""

    dimension = len(LETTERS)
    most_tokens = 256

    def __init__(self, model: str = "letters/1") -> None:
        self.model = model
        self.missing: MissingModel | None = None
        self.asked: list[str] = []
        #: Raised once each, before anything is embedded.
        self.errors: list[Exception] = []
        #: Called with the number of texts that are done, in the middle of each call.
        self.meanwhile: Callable[[], None] = lambda: None

    def embed(self, texts: Sequence[str], progress: Callable[[int], None] = lambda _: None) -> Embedded:
        if self.errors:
            raise self.errors.pop(0)
        self.asked += texts
        for done in range(len(texts)):
            progress(done)
        self.meanwhile()
        return Embedded([vector_of(text) for text in texts], sum(map(len, texts)))

    def embed_query(self, text: str) -> bytes:
        if self.errors:
            raise self.errors.pop(0)
        return vector_of(text)

    def find_flaw(self) -> MissingModel | None:
        return self.missing

    def close(self) -> None:
        """Nothing runs."""


def vector_of(text: str) -> bytes:
    counts = [text.lower().count(letter) for letter in LETTERS]
    length = sqrt(sum(count * count for count in counts)) or 1.0
    return struct.pack(f"<{len(counts)}f", *(count / length for count in counts))


def with_model(app: App, model: CountingModel) -> Tools:
    return replace(app.tools, embedder=model)


def embed_item(tools: Tools, media_id: UUID) -> str | None:
    """How it ended, or None if it was not due."""
    return kernel_for(tools).run(Work(EMBEDDING, media_id))


def index_item(tools: Tools, media_id: UUID) -> list[str | None]:
    """Do what was asked for; how each request ended."""
    with tools.sessions.read() as session:
        asked = [row.id for row in session.all(_REQUESTS, media_id=media_id)]
    return [kernel_for(tools).run(Work(INDEXING, each)) for each in asked]


def chunks_of(app: App, media_id: UUID) -> list[object]:
    with app.sessions.read() as session:
        return session.all(_CHUNKS, media_id=media_id)


def vectors_of(app: App, media_id: UUID) -> list[object]:
    with app.sessions.read() as session:
        return session.all(_VECTORS, media_id=media_id)
