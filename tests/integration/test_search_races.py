"""Searches while everything changes, on PostgreSQL with real threads: no ghost is found, and nothing is missing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from nexus.app import App
from nexus.libraries import members
from nexus.libraries.access import Role
from nexus.media import deletions, versions
from nexus.settings import Settings
from tests.kit.crowd import Crowd
from tests.kit.finding import found_in, ids_found, publish
from tests.kit.media import share_media
from tests.kit.settings import make_settings
from tests.kit.users import new_user

pytestmark = pytest.mark.wall_clock
ACTORS = 6
ROUNDS = 12
OLD, NEW = "The boats leave at night.", "The bread is baked at dawn."


@pytest.fixture
def settings(clean_postgres: str, tmp_path: Path) -> Settings:
    return make_settings(clean_postgres, tmp_path, database_pool=40)


@pytest.fixture
def crowd() -> Iterator[Crowd]:
    made = Crowd(ACTORS)
    yield made
    made.close()


def test_what_is_committed_is_found_and_what_is_deleted_is_not(app: App, crowd: Crowd) -> None:
    ann = new_user(app)

    def come_and_go(place: int) -> None:
        for number in range(ROUNDS):
            word = f"word{'abcdef'[place]}{number}x"
            media_id = publish(app, ann, f"Only this text says {word} of boats.")
            assert ids_found(app, ann, word) == [media_id]
            assert media_id in ids_found(app, ann, "boats")
            deletions.delete_media_and_files(app.sessions, app.files, ann, media_id)
            assert ids_found(app, ann, word) == []
            assert media_id not in ids_found(app, ann, "boats")

    crowd.rush(come_and_go)
    assert ids_found(app, ann, "boats") == []


def test_a_member_finds_a_library_exactly_while_they_belong_to_it(app: App, crowd: Crowd) -> None:
    ann = new_user(app)
    media_id = publish(app, ann, OLD)
    library = share_media(app, ann, media_id)

    def join_and_leave(_: int) -> None:
        guest = new_user(app)
        for _round in range(ROUNDS):
            assert ids_found(app, guest, "boats") == []
            with app.sessions.begin() as session:
                members.join(session, library, guest, Role.MEMBER)
            assert ids_found(app, guest, "boats") == [media_id]
            with app.sessions.begin() as session:
                members.remove_member(session, library, guest, ann)

    crowd.rush(join_and_leave)


def test_a_text_that_changes_during_searches_is_found_whole_or_not_at_all(app: App, crowd: Crowd) -> None:
    """One actor moves its item between two texts; the others look for both, and see passages of what they asked."""
    ann = new_user(app)
    media_id = publish(app, ann, OLD)
    is_over = threading.Event()

    def move() -> None:
        for number in range(ROUNDS):
            text, there, gone = (NEW, "bread", "boats") if number % 2 == 0 else (OLD, "boats", "bread")
            versions.enter_own_text(app.sessions, media_id, ann, "Mine", text)
            assert ids_found(app, ann, there) == [media_id]
            assert ids_found(app, ann, gone) == []

    def look() -> None:
        while not is_over.is_set():
            for word in ("boats", "bread"):
                _assert_no_ghost(app, ann, word)

    def act(place: int) -> None:
        if place:
            look()
            return
        try:
            move()
        finally:
            is_over.set()

    crowd.rush(act)


def _assert_no_ghost(app: App, viewer: UUID, word: str) -> None:
    for hit in found_in(app, viewer, word).items:
        assert all(word in passage.text for passage in hit.passages)
