# ruff: noqa: PLC0415 a backend is imported when it is chosen: few commands embed anything
"""How text becomes vectors: numbers that are near each other when texts mean the same.

A vector is little-endian float32 of unit length, so that the product of two is their cosine. Vectors of two models
can't be compared: `model` says which one made them, and is stored with each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from nexus.settings import Settings  # the model's process has no use for it


class Embedded(NamedTuple):
    #: One for each text, in the order of the texts.
    vectors: list[bytes]
    #: What they took, for the quota.
    tokens: int


class MissingModel(NamedTuple):
    """Why no text can be embedded at the moment, for a person."""

    #: One sentence.
    why: str
    #: What to type to change that; None if there is nothing to type.
    command: str | None


def tell_nobody(_: int) -> None:
    """For callers who don't want to know how far it is."""


class Embedder(Protocol):
    """Safe to share between threads. Nothing is loaded or started before the first text.

    Every method that embeds raises EmbeddingFailed or a kind of it; it is transient if the same may succeed later.
    """

    @property
    def model(self) -> str:
        """Its name and version, stored with each vector; other vectors have another."""
        ...

    @property
    def dimension(self) -> int:
        """How many numbers a vector has. If only the model knows, the first look asks it, which may take a while and
        raise EmbeddingFailed. The length of a vector tells as well."""
        ...

    @property
    def most_tokens(self) -> int:
        """How much of a text is embedded; the rest is left out."""
        ...

    @property
    def missing(self) -> MissingModel | None:
        """What has to be installed first, or None. Cheap, and looked up each time: it may have been installed since."""
        ...

    def find_flaw(self) -> MissingModel | None:
        """Return why it can't be used, or None. Reads the files of a model whole; asks no server."""
        ...

    def embed(self, texts: Sequence[str], progress: Callable[[int], None] = tell_nobody) -> Embedded:
        """Embed texts for searching in them. Waits its turn, and leaves the processor to others.

        `progress` is called by the same thread with the number of texts done so far; what it raises ends the call.
        """
        ...

    def embed_query(self, text: str) -> bytes:
        """Embed what somebody looks for. Answers at once, however many texts are being embedded."""
        ...

    def close(self) -> None:
        """End its processes. Callers that wait for a vector get EmbeddingStopped."""
        ...


def make_embedder(settings: Settings) -> Embedder | None:
    """Return what the settings ask for, or None if texts are not to be embedded. Look at `missing` before using it."""
    match settings.embed:
        case "local":
            from nexus.embed.local import LocalModel

            return LocalModel(settings.embed_seconds)
        case "folder":
            from nexus.embed.folder import FolderModel

            return FolderModel(settings.embed_folder or Path(), settings.embed_seconds)
        case "openai":
            from nexus.embed.openai import OpenAiModel

            return OpenAiModel(
                settings.embed_base_url, settings.embed_api_key, settings.embed_model, settings.embed_seconds
            )
        case "off":
            return None


def missing_model(embedder: Embedder | None) -> MissingModel | None:
    """Say why texts can't be embedded at the moment, whatever the reason; None if they can."""
    if embedder is None:
        return MissingModel("Search by meaning is turned off: NEXUS_EMBED is off.", None)
    return embedder.missing
