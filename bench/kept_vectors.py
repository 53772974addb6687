"""Vectors of texts that never change. Making them takes minutes, so they are kept in a file for the next time."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from bench.places import HERE
from nexus.embed import Embedder, make_embedder, missing_model
from nexus.settings import Settings


@dataclass
class Vectors:
    """What the present model makes of texts and questions. Without a model there are none."""

    embedder: Embedder | None
    file: Path = HERE / "vectors.sqlite3"
    asked: dict[str, bytes] = field(default_factory=dict)

    def of(self, texts: Sequence[str]) -> list[bytes]:
        assert self.embedder is not None
        self.file.parent.mkdir(exist_ok=True)
        with sqlite3.connect(self.file) as kept:
            kept.execute(
                "CREATE TABLE IF NOT EXISTS kept (model, digest, vector, PRIMARY KEY (model, digest))"
            )
            found = dict(
                kept.execute("SELECT digest, vector FROM kept WHERE model = ?", (self.embedder.model,))
            )
            unknown = {digest: text for text in texts if (digest := _digest(text)) not in found}
            if unknown:
                made = self.embedder.embed(list(unknown.values())).vectors
                found |= zip(unknown, made, strict=True)
                rows = [(self.embedder.model, digest, found[digest]) for digest in unknown]
                kept.executemany("INSERT OR REPLACE INTO kept VALUES (?, ?, ?)", rows)
        return [found[_digest(text)] for text in texts]

    def of_question(self, text: str) -> bytes:
        assert self.embedder is not None
        if text not in self.asked:
            self.asked[text] = self.embedder.embed_query(text)
        return self.asked[text]


def present_vectors() -> Vectors:
    """Vectors of the model that is installed. If there is none, say so."""
    embedder = make_embedder(Settings())
    missing = missing_model(embedder)
    if missing is not None:
        print(f"Only words are scored. {missing.why}")
    return Vectors(None if missing else embedder)


def _digest(text: str) -> bytes:
    return sha256(text.encode()).digest()
