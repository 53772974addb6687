"""Workers that die while they embed: everything ends ready, with the vectors of its chunks once each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import UUID, uuid4

import pytest

import nexus.embed
from nexus.media.searching.vectors import keep_sets, set_sizes
from nexus.states.media import MediaStatus
from tests.kit.databases import copied_postgres
from tests.kit.embedding import ASKED, chunks_of, vectors_of
from tests.kit.installation import LONG_LEASE, Nexus, end_leases, installed
from tests.kit.media import events_of, new_media, publish_text, start_extraction, status_of
from tests.kit.waiting import eventually

KILLS = 2
ITEMS = 3


@pytest.fixture(name="nexus", params=["local", "celery"])
def embedding_nexus(
    request: pytest.FixtureRequest,
    postgres_template: str,
    redis_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Nexus]:
    monkeypatch.setattr(nexus.embed, "make_embedder", nexus.embed.make_embedder)  # which the plugin replaces
    own = {
        "plugins": ("tests.kit.plugins.gated_model",),
        "embed_model": "letters/1",
        "lease_seconds": LONG_LEASE,
    }
    with (
        copied_postgres(postgres_template) as url,
        installed(url, tmp_path, queue=request.param, redis_url=redis_url, **own) as made,
    ):
        yield made


def readable_items(nexus: Nexus) -> list[UUID]:
    user = uuid4()
    made = [new_media(nexus.app, user) for _ in range(ITEMS)]
    for number, media_id in enumerate(made):
        texts = (f"a gated text, number {number}", "a text that they share")
        assert publish_text(nexus.app, media_id, start_extraction(nexus.app, media_id), texts)
    return made


def began(nexus: Nexus) -> int:
    notes = nexus.folder / ASKED
    return len(notes.read_text().splitlines()) if notes.exists() else 0


def kill_while_embedding(nexus: Nexus, model: str = "letters/1") -> None:
    before = began(nexus)
    worker = nexus.worker(embed_model=model)
    eventually(lambda: began(nexus) > before, "a text is being embedded")
    worker.kill()
    end_leases(nexus)


def are_ready(nexus: Nexus, items: list[UUID]) -> bool:
    return all(status_of(nexus.app.sessions, media_id) is MediaStatus.READY for media_id in items)


def check_vectors(nexus: Nexus, media_id: UUID, model: str) -> None:
    found = [(row.chunk_id, row.model) for row in vectors_of(nexus.app, media_id)]
    assert sorted(found) == sorted({(row.id, model) for row in chunks_of(nexus.app, media_id)})


def test_items_whose_workers_are_killed_while_embedding_end_ready(nexus: Nexus) -> None:
    items = readable_items(nexus)
    for _ in range(KILLS):
        kill_while_embedding(nexus)
    nexus.open_gate()
    nexus.worker()
    eventually(lambda: are_ready(nexus, items), "everything is ready")
    for media_id in items:
        check_vectors(nexus, media_id, "letters/1")
        assert events_of(nexus.app.sessions, media_id)[-1] == "embedded"


def test_another_model_takes_over_although_its_workers_are_killed(nexus: Nexus) -> None:
    items = readable_items(nexus)
    nexus.open_gate()
    worker = nexus.worker()
    eventually(lambda: are_ready(nexus, items), "everything is ready")
    assert worker.stop() == 0
    (nexus.folder / "gate").unlink()
    keep_sets(nexus.app.sessions, "letters/1")

    kill_while_embedding(nexus, "letters/2")
    nexus.open_gate()
    nexus.worker(embed_model="letters/2")

    def is_whole() -> bool:
        keep_sets(nexus.app.sessions, "letters/2")
        with nexus.app.sessions.read() as session:
            return [one.model for one in set_sizes(session)] == ["letters/2"]

    eventually(is_whole, "the new vectors are whole, and the old ones gone")
    for media_id in items:
        check_vectors(nexus, media_id, "letters/2")
        assert status_of(nexus.app.sessions, media_id) is MediaStatus.READY
