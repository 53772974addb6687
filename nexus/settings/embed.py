"""Settings about the model that makes texts searchable by meaning."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field
from pydantic_settings import BaseSettings


class EmbedSettings(BaseSettings):
    embed: Literal["local", "openai", "folder", "off"] = Field(
        "local",
        description="What makes texts searchable by meaning: the model that `nexus models install` makes, a server "
        "with OpenAI's embeddings API, a folder with a model of your own, or nothing.",
    )
    embed_base_url: str = Field(
        "", description="The address of the server with OpenAI's embeddings API; empty means OpenAI itself."
    )
    embed_api_key: str = Field("", description="The key of that server; empty if it needs none.")
    embed_model: str = Field(
        "text-embedding-3-small", min_length=1, description="The model that the server is asked for."
    )
    embed_folder: Path | None = Field(
        None, description="The folder with your own model: `model.onnx` and `tokenizer.json`."
    )
    embed_seconds: float = Field(
        60.0, gt=0, le=600, description="How long a model may take for one batch of texts."
    )
    search_mib: int = Field(
        128,
        ge=1,
        description="How much memory, in MiB, a process takes to search by meaning: 1 MiB is enough for about 18,000 "
        "chunks of text. Of a larger library, what was found by words is put in order by meaning.",
    )
