"""What is found by meaning: the codes of a process follow the database, and stay within their memory."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID, uuid4

import numpy as np
import pytest
from sqlalchemy import bindparam, delete, text

from nexus.app import App
from nexus.db.session import Statement
from nexus.db.tables import media
from nexus.media.searching.indexing import unembedded_texts
from nexus.search.codes import SignCodes
from nexus.search.finding import AskedMeaning, find_items, find_similar
from nexus.search.meaning import find_meaning
from nexus.search.questions import parse_question
from nexus.search.words_postgres import refresh_counts
from tests.kit.searching import SearchText, add_texts, add_vectors, everything_of_viewer

MODEL = "test"
ROOMY = 1 << 20


@pytest.fixture
def viewer() -> UUID:
    return uuid4()


def _vector(subject: int) -> bytes:
    """A direction of its own for each subject, with a sign for every number."""
    made = np.random.default_rng(subject).standard_normal(64)
    return bytes((made / np.linalg.norm(made)).astype("<f4").tobytes())


def _add(app: App, viewer: UUID, subjects: Iterable[int]) -> list[UUID]:
    """Texts whose words say nothing about their subjects, but whose vectors do."""
    subjects = list(subjects)
    found = add_texts(app.sessions, viewer, [SearchText(f"Text {uuid4().hex}.") for _ in subjects])
    with app.sessions.read() as session:
        made = {
            (media_id, one.id): _vector(subject)
            for media_id, subject in zip(found, subjects, strict=True)
            for one in unembedded_texts(session, media_id, MODEL)
        }
    add_vectors(app.sessions, MODEL, made)
    return found


def _nearest(app: App, viewer: UUID, codes: SignCodes, subject: int) -> UUID | None:
    with app.sessions.read() as session:
        found = find_meaning(session, everything_of_viewer(viewer), codes, MODEL, _vector(subject)) or []
    return found[0].passage.media_id if found else None


def test_two_processes_find_what_either_commits(app: App, viewer: UUID) -> None:
    one, other = SignCodes(ROOMY), SignCodes(ROOMY)
    first, second = _add(app, viewer, [1, 2])
    assert _nearest(app, viewer, one, 1) == _nearest(app, viewer, other, 1) == first
    (third,) = _add(app, viewer, [3])
    assert _nearest(app, viewer, one, 3) == _nearest(app, viewer, other, 3) == third
    assert _nearest(app, viewer, one, 2) == second


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)  # SQLite has one writer at a time.
def test_vectors_of_an_older_transaction_that_ends_late_are_found(app: App, viewer: UUID) -> None:
    """Its numbers are smaller than those that were read already."""
    codes = SignCodes(ROOMY)
    late, early = add_texts(app.sessions, viewer, [SearchText("Late."), SearchText("Early.")])
    with app.sessions.read() as session:
        (chunk,) = {one.id for one in unembedded_texts(session, late, MODEL) if one.text}
        (other,) = {one.id for one in unembedded_texts(session, early, MODEL) if one.text}
    write = Statement(
        text("INSERT INTO vectors (media_id, chunk_id, model, vector) VALUES (:item, :chunk, :model, :made)")
    )
    with app.sessions.begin() as session:
        session.run(write, item=late, chunk=chunk, model=MODEL, made=_vector(1))
        add_vectors(app.sessions, MODEL, {(early, other): _vector(2)})
        assert _nearest(app, viewer, codes, 2) == early
    assert _nearest(app, viewer, codes, 1) == late


def test_a_deleted_item_is_not_found_and_its_code_is_dropped(app: App, viewer: UUID) -> None:
    codes = SignCodes(ROOMY)
    first, second = _add(app, viewer, [1, 2])
    assert _nearest(app, viewer, codes, 1) == first
    held = codes.held(MODEL)
    with app.sessions.begin() as session:
        session.run(Statement(delete(media).where(media.c.id == first)))
    assert _nearest(app, viewer, codes, 1) == second
    assert codes.held(MODEL) < held


def test_what_others_read_is_not_found_however_near(app: App, viewer: UUID) -> None:
    codes = SignCodes(ROOMY)
    _add(app, uuid4(), [1] * 700)
    (mine,) = _add(app, viewer, [2])
    assert _nearest(app, viewer, codes, 1) == mine


def test_above_its_memory_meaning_orders_what_words_found(app: App, viewer: UUID) -> None:
    codes = SignCodes(8)
    texts = [SearchText("A boat at sea."), SearchText("A boat on land."), SearchText("Bread.")]
    items = add_texts(app.sessions, viewer, texts)
    with app.sessions.read() as session:
        made = {
            (media_id, one.id): _vector(subject)
            for subject, media_id in enumerate(items)
            for one in unembedded_texts(session, media_id, MODEL)
        }
    add_vectors(app.sessions, MODEL, made)
    for subject in (0, 1):
        asked = AskedMeaning(codes, MODEL, _vector(subject))
        with app.sessions.read() as session:
            found = find_items(session, everything_of_viewer(viewer), parse_question("boat"), asked).items
        assert [item.media_id for item in found] == [items[subject], items[1 - subject]]
    assert codes.held(MODEL) == 0


def test_vectors_of_another_length_do_not_keep_others_from_being_found(app: App, viewer: UUID) -> None:
    odd, found = _add(app, viewer, [1, 2])
    codes, scope = SignCodes(ROOMY), everything_of_viewer(viewer)
    shorten = Statement(
        text("UPDATE vectors SET vector = substr(vector, 1, 12) WHERE media_id = :odd").bindparams(
            bindparam("odd", type_=media.c.id.type)
        )
    )
    with app.sessions.begin() as session:
        session.run(shorten, odd=odd)
        assert find_similar(session, scope, codes, MODEL, odd) == []
    assert _nearest(app, viewer, codes, 2) == found
    assert _nearest(app, viewer, codes, 1) == found


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)  # SQLite counts when it is asked.
def test_words_are_counted_again_once_a_tenth_is_new(app: App, viewer: UUID) -> None:
    add_texts(app.sessions, viewer, [SearchText(f"Boat {number}.") for number in range(30)])
    with app.sessions.begin() as session:
        assert refresh_counts(session)
        assert not refresh_counts(session)
    add_texts(app.sessions, viewer, [SearchText("One more.")])
    with app.sessions.begin() as session:
        assert not refresh_counts(session)
    add_texts(app.sessions, viewer, [SearchText(f"Ship {number}.") for number in range(10)])
    with app.sessions.begin() as session:
        assert refresh_counts(session)
