"""What the doctor finds wrong with the index is repaired from the texts, on both databases."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from nexus.app import App, build
from nexus.db import migrate
from nexus.db.word_index import POSTGRES_TRIGGERS, TRIGGERS, create_word_triggers
from nexus.upkeep import doctor
from nexus.upkeep.doctor import CheckVerdict, Patient
from nexus.upkeep.index_repair import IndexRepair, repair_index
from tests.kit.embedding import CountingModel, chunks_of, embed_item, index_item, vectors_of, with_model
from tests.kit.media import new_media, publish_text, start_extraction
from tests.kit.settings import make_settings

LONG = " ".join(f"Sentence {number} is about lanterns and boats." for number in range(200))
ONE = "(SELECT min(key) FROM chunks WHERE position = 3)"
DAMAGES = [
    ("search.words", "DELETE FROM chunks WHERE position >= 0"),
    ("search.words", f"DELETE FROM chunks WHERE key = {ONE}"),
    ("search.words", "DELETE FROM chunks WHERE position = (SELECT max(position) FROM chunks)"),
    ("search.words", "DELETE FROM chunks WHERE position = -1"),
    ("search.places", f'UPDATE chunks SET "end" = 9999999 WHERE key = {ONE}'),
    ("search.places", f"UPDATE chunks SET fragment = 7 WHERE key = {ONE}"),
    ("search.vectors", "DELETE FROM vectors WHERE seq = (SELECT min(seq) FROM vectors)"),
    ("search.vectors", "UPDATE vectors SET vector = substr(vector, 1, 8)"),
    ("search.leftovers", "UPDATE vectors SET model = 'other' WHERE seq = (SELECT max(seq) FROM vectors)"),
    ("search.leftovers", "UPDATE vectors SET chunk_id = media_id WHERE seq = (SELECT max(seq) FROM vectors)"),
    ("search.leftovers", "DELETE FROM vector_sets"),
]


@pytest.fixture
def model() -> CountingModel:
    return CountingModel()


@pytest.fixture
def ready(app: App, model: CountingModel) -> UUID:
    media_id = new_media(app, uuid4())
    assert publish_text(app, media_id, start_extraction(app, media_id), (LONG, "Another part."))
    assert embed_item(with_model(app, model), media_id) == "ready"
    return media_id


def complaints(app: App) -> set[str]:
    found = doctor.examine(Patient(app.settings, app.sessions, app.tools.extractors, app.files))
    return {
        one.name for one in found if one.name.startswith("search.") and one.verdict is not CheckVerdict.OK
    }


def damage(app: App, statement: str) -> None:
    engine = migrate.engine_for(app.settings.database)
    with engine.begin() as connection:
        connection.execute(text(statement))
    engine.dispose()


@pytest.mark.parametrize(("check", "statement"), DAMAGES)
def test_a_damaged_index_is_named_and_made_again_from_the_texts(
    app: App, ready: UUID, model: CountingModel, check: str, statement: str
) -> None:
    whole = places(app, ready), len(vectors_of(app, ready))
    damage(app, statement)
    assert check in complaints(app)
    assert repair_index(app.sessions).items == 1
    assert places(app, ready) == whole[0]
    assert index_item(with_model(app, model), ready) == ["indexed"]
    assert complaints(app) == set()
    assert len(vectors_of(app, ready)) == whole[1]


def test_what_is_in_order_stays_as_it_is(app: App, ready: UUID, model: CountingModel) -> None:
    before = chunks_of(app, ready), vectors_of(app, ready)
    assert repair_index(app.sessions) == IndexRepair(0, words=False)
    assert (chunks_of(app, ready), vectors_of(app, ready)) == before
    assert index_item(with_model(app, model), ready) == []


def test_vectors_that_are_in_order_are_not_made_again(app: App, ready: UUID, model: CountingModel) -> None:
    damage(app, "DELETE FROM vectors WHERE seq = (SELECT min(seq) FROM vectors)")
    model.asked.clear()
    repair_index(app.sessions)
    index_item(with_model(app, model), ready)
    assert len(model.asked) == 1


def places(app: App, media_id: UUID) -> list[tuple[object, ...]]:
    return [tuple(row)[1:8] for row in chunks_of(app, media_id)]  # type: ignore[call-overload]


def test_an_index_that_differs_from_its_texts_is_made_again(sqlite_url: str, tmp_path: Path) -> None:
    with closing(build(make_settings(sqlite_url, tmp_path))) as app:
        media_id = new_media(app, uuid4())
        assert publish_text(app, media_id, start_extraction(app, media_id), (LONG,))
        damage(app, "INSERT INTO chunk_words (rowid, head, words) VALUES (99999, 'ghost', 'ghost')")
        assert complaints(app) == {"search.index"}
        assert repair_index(app.sessions) == IndexRepair(0, words=True)
        assert complaints(app) == set()


def test_a_missing_trigger_of_the_index_is_named(app: App) -> None:
    dialect = app.sessions.engine.dialect.name
    is_postgres = dialect == "postgresql"
    for name in POSTGRES_TRIGGERS if is_postgres else TRIGGERS:
        damage(app, f"DROP TRIGGER {name}" + " ON chunks" * is_postgres)
        assert complaints(app) == {"search.index"}
        # Tests share a database on PostgreSQL.
        damage(app, next(made for made in create_word_triggers(dialect) if f"TRIGGER {name}" in made))
    assert complaints(app) == set()
