"""Whether texts become searchable by meaning, and what to do if they don't."""

from __future__ import annotations

from nexus.embed import make_embedder
from nexus.settings import Settings
from nexus.upkeep.findings import CheckVerdict, Finding

_NEEDED = "Put model.onnx and tokenizer.json into that folder, or set NEXUS_EMBED_FOLDER to another one."


def check_embedding_model(chosen: Settings) -> Finding:
    """The model that Nexus makes may be missing, but not damaged; a folder that somebody chose should have one."""
    name, embedder = "embed.model", make_embedder(chosen)
    if embedder is None:
        return Finding(name, CheckVerdict.OK, "Search by meaning is turned off: NEXUS_EMBED is off.")
    is_missing = embedder.missing is not None
    flaw = embedder.find_flaw()
    embedder.close()
    if flaw is None:
        return Finding(name, CheckVerdict.OK, f"Texts are made searchable by meaning by {embedder.model}.")
    says = f"{flaw.why} Texts are found by their words alone."
    if flaw.command is None:
        return Finding(name, CheckVerdict.PROBLEM, says, _NEEDED)
    verdict = CheckVerdict.NOTE if is_missing else CheckVerdict.PROBLEM
    return Finding(name, verdict, says, f"Install it with: {flaw.command}")
