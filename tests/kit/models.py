"""The model that `make setup` makes, for tests of what runs it, and a server that answers like one."""

from __future__ import annotations

import struct
from base64 import b64encode
from collections.abc import Sequence

from nexus.embed.installed import MOST_TOKENS, InstalledModel, find_installed
from nexus.embed.model_pair import ModelFolder
from nexus.embed.process import ModelProcess
from tests.kit.embedding import vector_of
from tests.kit.servers.openai_api import Asked, Step, _Handler, answers

MIB = 1024 * 1024


def made_model() -> InstalledModel:
    found = find_installed()
    assert found is not None, "the model is not there: run make setup"
    return found


def model_process(
    *, seconds: float = 60.0, idle: float = 600.0, working_bytes: int = 384 * MIB
) -> ModelProcess:
    made = made_model()
    files = ModelFolder(made.folder, made.digests, MOST_TOKENS)
    return ModelProcess(files.order(niceness=10, idle=idle, seconds=seconds, working_bytes=working_bytes))


def numbers(vector: bytes) -> tuple[float, ...]:
    return struct.unpack(f"<{len(vector) // 4}f", vector)


def cosine(one: bytes, other: bytes) -> float:
    return sum(a * b for a, b in zip(numbers(one), numbers(other), strict=True))


def embeds(handler: _Handler, asked: Asked) -> None:
    """Answers with a vector of letters for each text, in base64."""
    sent([vector_of(f"{text}e") for text in asked.body["input"]])(handler, asked)


def sent(vectors: Sequence[bytes], **more: object) -> Step:
    data = [
        {"object": "embedding", "index": index, "embedding": b64encode(vector).decode()}
        for index, vector in enumerate(vectors)
    ]
    return answers(200, {"object": "list", "model": "m", "data": data, "usage": {"total_tokens": 7}, **more})
