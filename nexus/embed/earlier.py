# ruff: noqa: PLC0415 a backend is imported when it is chosen
"""The models before the present one. Their vectors are searched until those of the present model are complete, and only
the model that made them can embed a question for them."""

from __future__ import annotations

import threading

from nexus.embed import Embedder
from nexus.settings import Settings


class EarlierModels:
    """The earlier models that the settings still know, each opened when it is first asked for. Safe to share between
    threads."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._known: dict[str, Embedder | None] = {}

    def find(self, model: str) -> Embedder | None:
        """Return what embeds questions with a model of this name; None if nothing does any more."""
        with self._lock:
            if model not in self._known:
                self._known[model] = self._make(model)
            return self._known[model]

    def close(self) -> None:
        with self._lock:
            for one in filter(None, self._known.values()):
                one.close()

    def _make(self, model: str) -> Embedder | None:
        from nexus.embed.installed import MODEL

        chosen = self._settings
        if model == MODEL:
            from nexus.embed.local import LocalModel

            return LocalModel(chosen.embed_seconds)
        if chosen.embed_folder is not None:
            from nexus.embed.folder import FolderModel

            folder = FolderModel(chosen.embed_folder, chosen.embed_seconds)
            if folder.model == model:
                return folder
        return self._on_server(model)

    def _on_server(self, model: str) -> Embedder | None:
        """A server is asked only as long as the settings choose it: nothing is sent to one that was given up."""
        if self._settings.embed != "openai":
            return None
        from nexus.embed.openai import OpenAiModel

        chosen = self._settings
        return OpenAiModel(chosen.embed_base_url, chosen.embed_api_key, model, chosen.embed_seconds)
