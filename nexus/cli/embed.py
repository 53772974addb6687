"""`nexus embed`: shows how much of the library is searchable by meaning, and repairs the index of search."""

from __future__ import annotations

from pathlib import Path

from nexus.cli import say
from nexus.cli.context import connected
from nexus.embed import make_embedder, missing_model
from nexus.upkeep.counts import count_indexed
from nexus.upkeep.index_repair import repair_index


def show_embedding(data_dir: Path | None, *, as_json: bool) -> None:
    with connected(data_dir) as (chosen, sessions), sessions.read() as session:
        found = count_indexed(session)
        embedder = make_embedder(chosen)
        missing = missing_model(embedder)
    model = None if embedder is None else embedder.model
    if as_json:
        sets = [
            {"model": one.model, "vectors": one.vectors, "whole": one.whole_at is not None}
            for one in found.sets
        ]
        why = missing and missing.why
        say.as_json({**vars(found), "sets": sets, "model": model, "missing": why})
        return
    say.line(f"Model: {model or 'none'}")
    if missing is not None:
        say.hint(missing.why if missing.command is None else f"{missing.why} Run: {missing.command}")
    if missing is None:
        say.line(
            f"{found.ready:,} of {found.readable:,} items are searchable by meaning, all by their words."
        )
    else:
        items = say.amount(found.readable, "item is", "items are")
        say.line(f"{items} searchable by words.")
    if found.waiting:
        say.line(f"{found.waiting:,} more texts wait to be indexed.")
    if found.failed:
        say.hint(f"{found.failed:,} could not be prepared. Run: nexus retry --all-failed")
    for one in found.sets:
        state = "whole" if one.whole_at else "still growing" if one.model == model else "never became whole"
        say.line(f"{one.vectors:,} vectors of {one.model} ({state})")


def index_again(data_dir: Path | None, *, as_json: bool) -> None:
    with connected(data_dir) as (_, sessions):
        done = repair_index(sessions)
    if as_json:
        say.as_json(done._asdict())
        return
    if done.words:
        say.line("The index of words was rebuilt.")
    if done.items:
        found = say.amount(done.items, "item is", "items are")
        say.line(f"{found} found by words again. A worker makes the vectors that are missing.")
    if not any(done):
        say.hint("Nothing to repair.")
