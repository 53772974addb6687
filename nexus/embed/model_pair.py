"""A model in two processes: one embeds texts at low priority, the other answers queries and never waits for the first.

A process takes about 110 MB, and an idle one ends.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from nexus.embed import Embedded, tell_nobody
from nexus.embed.child import MODEL_FILE, ModelOrder
from nexus.embed.process import ModelProcess
from nexus.errors import EmbeddingStopped

MIB = 1024 * 1024
#: How much memory a process may take for its work, besides the model itself, of which libraries hold up to three
#: copies.
WORKING_BYTES = 384 * MIB
MODEL_COPIES = 3
LOW_PRIORITY = 10
#: How long a process waits for the next text. Somebody who has searched once is likely to search again.
TEXTS_IDLE, QUERIES_IDLE = 60.0, 600.0
#: Nobody waits longer than this for a search.
QUERY_SECONDS = 10.0
#: After how many texts progress is reported.
PROGRESS_STEP = 8


@dataclass(frozen=True)
class ModelFolder:
    """The files of a model, and how texts are given to it."""

    folder: Path
    #: The SHA-256 of each file.
    digests: Mapping[str, str]
    most_tokens: int
    text_prefix: str = ""
    query_prefix: str = ""

    def order(self, *, niceness: int, idle: float, seconds: float, working_bytes: int) -> ModelOrder:
        size = sum(path.stat().st_size for path in self.folder.glob(f"{MODEL_FILE}*"))
        memory = MODEL_COPIES * size + working_bytes
        return ModelOrder(
            str(self.folder), dict(self.digests), self.most_tokens, memory, niceness, idle, seconds
        )


class ModelPair:
    """Safe to share between threads. Both embedding methods raise UnfitModel, or EmbeddingFailed or a kind of it."""

    def __init__(self, files: ModelFolder, seconds: float, working_bytes: int = WORKING_BYTES) -> None:
        self._files = files
        short = min(seconds, QUERY_SECONDS)
        self.texts = ModelProcess(
            files.order(niceness=LOW_PRIORITY, idle=TEXTS_IDLE, seconds=seconds, working_bytes=working_bytes)
        )
        self.queries = ModelProcess(
            files.order(niceness=0, idle=QUERIES_IDLE, seconds=short, working_bytes=working_bytes)
        )

    def embed(self, texts: Sequence[str], progress: Callable[[int], None]) -> Embedded:
        vectors, tokens = [], 0
        for done, text in enumerate(texts, 1):
            found = self.texts.vector(self._files.text_prefix + text)
            vectors.append(found.vector)
            tokens += found.tokens
            if done % PROGRESS_STEP == 0 or done == len(texts):
                progress(done)
        return Embedded(vectors, tokens)

    def embed_query(self, text: str) -> bytes:
        return self.queries.vector(self._files.query_prefix + text).vector

    def close(self) -> None:
        self.texts.close()
        self.queries.close()


class PairedModel(ABC):
    """A model on this machine. Its processes are set up for the first text."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._pair: ModelPair | None = None
        self._closed = False

    @abstractmethod
    def _usable(self) -> AbstractContextManager[ModelPair]:
        """Give the model. Raises an EmbeddingFailed that says why it can't be used, even if that turns out only during
        the call."""

    def embed(self, texts: Sequence[str], progress: Callable[[int], None] = tell_nobody) -> Embedded:
        with self._usable() as pair:
            return pair.embed(texts, progress)

    def embed_query(self, text: str) -> bytes:
        with self._usable() as pair:
            return pair.embed_query(text)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            pair, self._pair = self._pair, None
        if pair is not None:
            pair.close()

    def _require_open(self) -> None:
        if self._closed:
            raise EmbeddingStopped
