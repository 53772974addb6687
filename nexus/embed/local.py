"""The model that `nexus models install` makes: all-MiniLM-L6-v2, English, with 8-bit numbers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from nexus.command_line import own_name
from nexus.embed import MissingModel
from nexus.embed.installed import DIMENSION, MODEL, MOST_TOKENS, InstalledModel, find_installed
from nexus.embed.model_pair import ModelFolder, ModelPair, PairedModel
from nexus.errors import EmbeddingNoModel
from nexus.inference.child import WrongModel, require_whole
from nexus.inference.host import UnfitModel


class LocalModel(PairedModel):
    """Notices when the model is installed or made again, without a restart."""

    model = MODEL
    dimension = DIMENSION
    most_tokens = MOST_TOKENS

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        #: What the processes were set up with.
        self._opened: InstalledModel | None = None
        #: What was found wrong with an installed model.
        self._unfit: tuple[InstalledModel, str] | None = None

    @property
    def missing(self) -> MissingModel | None:
        found = find_installed()
        if found is None:
            return MissingModel("The model for search by meaning is not installed.", _install())
        if self._unfit is not None and self._unfit[0] == found:
            return _damaged(self._unfit[1])
        return None

    def find_flaw(self) -> MissingModel | None:
        missing, found = self.missing, find_installed()
        if missing is not None or found is None:
            return missing
        try:
            require_whole(found.folder, found.digests)
        except WrongModel as error:
            return _damaged(str(error))
        return None

    @contextmanager
    def _usable(self) -> Iterator[ModelPair]:
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
            self._require_open()
            old = self._pair
            if old is not None and self._opened == found:
                return old
            pair = ModelPair(ModelFolder(found.folder, found.digests, MOST_TOKENS), self._seconds)
            self._opened, self._pair = found, pair
        if old is not None:
            old.close()
        return pair


def _damaged(how: str) -> MissingModel:
    return MissingModel(f"The model for search by meaning {how}.", _install())


def _install() -> str:
    return f"{own_name()} models install"
