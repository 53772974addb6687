"""Whether texts become searchable by meaning, and what to do if they don't."""

from __future__ import annotations

from nexus.embed import make_embedder, missing_model
from nexus.settings import Settings
from nexus.upkeep.findings import CheckVerdict, Finding

_NEEDED = "Put model.onnx and tokenizer.json into that folder, or set NEXUS_EMBED_FOLDER to another one."


def check_embedding_model(chosen: Settings) -> Finding:
    """The model that Nexus makes may be missing; a folder that somebody chose should have one."""
    name, embedder = "embed.model", make_embedder(chosen)
    missing = missing_model(embedder)
    if embedder is None:
        return Finding(name, CheckVerdict.OK, "Search by meaning is turned off: NEXUS_EMBED is off.")
    embedder.close()
    if missing is None:
        return Finding(name, CheckVerdict.OK, f"Texts are made searchable by meaning by {embedder.model}.")
    says = f"{missing.why} Texts are found by their words alone."
    if missing.command is not None:
        return Finding(name, CheckVerdict.NOTE, says, f"Install it with: {missing.command}")
    return Finding(name, CheckVerdict.PROBLEM, says, _NEEDED)
