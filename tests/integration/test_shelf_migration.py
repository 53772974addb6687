"""Lists and notes come to a database that is in use, and go again without harm."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import inspect, text

from nexus.db import migrate
from nexus.db.facets import Facet, facet_of
from nexus.states.media import Kind, MediaStatus
from tests.kit.databases import empty_postgres

USER, LIBRARY, ARTICLE, FRESH = (f"{n:032x}" for n in (1, 2, 3, 4))
THEN = "2026-01-02 03:04:05.000000"
_REVISION = (
    "INSERT INTO revisions (media_id, number, title, content_hash, origin, extractor, published, words, pieces, "
    "characters, outline, written_at, seen_at, seen_by, excerpt) VALUES "
    f"('{ARTICLE}', {{number}}, '{{title}}', 'x', 'extracted', 'nexus 0', '2025-12-31', {{words}}, 1, 9, '[]', "
    f"'{THEN}', '{THEN}', 'nexus 0', {{excerpt}})"
)
OLD_ROWS = [
    f"INSERT INTO users (id, created_at) VALUES ('{USER}', '{THEN}')",
    "INSERT INTO libraries (id, name, owner_user_id, is_default, created_at) "
    f"VALUES ('{LIBRARY}', 'My library', '{USER}', true, '{THEN}')",
    *(
        "INSERT INTO media (id, kind, canonical_url, run_after, created_by_user_id, created_at, updated_at, revision) "
        f"VALUES ('{media_id}', 'web_article', '{url}', '{THEN}', '{USER}', '{THEN}', '{THEN}', {base})"
        for media_id, url, base in (
            (ARTICLE, "https://www.example.com:8080/a", 1),
            (FRESH, "https://b.example/", 0),
        )
    ),
    _REVISION.format(number=1, title="The first", words=2, excerpt="'Given'"),
    _REVISION.format(number=2, title="“Élan”", words=7, excerpt="NULL"),
    *(
        f"INSERT INTO fragments (media_id, revision, position, id, text) "
        f"VALUES ('{ARTICLE}', 2, {place}, '{place:032x}', '{said}')"
        for place, said in enumerate((" ", "“Élan”  and more of it"))
    ),
    "INSERT INTO library_media (library_id, media_id, added_at, revision) "
    f"VALUES ('{LIBRARY}', '{ARTICLE}', '{THEN}', 2), ('{LIBRARY}', '{FRESH}', '{THEN}', NULL)",
]


@pytest.fixture(params=["sqlite", "postgres"])
def old_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database before lists had keys."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path / 'nexus.sqlite3'}"
        fill(url)
        yield url
        return
    with empty_postgres(request.getfixturevalue("postgres_server_url")) as url:
        fill(url)
        yield url


def fill(url: str) -> None:
    migrate.upgrade_schema(url, "0014")
    engine = migrate.engine_for(url)
    with engine.begin() as connection:
        for statement in OLD_ROWS:
            connection.exec_driver_sql(statement)
    engine.dispose()


def asked(url: str, query: str) -> list[tuple[object, ...]]:
    engine = migrate.engine_for(url)
    with engine.connect() as connection:
        found = [tuple(row) for row in connection.execute(text(query))]
    engine.dispose()
    return found


def test_what_libraries_hold_can_be_sorted_after_the_migration(old_url: str) -> None:
    before = asked(
        old_url, "SELECT library_id, media_id, added_at, revision FROM library_media ORDER BY media_id"
    )
    migrate.upgrade_schema(old_url)
    assert asked(old_url, "SELECT host FROM media ORDER BY id") == [("example.com",), ("b.example",)]
    assert asked(
        old_url, "SELECT host, title_key, published, words FROM library_media ORDER BY media_id"
    ) == [("example.com", "elan”", "2025-12-31", 7), ("b.example", "", "", 0)]
    assert asked(old_url, "SELECT excerpt FROM revisions ORDER BY number") == [
        ("Given",),
        ("and more of it",),
    ]
    migrate.downgrade_schema(old_url, "0014")
    assert before == asked(
        old_url, "SELECT library_id, media_id, added_at, revision FROM library_media ORDER BY media_id"
    )
    engine = migrate.engine_for(old_url)
    with engine.connect() as connection:
        assert "shelf" not in inspect(connection).get_table_names()
    engine.dispose()
    migrate.upgrade_schema(old_url)
    assert asked(old_url, "SELECT words FROM library_media ORDER BY media_id") == [(7,), (0,)]


def test_notes_go_with_their_table_and_nothing_else_does(old_url: str) -> None:
    migrate.upgrade_schema(old_url)
    engine = migrate.engine_for(old_url)
    with engine.begin() as connection:
        connection.exec_driver_sql(
            "INSERT INTO shelf (user_id, media_id, read_at, changed_at) "
            f"VALUES ('{USER}', '{ARTICLE}', '{THEN}', '{THEN}')"
        )
    engine.dispose()
    migrate.downgrade_schema(old_url, "0014")
    assert asked(old_url, "SELECT count(*) FROM media") == [(2,)]
    migrate.upgrade_schema(old_url)
    assert asked(old_url, "SELECT count(*) FROM shelf") == [(0,)]


def test_lists_are_narrowed_by_what_was_there_before(old_url: str) -> None:
    migrate.upgrade_schema(old_url, "0018")
    engine = migrate.engine_for(old_url)
    with engine.begin() as connection:
        connection.exec_driver_sql(
            "INSERT INTO shelf (user_id, media_id, archived_at, changed_at) "
            f"VALUES ('{USER}', '{ARTICLE}', '{THEN}', '{THEN}')"
        )
        connection.exec_driver_sql(
            "INSERT INTO media_file (media_id, revision, storage_path, content_type, size_bytes, filename) "
            f"VALUES ('{ARTICLE}', 2, 'x', 'application/pdf', 1, 'a.pdf')"
        )
    engine.dispose()
    facets = "SELECT facet FROM library_media ORDER BY media_id"
    migrate.upgrade_schema(old_url)
    found = asked(old_url, facets)
    assert [facet_of(number) for [number] in found] == [
        Facet(frozenset({"archived_at"}), MediaStatus.PENDING, Kind.PDF),
        Facet(frozenset(), MediaStatus.PENDING, Kind.WEB_ARTICLE),
    ]
    migrate.downgrade_schema(old_url, "0018")
    assert asked(old_url, "SELECT count(*) FROM shelf") == [(1,)]
    migrate.upgrade_schema(old_url)
    assert asked(old_url, facets) == found
