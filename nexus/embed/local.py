"""The model that `nexus models install` makes: all-MiniLM-L6-v2, English, with 8-bit numbers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from nexus.command_line import own_name
from nexus.embed import Embedded, MissingModel, tell_nobody
from nexus.embed.installed import DIMENSION, MODEL, MOST_TOKENS, InstalledModel, find_installed
from nexus.embed.model_pair import ModelFolder, ModelPair
from nexus.errors import EmbeddingNoModel, EmbeddingStopped
from nexus.model_process.host import UnfitModel


class LocalModel:
    """Notices when the model is installed or made again, without a restart."""

    model = MODEL
    dimension = DIMENSION
    most_tokens = MOST_TOKENS

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._opened: tuple[InstalledModel, ModelPair] | None = None
        #: What was found wrong with an installed model.
        self._unfit: tuple[InstalledModel, str] | None = None
        self._closed = False

    @property
    def missing(self) -> MissingModel | None:
        found, command = find_installed(), f"{own_name()} models install"
        if found is None:
            return MissingModel("The model for search by meaning is not installed.", command)
        if self._unfit is not None and self._unfit[0] == found:
            return MissingModel(f"The model for search by meaning {self._unfit[1]}.", command)
        return None

    def embed(self, texts: Sequence[str], progress: Callable[[int], None] = tell_nobody) -> Embedded:
        with self._model() as pair:
            return pair.embed(texts, progress)

    def embed_query(self, text: str) -> bytes:
        with self._model() as pair:
            return pair.embed_query(text)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            opened, self._opened = self._opened, None
        if opened is not None:
            opened[1].close()

    @contextmanager
    def _model(self) -> Iterator[ModelPair]:
        missing, found = self.missing, find_installed()
        if missing is not None or found is None:
            raise EmbeddingNoModel
        try:
            yield self._open(found)
        except UnfitModel as error:
            self._unfit = (found, str(error))
            raise EmbeddingNoModel from None

    def _open(self, found: InstalledModel) -> ModelPair:
        with self._lock:
            if self._closed:
                raise EmbeddingStopped
            old = self._opened
            if old is not None and old[0] == found:
                return old[1]
            pair = ModelPair(ModelFolder(found.folder, found.digests, MOST_TOKENS), self._seconds)
            self._opened = (found, pair)
        if old is not None:
            old[1].close()
        return pair
