"""The process that embeds texts, and its answers."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from nexus.embed.child import ANSWER, DONE, NOT_FINITE, ModelOrder
from nexus.errors import (
    EmbeddingCrashed,
    EmbeddingFailed,
    EmbeddingMemory,
    EmbeddingSlow,
    EmbeddingStopped,
    EmbeddingUnusable,
)
from nexus.inference.host import (
    ClosedProcess,
    FullProcess,
    HostedModel,
    LostProcess,
    ModelHost,
    SlowProcess,
    start_code,
)

START = start_code("nexus.embed.child:run_child")
#: A text has fewer characters than this per token; what is longer is cut before it is sent.
CHARACTERS_PER_TOKEN = 32


class TextVector(NamedTuple):
    vector: bytes
    tokens: int


class ModelProcess:
    """Safe to share between threads: they take turns."""

    def __init__(self, order: ModelOrder) -> None:
        self.order = order
        self.host = ModelHost(self._hosted)

    def vector(self, text: str) -> TextVector:
        """Embed one text. Raises UnfitModel, or EmbeddingFailed or a kind of it."""
        body = text[: self.order.most_tokens * CHARACTERS_PER_TOKEN].encode("utf-8", "replace")
        with _explained():
            answer = self.host.ask(body)
            outcome, tokens = ANSWER.unpack_from(answer)
        if outcome == DONE:
            return TextVector(answer[ANSWER.size :], tokens)
        raise EmbeddingUnusable if outcome == NOT_FINITE else EmbeddingFailed

    def dimension(self) -> int:
        """Ask the model. Raises as `vector` does."""
        return len(self.vector("x").vector) // 4

    def close(self) -> None:
        """End the process, and wake the thread that waits for it."""
        self.host.close()

    def _hosted(self) -> HostedModel:
        return HostedModel("embedding", START, self.order._asdict(), self.order.text_seconds)


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except SlowProcess:
        raise EmbeddingSlow from None
    except FullProcess:
        raise EmbeddingMemory from None
    except ClosedProcess:
        raise EmbeddingStopped from None
    except (LostProcess, struct.error):
        raise EmbeddingCrashed from None
