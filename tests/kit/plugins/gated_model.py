"""A model that embeds by counting letters, behind a gate: NEXUS_PLUGINS=tests.kit.plugins.gated_model.

Texts with the word `gated` wait for the gate of tests/kit/plugins/extract_by_url.py. NEXUS_EMBED_MODEL names the model.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import nexus.embed
from nexus.embed import Embedded
from nexus.settings import Settings
from tests.kit.embedding import CountingModel
from tests.kit.plugins.extract_by_url import FOLDER, _gated, _note

ASKED = "embedded"


class GatedModel(CountingModel):
    def embed(self, texts: Sequence[str], progress: Callable[[int], None] = lambda _: None) -> Embedded:
        folder = Path(os.environ[FOLDER])
        _note(folder / ASKED, f"{os.getpid()} {len(texts)}\n")
        if any("gated" in text for text in texts):
            _gated(1, folder)
        return super().embed(texts, progress)


def _make(settings: Settings) -> GatedModel:
    return GatedModel(settings.embed_model)


nexus.embed.make_embedder = _make
