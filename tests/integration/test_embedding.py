"""Readable items become ready: their chunks get vectors, once each, in the transaction that makes them ready."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import bindparam, delete, func, select

from nexus.app import App, build, kernel_for
from nexus.db import migrate
from nexus.db.chunks import ABOUT, embedding_progress, indexing
from nexus.db.session import Statement
from nexus.db.tables import revisions, usage
from nexus.embed import Embedded, MissingModel
from nexus.errors import EmbeddingCrashed, EmbeddingUnusable
from nexus.libraries.quota import Operation
from nexus.media import versions
from nexus.media.lifecycle import EMBEDDING, retry_media
from nexus.media.searching import embedding
from nexus.media.searching.vectors import keep_sets, searched_set, set_sizes, vector_sets_of
from nexus.queue import Work
from nexus.queue.local import LocalQueue
from nexus.states.media import MediaStatus
from tests.kit.clock import SetClock
from tests.kit.embedding import (
    CountingModel,
    chunks_of,
    embed_item,
    index_item,
    vectors_of,
    with_model,
)
from tests.kit.media import events_of, new_media, publish_text, row_of, start_extraction, status_of
from tests.kit.settings import make_settings
from tests.kit.work import sweep

_REQUESTS = Statement(select(indexing.c.media_id))
_PROGRESS = Statement(select(embedding_progress))
_DROP = Statement(
    delete(revisions).where(
        revisions.c.media_id == bindparam("media_id"), revisions.c.number == bindparam("number")
    )
)
_USED = Statement(select(func.sum(usage.c.amount).label("n")).where(usage.c.operation == "EMBED_TOKENS"))


def readable(app: App, user: UUID, *texts: str) -> UUID:
    media_id = new_media(app, user)
    assert publish_text(app, media_id, start_extraction(app, media_id), texts or ("one text", "another"))
    return media_id


def all_rows(app: App, statement: Statement) -> list[Any]:
    with app.sessions.read() as session:
        return session.all(statement)


@pytest.fixture
def user() -> UUID:
    return uuid4()


@pytest.fixture
def model() -> CountingModel:
    return CountingModel()


def test_a_readable_item_has_the_chunks_of_its_title_and_text(app: App, user: UUID) -> None:
    found: list[Any] = chunks_of(app, readable(app, user, "The first page.", "The second page."))
    assert [(row.position, row.fragment, row.start, row.end) for row in found] == [
        (ABOUT, ABOUT, 0, 0),
        (0, 0, 0, len("The first page.")),
        (1, 1, 0, len("The second page.")),
    ]
    assert found[0].head
    assert not found[0].words


def test_an_embedded_item_is_ready_with_one_vector_for_each_chunk(
    app: App, user: UUID, model: CountingModel
) -> None:
    media_id = readable(app, user, "one text", "another", "one text")
    assert embed_item(with_model(app, model), media_id) == "ready"
    assert status_of(app.sessions, media_id) is MediaStatus.READY
    assert events_of(app.sessions, media_id)[-2:] == ["embed", "embedded"]
    assert model.asked == ["A title", "one text", "another"], "the same text is embedded once"
    ids = {row.id for row in chunks_of(app, media_id)}
    found = vectors_of(app, media_id)
    assert {row.chunk_id for row in found} == ids
    assert len(found) == len(ids)
    assert {row.model for row in found} == {"letters/1"}


def test_tokens_are_recorded_for_the_user(app: App, user: UUID, model: CountingModel) -> None:
    embed_item(with_model(app, model), readable(app, user, "one text"))
    assert [int(row.n) for row in all_rows(app, _USED)] == [len("A title") + len("one text")]


class _WiderModel(CountingModel):
    """Another model under the name of the first."""

    def embed(self, texts: Sequence[str], progress: Callable[[int], None] = lambda _: None) -> Embedded:
        made = super().embed(texts, progress)
        return made._replace(vectors=[vector + bytes(4) for vector in made.vectors])


def test_vectors_of_another_dimension_than_earlier_ones_are_refused_and_paid_for(
    app: App, user: UUID, model: CountingModel
) -> None:
    embed_item(with_model(app, model), readable(app, user, "one text"))
    (before,) = all_rows(app, _USED)
    second = readable(app, user, "another text")
    assert embed_item(with_model(app, _WiderModel()), second) == "failed"
    assert "28 numbers, but earlier ones have 27" in (row_of(app.sessions, second).last_error_message or "")
    assert vectors_of(app, second) == []
    assert [int(row.n) for row in all_rows(app, _USED)] == [int(before.n) + len("A titleanother text")]


def test_an_allowance_that_is_used_up_postpones_without_using_up_a_try(
    app: App, user: UUID, model: CountingModel
) -> None:
    media_id = readable(app, user, "some text that is long enough to cost more than one token")
    tools = replace(with_model(app, model), limits={Operation.EMBED_TOKENS: 1})
    assert embed_item(tools, media_id) == "released"
    row = row_of(app.sessions, media_id)
    assert (row.processing_status, row.tries) == ("ready_for_reading", 0)


def test_without_an_installed_model_items_stay_readable(app: App, user: UUID, model: CountingModel) -> None:
    model.missing = MissingModel("It is not installed.", "nexus models install")
    media_id = readable(app, user)
    tools = with_model(app, model)
    assert embed_item(tools, media_id) is None
    assert list(kernel_for(tools).handlers[EMBEDDING].lanes()) == []
    assert status_of(app.sessions, media_id) is MediaStatus.READY_FOR_READING


@pytest.mark.parametrize("tries", [1, 2])
def test_a_transient_error_is_tried_again(
    app: App, user: UUID, model: CountingModel, clock: SetClock, tries: int
) -> None:
    media_id = readable(app, user)
    model.errors = [EmbeddingCrashed() for _ in range(tries)]
    tools = with_model(app, model)
    for _ in range(tries):
        assert embed_item(tools, media_id) == "released"
        assert vectors_of(app, media_id) == []
        clock.forward(seconds=3600)
    assert embed_item(tools, media_id) == "ready"


def test_a_final_error_leaves_the_item_failed_readable_and_without_vectors(
    app: App, user: UUID, model: CountingModel
) -> None:
    media_id = readable(app, user)
    model.errors = [EmbeddingUnusable()]
    assert embed_item(with_model(app, model), media_id) == "failed"
    row = row_of(app.sessions, media_id)
    assert (row.failure_stage, row.last_error_code) == ("embed", "E_EMBEDDING_UNUSABLE")
    assert vectors_of(app, media_id) == []
    assert chunks_of(app, media_id) != []


def test_a_retry_of_a_failed_embedding_makes_it_ready_and_clears_its_times(
    app: App, user: UUID, model: CountingModel, clock: SetClock
) -> None:
    media_id = readable(app, user)
    model.errors = [EmbeddingUnusable()]
    tools = with_model(app, model)
    embed_item(tools, media_id)
    clock.forward(seconds=1)
    with app.sessions.begin() as session:
        row = retry_media(session, media_id, user)
    assert row.processing_status is MediaStatus.READY_FOR_READING
    assert (row.processing_started_at, row.processing_completed_at, row.failed_at) == (None, None, None)
    assert embed_item(tools, media_id) == "ready"


def test_a_worker_that_lost_its_lease_writes_no_vectors(
    app: App, user: UUID, model: CountingModel, clock: SetClock
) -> None:
    media_id = readable(app, user)
    tools = with_model(app, model)

    def lose() -> None:
        clock.forward(seconds=tools.leases.length.total_seconds() + 1)
        assert sweep(tools, LocalQueue()).released == 1

    model.meanwhile = lose
    assert embed_item(tools, media_id) == "stale"
    assert status_of(app.sessions, media_id) is MediaStatus.READY_FOR_READING
    assert vectors_of(app, media_id) == []


def test_three_lost_workers_fail_the_embedding_with_its_own_code(
    app: App, user: UUID, model: CountingModel, clock: SetClock
) -> None:
    media_id = readable(app, user)
    tools = with_model(app, model)
    handler = kernel_for(tools).handlers[EMBEDDING]
    for _ in range(3):
        with app.sessions.begin() as session:
            assert handler.claim(session, media_id, timedelta(seconds=1)) is not None
        clock.forward(seconds=7200)
        assert sweep(tools, LocalQueue()).released == 1
        clock.forward(seconds=7200)
    row = row_of(app.sessions, media_id)
    assert (row.failure_stage, row.last_error_code) == ("embed", "E_EMBEDDING_TIMEOUT")


def test_a_text_deleted_while_it_is_embedded_leaves_no_vector(
    app: App, user: UUID, model: CountingModel
) -> None:
    media_id = readable(app, user)
    own = versions.enter_own_text(app.sessions, media_id, user, "Mine", "a text of my own")

    def drop() -> None:
        with app.sessions.begin() as session:
            versions.move_libraries(session, media_id, user, 1, own=True)
            session.run(_DROP, media_id=media_id, number=own)

    model.meanwhile = drop
    assert embed_item(with_model(app, model), media_id) == "ready"
    assert {row.chunk_id for row in vectors_of(app, media_id)} == {row.id for row in chunks_of(app, media_id)}


def test_a_newer_text_is_indexed_and_only_its_new_chunks_are_embedded(
    app: App, user: UUID, model: CountingModel
) -> None:
    media_id = readable(app, user, "one text")
    tools = with_model(app, model)
    embed_item(tools, media_id)
    model.asked.clear()
    versions.enter_own_text(app.sessions, media_id, user, "A title", "one text")
    assert index_item(tools, media_id) == ["indexed"]
    assert model.asked == []
    versions.enter_own_text(app.sessions, media_id, user, "A title", "a newer text")
    assert index_item(tools, media_id) == ["indexed"]
    assert model.asked == ["a newer text"]
    assert {row.chunk_id for row in vectors_of(app, media_id)} == {row.id for row in chunks_of(app, media_id)}
    assert all_rows(app, _REQUESTS) == []


def test_people_see_how_far_a_long_text_has_come(
    app: App, user: UUID, model: CountingModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding, "PROGRESS_SECONDS", 0)
    media_id = readable(app, user, *(f"part {number}" for number in range(11)))
    seen: list[Any] = []
    model.meanwhile = lambda: seen.extend(all_rows(app, _PROGRESS))
    embed_item(with_model(app, model), media_id)
    assert [(row.media_id, row.done, row.total) for row in seen] == [(media_id, 11, 12)]
    assert all_rows(app, _PROGRESS) == [], "nothing is left when it is done"


def test_texts_from_before_there_were_chunks_are_indexed_after_the_migration(
    own_database_url: str, tmp_path: Path, clock: SetClock, user: UUID, model: CountingModel
) -> None:
    settings = make_settings(own_database_url, tmp_path)
    with closing(build(settings, clock)) as app:
        media_id = readable(app, user, "an old text", "of two pages")
        written = [row[1:] for row in chunks_of(app, media_id)]
    migrate.downgrade_schema(own_database_url, "0016")
    migrate.upgrade_schema(own_database_url)
    with closing(build(settings, clock)) as app:
        assert chunks_of(app, media_id) == []
        tools = with_model(app, model)
        assert index_item(tools, media_id) == ["indexed"]
        assert [row[1:] for row in chunks_of(app, media_id)] == written
        assert embed_item(tools, media_id) == "ready"


# ── Another model ──


def test_the_old_vectors_serve_until_the_new_ones_are_whole_and_are_then_removed(
    app: App, user: UUID, model: CountingModel, clock: SetClock
) -> None:
    items = [readable(app, user, f"text number {number}") for number in range(3)]
    for media_id in items:
        embed_item(with_model(app, model), media_id)
    keep_sets(app.sessions, model.model)
    other = CountingModel("letters/2")
    tools = with_model(app, other)

    def searched() -> str:
        with app.sessions.read() as session:
            found = searched_set(vector_sets_of(session), other.model)
        return found.model if found else "none"

    keep_sets(app.sessions, other.model)
    clock.forward(seconds=1)
    for media_id in items:
        assert searched() == "letters/1"
        assert index_item(tools, media_id) == ["indexed"]
    keep_sets(app.sessions, other.model)
    assert searched() == "letters/2"
    keep_sets(app.sessions, other.model)
    with app.sessions.read() as session:
        assert [(one.model, one.vectors) for one in set_sizes(session)] == [("letters/2", 6)]
    assert all(status_of(app.sessions, media_id) is MediaStatus.READY for media_id in items)


def test_what_was_added_last_is_embedded_again_first(
    app: App, user: UUID, model: CountingModel, clock: SetClock
) -> None:
    items = []
    for number in range(3):
        items.append(readable(app, user, f"text number {number}"))
        embed_item(with_model(app, model), items[-1])
        clock.forward(seconds=1)
    keep_sets(app.sessions, "letters/2")
    clock.forward(seconds=1)
    tools = with_model(app, CountingModel("letters/2"))
    handler = kernel_for(tools).handlers["indexing"]
    with app.sessions.begin() as session:
        claims = handler.claim_due(session, None, user, 3, timedelta(seconds=60))
    assert [
        claim.subject.media_id for claim in sorted(claims, key=lambda claim: claim.subject.run_after)
    ] == [*reversed(items)]


def test_two_workers_that_embed_one_item_write_its_vectors_once(
    app: App, user: UUID, model: CountingModel
) -> None:
    media_id = readable(app, user)
    tools = with_model(app, model)
    second: list[str | None] = []

    def again() -> None:
        model.meanwhile = lambda: None
        second.append(kernel_for(tools).run(Work(EMBEDDING, media_id)))

    model.meanwhile = again
    assert embed_item(tools, media_id) == "ready"
    assert second == [None]
    assert len(vectors_of(app, media_id)) == len({row.chunk_id for row in vectors_of(app, media_id)})
