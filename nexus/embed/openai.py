"""A model behind any server that speaks OpenAI's embeddings API.

Vectors are checked and scaled to a length of one, which some servers leave to their callers.
"""

from __future__ import annotations

import base64
import binascii
import math
import sys
import time
from array import array
from collections.abc import Callable, Sequence
from operator import mul

import msgspec

from nexus.embed import Embedded, MissingModel, tell_nobody
from nexus.errors import (
    EmbeddingFailed,
    EmbeddingKeyRefused,
    EmbeddingNoCredit,
    EmbeddingRateLimited,
    EmbeddingRefused,
    EmbeddingSlow,
    EmbeddingUnreachable,
    EmbeddingUnusable,
)
from nexus.inference.server import ModelServer, ServerErrors

#: How many texts a request carries: few enough that a server without a graphics card answers in time.
TEXTS_PER_REQUEST = 32
#: Most models behind such an API read this much. One that reads more loses nothing, because chunks are shorter.
MOST_TOKENS = 512
CHARACTERS_PER_TOKEN = 4
#: Many times the vectors of one request.
MOST_BYTES = 32 * 1024 * 1024
#: Nobody waits longer than this for a search.
QUERY_SECONDS = 10.0
NOT_A_MODEL = "No embedding model answers at its address. Check NEXUS_EMBED_BASE_URL: most end in /v1."


class _Vector(msgspec.Struct):
    index: int
    #: Numbers, or little-endian float32 in base64.
    embedding: list[float] | str


class _TokenUsage(msgspec.Struct):
    total_tokens: int = 0


class _Vectors(msgspec.Struct):
    """The parts of a server's answer that are used here."""

    data: list[_Vector]
    usage: _TokenUsage | None = None


ERRORS = ServerErrors(
    slow=EmbeddingSlow,
    unreachable=EmbeddingUnreachable,
    rate_limited=EmbeddingRateLimited,
    key_refused=EmbeddingKeyRefused,
    no_credit=EmbeddingNoCredit,
    endless=lambda: EmbeddingUnusable("The embedding model's answer does not end. Set another model."),
    refused=lambda _: EmbeddingRefused(),
)


class OpenAiModel:
    """A process has one, shared by its threads."""

    most_tokens = MOST_TOKENS
    missing: MissingModel | None = None

    def __init__(
        self,
        base_url: str,
        api_key: str,
        model: str,
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.model = model
        self._server = ModelServer(base_url, "embeddings", api_key, MOST_BYTES, ERRORS, clock)
        self._seconds = seconds
        self._dimension: int | None = None

    @property
    def dimension(self) -> int:
        return self._dimension or len(self.embed_query("x")) // 4

    def embed(self, texts: Sequence[str], progress: Callable[[int], None] = tell_nobody) -> Embedded:
        vectors: list[bytes] = []
        tokens = 0
        for start in range(0, len(texts), TEXTS_PER_REQUEST):
            try:
                found = self._ask(texts[start : start + TEXTS_PER_REQUEST], self._seconds)
            except EmbeddingFailed as error:
                error.tokens_used = tokens
                raise
            vectors += found.vectors
            tokens += found.tokens
            progress(len(vectors))
        return Embedded(vectors, tokens)

    def embed_query(self, text: str) -> bytes:
        return self._ask((text,), min(self._seconds, QUERY_SECONDS)).vectors[0]

    def find_flaw(self) -> MissingModel | None:
        return None

    def close(self) -> None:
        """Nothing is open between two requests."""

    def _ask(self, texts: Sequence[str], seconds: float) -> Embedded:
        sent = [_sendable(text) for text in texts]
        asked = {"model": self.model, "input": sent, "encoding_format": "base64"}
        answer = self._server.post(seconds, json=asked)
        try:
            found = msgspec.json.decode(answer, type=_Vectors)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise EmbeddingUnusable(NOT_A_MODEL) from None
        if sorted(one.index for one in found.data) != list(range(len(sent))):
            raise EmbeddingUnusable(
                f"The embedding model was asked for {len(sent)} vectors and sent others. Set another model."
            )
        vectors = [_unit(one.embedding) for one in sorted(found.data, key=lambda one: one.index)]
        self._require_dimension(vectors)
        tokens = found.usage.total_tokens if found.usage else 0
        return Embedded(vectors, tokens if tokens > 0 else sum(map(len, sent)) // CHARACTERS_PER_TOKEN + 1)

    def _require_dimension(self, vectors: list[bytes]) -> None:
        sizes = {len(vector) // 4 for vector in vectors}
        known = self._dimension or min(sizes)
        if sizes != {known}:
            other = (sizes - {known}).pop()
            raise EmbeddingUnusable(
                f"The embedding model's vectors have {other} numbers instead of {known}. If the server has another "
                "model now, say its name in NEXUS_EMBED_MODEL and restart Nexus."
            )
        self._dimension = known


def _sendable(text: str) -> str:
    """Cut a text, and replace what can't be sent: halves of surrogate pairs, and an empty text, which servers
    refuse."""
    cut = text[: MOST_TOKENS * CHARACTERS_PER_TOKEN].encode("utf-8", "replace").decode()
    return cut if cut.strip() else "-"


def _unit(numbers: list[float] | str) -> bytes:
    """Raises EmbeddingUnusable for anything but a vector."""
    try:
        found = array("f", base64.b64decode(numbers, validate=True) if isinstance(numbers, str) else numbers)
    except (binascii.Error, ValueError, OverflowError):
        raise EmbeddingUnusable(NOT_A_MODEL) from None
    if isinstance(numbers, str) and sys.byteorder == "big":
        found.byteswap()
    length = math.sqrt(sum(map(mul, found, found)))
    if not 0 < length < math.inf:
        raise EmbeddingUnusable(
            "The embedding model sent a vector that is not made of numbers. Set another model."
        )
    unit = array("f", [number / length for number in found])
    if sys.byteorder == "big":
        unit.byteswap()
    return unit.tobytes()
