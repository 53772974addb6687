"""A text read from any place: one page at a time, in order, forwards and backwards."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest

from nexus.app import App
from nexus.errors import NotFound, NotReady
from nexus.media import reader
from nexus.media.reader import CHARACTERS, Passage
from nexus.storage import Storage, StorageError
from tests.kit.media import new_file, new_media, publish_text, start_extraction


def text_of(app: App, *texts: str) -> UUID:
    media_id = new_media(app)
    assert publish_text(app, media_id, start_extraction(app, media_id), texts)
    return media_id


def onward(app: App, media_id: UUID, place: int) -> Passage:
    with app.sessions.read() as session:
        return reader.onward(session, media_id, 1, place)


def before(app: App, media_id: UUID, place: int) -> Passage:
    with app.sessions.read() as session:
        return reader.before(session, media_id, 1, place)


def places(passage: Passage) -> list[int]:
    return [row.position for row in passage.fragments]


@pytest.mark.parametrize("length", [1, CHARACTERS // 30])
def test_paging_forward_and_back_shows_every_passage_once(app: App, length: int) -> None:
    media_id = text_of(app, *(str(number).ljust(length, ".") for number in range(120)))
    seen, place = list[int](), 0
    while True:
        passage = onward(app, media_id, place)
        seen += places(passage)
        if passage.after is None:
            break
        place = passage.after
    assert seen == list(range(120))
    back, end = list[int](), 120
    while True:
        passage = before(app, media_id, end)
        back = places(passage) + back
        if passage.before is None:
            break
        end = passage.before
    assert back == seen


def test_a_page_holds_fewer_long_chapters_than_short_lines(app: App) -> None:
    media_id = text_of(app, *("x" * (CHARACTERS // 2) for _ in range(5)))
    assert places(onward(app, media_id, 0)) == [0, 1]
    assert places(before(app, media_id, 5)) == [3, 4]


def test_a_very_long_chapter_fills_a_page_alone(app: App) -> None:
    media_id = text_of(app, "x" * (2 * CHARACTERS), "y")
    first = onward(app, media_id, 0)
    assert (places(first), first.before, first.after) == ([0], None, 1)
    second = onward(app, media_id, 1)
    assert (places(second), second.before, second.after) == ([1], 1, None)


def test_an_empty_place_in_the_text_leads_nowhere(app: App) -> None:
    media_id = text_of(app, "", "one", "", "three", "")
    passage = onward(app, media_id, 0)
    assert (places(passage), passage.before, passage.after) == ([1, 3], None, None)
    assert passage.holds(2)
    assert not passage.holds(0)


@pytest.mark.parametrize("place", [2, 3, 2**31 - 1])
def test_a_place_beyond_the_end_shows_the_last_passages(app: App, place: int) -> None:
    media_id = text_of(app, "one", "two")
    assert places(onward(app, media_id, place)) == [0, 1]


def test_an_item_without_text_has_no_passages(app: App) -> None:
    assert onward(app, new_media(app), 0) == before(app, uuid4(), 9) == Passage([], None, None)


def test_a_pdf_is_served_as_it_is_stored(app: App) -> None:
    media_id = new_file(app, uuid4(), "0" * 64, stored=True)
    with app.sessions.read() as session:
        file = reader.pdf_of_revision(session, media_id, 1)
        assert reader.pdf_of_revision(session, text_of(app, "no file"), 1) is None
    assert file is not None
    assert b"".join(reader.stream(app.files, file.storage_path)) == b"pdf"
    app.files.storage.delete(file.storage_path)
    with pytest.raises(NotFound):
        reader.stream(app.files, file.storage_path)


def test_an_unreachable_store_is_reported_before_the_first_byte(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    media_id = new_file(app, uuid4(), "0" * 64, stored=True)
    with app.sessions.read() as session:
        file = reader.pdf_of_revision(session, media_id, 1)

    def away(self: Storage, path: str) -> object:
        raise StorageError("away")
        yield b""

    monkeypatch.setattr(type(app.files.storage), "stream", away)
    with pytest.raises(NotReady):
        reader.stream(app.files, file.storage_path)
