"""A model of the user's own: a folder with `model.onnx` and `tokenizer.json`, as exported for sentence-transformers.

Two more files are read if they are there: `sentence_bert_config.json` says how long a text may be, and
`config_sentence_transformers.json` which prompts to put before a query and before a text.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from nexus.embed import MissingModel
from nexus.embed.child import MODEL_FILE, TOKENIZER_FILE
from nexus.embed.model_pair import ModelFolder, ModelPair, PairedModel
from nexus.errors import EmbeddingBadModel, EmbeddingFailed
from nexus.inference.child import WrongModel, file_digest
from nexus.inference.host import UnfitModel

NEEDED = (MODEL_FILE, TOKENIZER_FILE)
LENGTHS, POSITIONS, PROMPTS = "sentence_bert_config.json", "config.json", "config_sentence_transformers.json"
#: Of a text, if the folder doesn't say, and at most: longer texts are slow, and chunks are shorter anyway.
USUAL_TOKENS, LONGEST_TOKENS = 256, 512
#: How many characters of the digest tell models apart.
SHORT = 12


class FolderModel(PairedModel):
    """The files are read when first needed. Their digest is part of the model's name, since a folder's name says little
    about what is in it; a file that changes later is noticed when a process loads it."""

    def __init__(self, folder: Path, seconds: float) -> None:
        super().__init__(seconds)
        self._folder = folder

    @property
    def model(self) -> str:
        return f"{self._folder.name} {self._digest}" if self.missing is None else self._folder.name

    @cached_property
    def dimension(self) -> int:
        return len(self.embed_query("x")) // 4

    @cached_property
    def most_tokens(self) -> int:
        said = self._said(LENGTHS).get("max_seq_length") or self._said(POSITIONS).get(
            "max_position_embeddings"
        )
        return min(said, LONGEST_TOKENS) if isinstance(said, int) and said > 0 else USUAL_TOKENS

    @property
    def missing(self) -> MissingModel | None:
        for name in NEEDED:
            if not (self._folder / name).is_file():
                return MissingModel(f"NEXUS_EMBED_FOLDER names {self._folder}, which has no {name}.", None)
        return None

    def find_flaw(self) -> MissingModel | None:
        """Loads the model, since only that tells whether it is one."""
        try:
            self.embed_query("x")
        except EmbeddingFailed as error:
            return MissingModel(str(error), None)
        return None

    @contextmanager
    def _usable(self) -> Iterator[ModelPair]:
        if (missing := self.missing) is not None:
            raise EmbeddingBadModel(f"{missing.why} Put it there, then retry.")
        try:
            yield self._open()
        except (UnfitModel, WrongModel) as error:
            raise EmbeddingBadModel(
                f"The model in {self._folder} {error}. Check its files, restart Nexus, then retry."
            ) from None

    def _open(self) -> ModelPair:
        with self._lock:
            self._require_open()
            if self._pair is None:
                prompts = self._said(PROMPTS).get("prompts")
                said = prompts if isinstance(prompts, dict) else {}
                files = ModelFolder(
                    self._folder.absolute(),
                    self._digests,
                    self.most_tokens,
                    text_prefix=str(said.get("document") or said.get("passage") or ""),
                    query_prefix=str(said.get("query") or ""),
                )
                self._pair = ModelPair(files, self._seconds)
            return self._pair

    @cached_property
    def _digests(self) -> dict[str, str]:
        """Of every file that decides what a vector is. Weights may be in a second file beside the model."""
        others = [path.name for path in self._folder.glob(f"{MODEL_FILE}?*")]
        wanted = (*NEEDED, *others, *(name for name in (PROMPTS, LENGTHS) if (self._folder / name).is_file()))
        return {name: file_digest(self._folder / name) for name in sorted(wanted)}

    @property
    def _digest(self) -> str:
        return hashlib.sha256(json.dumps(self._digests).encode()).hexdigest()[:SHORT]

    def _said(self, name: str) -> dict[str, Any]:
        """What a file of the folder says; nothing if it is not there or makes no sense."""
        try:
            said = json.loads((self._folder / name).read_text())
        except (OSError, ValueError):
            return {}
        return said if isinstance(said, dict) else {}
