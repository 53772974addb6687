"""Migrations: up, down and up again; what they make is what the tables and machines say."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import UUID

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import CheckConstraint, Connection, inspect, text
from sqlalchemy.exc import IntegrityError

from nexus.db import facets, list_keys, migrate, triggers, word_index
from nexus.db.moves import SUBJECTS
from nexus.db.session import connect
from nexus.db.tables import metadata
from nexus.extract import Extraction
from nexus.media.texts import Found, Readable
from tests.kit.databases import empty_postgres

ROOT = Path(__file__).parents[2]


@pytest.fixture(params=["sqlite", "postgres"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database of this test's own with nothing in it."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'fresh' / 'nexus.sqlite3'}"
        return
    with empty_postgres(request.getfixturevalue("postgres_server_url")) as url:
        yield url


def squeezed(sql: str) -> str:
    return " ".join(sql.split())


def installed(connection: Connection) -> dict[str, str]:
    """The triggers of the database, by name."""
    if connection.dialect.name == "sqlite":
        found = connection.execute(text("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"))
        return {name: squeezed(sql) for name, sql in found}
    found = connection.execute(
        text("SELECT tgname, pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal")
    )
    described = {name: squeezed(sql) for name, sql in found}
    functions = connection.execute(
        text(
            "SELECT proname, prosrc FROM pg_proc"
            " WHERE pronamespace = 'public'::regnamespace AND prorettype = 'trigger'::regtype"
        )
    )
    return described | {name: squeezed(source) for name, source in functions}


def schema(url: str) -> dict[str, object]:
    """Everything that can be compared between two databases."""
    engine = migrate.engine_for(url)
    with engine.connect() as connection:
        tables = (
            told_by_sqlite(connection) if engine.dialect.name == "sqlite" else told_by_postgres(connection)
        )
        found = {"tables": tables, "triggers": installed(connection)}
    engine.dispose()
    return found


def told_by_sqlite(connection: Connection) -> dict[str, object]:
    query = "SELECT tbl_name, sql FROM sqlite_master WHERE type <> 'trigger' AND tbl_name NOT LIKE 'sqlite_%'"
    told: dict[str, list[str]] = {}
    for table, sql in connection.execute(text(query)):
        told.setdefault(table, []).append(sql or "")
    return {table: sorted(told[table]) for table in told if table != "alembic_version"}


def told_by_postgres(connection: Connection) -> dict[str, object]:
    look = inspect(connection)
    return {
        name: (
            [str(column) for column in look.get_columns(name)],
            sorted(map(str, look.get_indexes(name))),
            sorted(map(str, look.get_check_constraints(name))),
            sorted(map(str, look.get_foreign_keys(name))),
        )
        for name in look.get_table_names()
        if name != "alembic_version"
    }


def described(url: str) -> set[str]:
    """The tables that the metadata describes: each database keeps its index of words in tables of its own."""
    dialect = "sqlite" if url.startswith("sqlite") else "postgresql"
    return set(schema(url)["tables"]) - word_index.OWN_NAMES[dialect]


def test_migrations_go_up_down_and_up_again(empty_url: str) -> None:
    migrate.upgrade_schema(empty_url)
    assert migrate.schema_version(empty_url) == migrate.head()
    before = schema(empty_url)
    assert described(empty_url) == set(metadata.tables)
    migrate.downgrade_schema(empty_url, "base")
    assert migrate.schema_version(empty_url) is None
    assert schema(empty_url) == {"tables": {}, "triggers": {}}
    migrate.upgrade_schema(empty_url)
    assert schema(empty_url) == before


def test_upgrading_an_upgraded_database_changes_nothing(empty_url: str) -> None:
    migrate.upgrade_schema(empty_url)
    before = schema(empty_url)
    migrate.upgrade_schema(empty_url)
    assert schema(empty_url) == before


def test_the_migrations_make_what_the_tables_say(empty_url: str) -> None:
    migrate.upgrade_schema(empty_url)
    engine = migrate.engine_for(empty_url)
    with engine.connect() as connection:
        own = word_index.OWN_NAMES[connection.dialect.name]
        opts = {"compare_type": True, "include_object": lambda _item, name, *_: name not in own}
        context = MigrationContext.configure(connection, opts=opts)
        assert compare_metadata(context, metadata) == []
        checks = {
            (table, check["name"])
            for table in metadata.tables
            for check in inspect(connection).get_check_constraints(table)
        }
    engine.dispose()
    declared = {
        (table.name, constraint.name)
        for table in metadata.tables.values()
        for constraint in table.constraints
        if isinstance(constraint, CheckConstraint)
    }
    assert checks == declared


def test_the_installed_triggers_are_those_of_the_machines(empty_url: str) -> None:
    """Names and bodies: a table that changed without a migration shows here."""
    migrate.upgrade_schema(empty_url)
    engine = migrate.engine_for(empty_url)
    with engine.connect() as connection:
        before = installed(connection)
        dialect = connection.dialect.name
        for subject in SUBJECTS:
            for statement in triggers.drop_triggers(subject, dialect):
                connection.execute(text(statement))
        for statement in (
            *list_keys.drop_list_trigger(dialect),
            *facets.drop_facet_triggers(dialect),
            *word_index.drop_word_triggers(dialect),
        ):
            connection.execute(text(statement))
        assert installed(connection) == {}, "a trigger that no machine knows"
        for subject in SUBJECTS:
            for statement in triggers.create_triggers(subject, dialect):
                connection.exec_driver_sql(statement)
        for statement in (
            *list_keys.create_list_trigger(dialect),
            *facets.create_facet_triggers(dialect),
            *word_index.create_word_triggers(dialect),
        ):
            connection.exec_driver_sql(statement)
        made = installed(connection)
        connection.rollback()
    engine.dispose()
    names = {f"{subject.table.name}_status_{what}" for subject in SUBJECTS for what in ("edge", "birth")}
    assert names | {list_keys.TRIGGER} <= set(made)
    assert before == made


def test_processes_that_upgrade_an_empty_database_at_once_all_succeed(empty_url: str) -> None:
    program = (
        "import sys; from nexus.db import migrate; print('up', flush=True);"
        "sys.stdin.readline(); migrate.upgrade_schema(sys.argv[1])"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    started = [
        subprocess.Popen([sys.executable, "-c", program, empty_url], cwd=ROOT, text=True, **pipes)
        for _ in range(2)
    ]
    assert [process.stdout.readline() for process in started] == ["up\n"] * 2
    for process in started:
        process.stdin.write("go\n")
        process.stdin.flush()
    said = [process.communicate()[1] for process in started]
    assert [process.returncode for process in started] == [0, 0], said
    assert migrate.schema_version(empty_url) == migrate.head()
    assert described(empty_url) == set(metadata.tables)


def test_many_connections_that_open_a_new_sqlite_database_at_once_all_succeed(
    tmp_path: Path, migrated_sqlite: Path
) -> None:
    """SQLite does not wait while another connection turns on its write-ahead log."""
    openers = 4

    def enter(url: str, barrier: threading.Barrier) -> None:
        sessions = connect(url)
        barrier.wait(30)
        with sessions.begin():
            pass
        sessions.dispose()

    with ThreadPoolExecutor(openers) as pool:
        for number in range(40):
            path = tmp_path / f"{number}.sqlite3"
            path.write_bytes(migrated_sqlite.read_bytes())
            barrier = threading.Barrier(openers)
            for entered in [pool.submit(enter, f"sqlite:///{path}", barrier) for _ in range(openers)]:
                entered.result(60)


def test_people_keep_their_libraries_when_names_invitations_and_the_audit_log_come(empty_url: str) -> None:
    """With data, up and down: what was there before stays, and what came later goes with its tables."""
    migrate.upgrade_schema(empty_url, "0007")
    engine = migrate.engine_for(empty_url)
    user, library = ("11" * 16, "22" * 16)
    with engine.begin() as connection:
        for statement in (
            f"INSERT INTO users (id, created_at) VALUES ('{user}', '2026-01-01 00:00:00')",
            "INSERT INTO libraries (id, name, owner_user_id, is_default, created_at) "
            f"VALUES ('{library}', 'My library', '{user}', true, '2026-01-01 00:00:00')",
            "INSERT INTO memberships (user_id, library_id, role, created_at) "
            f"VALUES ('{user}', '{library}', 'admin', '2026-01-01 00:00:00')",
        ):
            connection.execute(text(statement))
    migrate.upgrade_schema(empty_url)
    with engine.begin() as connection:
        known = connection.execute(text("SELECT claimed_name, own_name, email FROM users")).one()
        assert tuple(known) == (None, None, None)
        connection.execute(text("UPDATE users SET own_name = 'Ann', email = 'ann@example.com'"))
        connection.execute(
            text(
                "INSERT INTO invitations (id, library_id, email, role, invited_by, created_at, expires_at) VALUES "
                f"('{'33' * 16}', '{library}', 'ben@example.com', 'member', '{user}', '2026-01-01 00:00:00', "
                "'2026-01-15 00:00:00')"
            )
        )
        connection.execute(text("INSERT INTO audit (at, event) VALUES ('2026-01-01 00:00:00', 'invited')"))
    migrate.downgrade_schema(empty_url, "0007")
    with engine.connect() as connection:
        assert connection.scalar(text("SELECT count(*) FROM memberships")) == 1
        assert not {"invitations", "audit"} & set(inspect(connection).get_table_names())
    migrate.upgrade_schema(empty_url)
    with engine.connect() as connection:
        assert connection.scalar(text("SELECT own_name FROM users")) is None
        assert connection.scalar(text("SELECT count(*) FROM audit")) == 0
    engine.dispose()


@pytest.mark.parametrize(
    "invitee", ["NULL, NULL", "'ann@example.com', '11111111111111111111111111111111'"], ids=["nobody", "two"]
)
def test_the_database_refuses_an_invitation_to_nobody_or_to_two(empty_url: str, invitee: str) -> None:
    migrate.upgrade_schema(empty_url)
    engine = migrate.engine_for(empty_url)
    one = "11" * 16
    with engine.connect() as connection:
        connection.execute(
            text(f"INSERT INTO users (id, created_at) VALUES ('{one}', '2026-01-01 00:00:00')")
        )
        connection.execute(
            text(
                "INSERT INTO libraries (id, name, owner_user_id, is_default, created_at) "
                f"VALUES ('{one}', 'Shared', '{one}', false, '2026-01-01 00:00:00')"
            )
        )
        with pytest.raises(IntegrityError):
            connection.execute(
                text(
                    "INSERT INTO invitations "
                    "(id, library_id, email, user_id, role, invited_by, created_at, expires_at) "
                    f"VALUES ('{one}', '{one}', {invitee}, 'member', '{one}', '2026-01-01 00:00:00', "
                    "'2026-01-15 00:00:00')"
                )
            )
        connection.rollback()
    engine.dispose()


OLD = "0007"
USER, LIBRARY = (f"{n:032x}" for n in (1, 2))
ARTICLE, SCAN, BOOK, BARE = (f"{n:032x}" for n in (3, 4, 5, 6))
THEN = "2026-01-02 03:04:05.000000"


def old_rows(kind: str) -> list[str]:
    """A database before there were revisions: an article at its fifth text, a scan without any, a book, and a text from
    before documents were kept."""

    def item(media_id: str, kind: str) -> list[str]:
        return [
            "INSERT INTO media (id, kind, title, run_after, created_by_user_id, created_at, updated_at) VALUES"
            f" ('{media_id}', '{kind}', 'Title', '{THEN}', '{USER}', '{THEN}', '{THEN}')",
            f"INSERT INTO library_media VALUES ('{LIBRARY}', '{media_id}', '{THEN}')",
        ]

    def text(media_id: str, *texts: str) -> list[str]:
        return [
            f"INSERT INTO fragments (media_id, position, id, text) VALUES ('{media_id}', {n}, '{media_id}', '{one}')"
            for n, one in enumerate(texts)
        ]

    def document(media_id: str, number: int) -> str:
        return (
            "INSERT INTO documents (media_id, revision, extractor, words, outline, fetched_url, written_at) VALUES"
            f" ('{media_id}', {number}, 'nexus 0', 2, '[]', 'https://a.example', '{THEN}')"
        )

    def file(media_id: str, path: str) -> str:
        return f"INSERT INTO media_file VALUES ('{media_id}', '{path}', 'application/pdf', 3, 'a.pdf')"

    picture = "x'00'" if kind == "sqlite" else "'\\x00'::bytea"
    return [
        f"INSERT INTO users VALUES ('{USER}', '{THEN}')",
        f"INSERT INTO libraries VALUES ('{LIBRARY}', 'My library', '{USER}', true, '{THEN}')",
        *item(ARTICLE, "web_article"),
        *text(ARTICLE, "one", "two"),
        document(ARTICLE, 5),
        file(ARTICLE, "media/a/fetched-1.pdf"),
        f"INSERT INTO assets VALUES ('{ARTICLE}', 'p.png', 'image/png', {picture})",
        f"INSERT INTO chunks VALUES ('{ARTICLE}', 0, 0, 0, 3)",
        f"INSERT INTO refreshes (media_id, requested_by, requested_at, run_after) VALUES"
        f" ('{ARTICLE}', '{USER}', '{THEN}', '{THEN}')",
        *item(SCAN, "web_article"),
        file(SCAN, "media/s/fetched-1.pdf"),
        *item(BOOK, "pdf"),
        *text(BOOK, "page"),
        document(BOOK, 1),
        file(BOOK, "media/b/original.pdf"),
        *item(BARE, "web_article"),
        *text(BARE, "older than documents"),
    ]


def asked(url: str, sql: str) -> list[tuple[object, ...]]:
    engine = migrate.engine_for(url)
    with engine.connect() as connection:
        found = [tuple(row) for row in connection.execute(text(sql))]
    engine.dispose()
    return found


def rows_of(url: str, table: str) -> list[list[tuple[str, object]]]:
    """Whatever the order of rows and columns."""
    engine = migrate.engine_for(url)
    with engine.connect() as connection:
        found = connection.execute(text(f"SELECT * FROM {table}")).mappings().all()
    engine.dispose()
    return sorted((sorted(row.items()) for row in found), key=str)


def test_texts_become_revisions_and_go_back(empty_url: str) -> None:
    migrate.upgrade_schema(empty_url, OLD)
    engine = migrate.engine_for(empty_url)
    with engine.begin() as connection:
        for statement in old_rows(engine.dialect.name):
            connection.exec_driver_sql(statement)
    engine.dispose()
    guards = schema(empty_url)["triggers"]
    before = {table: rows_of(empty_url, table) for table in TEXT_TABLES}
    migrate.upgrade_schema(empty_url)
    kept = {name: made for name, made in schema(empty_url)["triggers"].items() if name in guards}
    assert kept == guards
    assert asked(empty_url, "SELECT revision, newest_revision, last_revision FROM media ORDER BY id") == [
        (5, 5, 5),
        (1, 0, 1),
        (1, 1, 1),
        (1, 1, 1),
    ]
    assert asked(
        empty_url,
        "SELECT number, title, origin, extractor, pieces, characters FROM revisions ORDER BY media_id",
    ) == [
        (5, "Title", "extracted", "nexus 0", 2, 6),
        (1, "Title", "extracted", "nexus 0", 1, 4),
        (1, "Title", "extracted", "unknown", 1, 20),
    ]
    assert asked(empty_url, "SELECT revision, text FROM fragments ORDER BY media_id, position") == [
        (5, "one"),
        (5, "two"),
        (1, "page"),
        (1, "older than documents"),
    ]
    assert asked(empty_url, "SELECT revision FROM media_file ORDER BY media_id") == [(5,), (1,), (0,)]
    assert asked(empty_url, "SELECT revision, moved_at FROM library_media") == [(None, None)] * 4
    assert asked(empty_url, "SELECT count(*) FROM refreshes WHERE id = media_id") == [(1,)]
    migrate.downgrade_schema(empty_url, OLD)
    after = {table: rows_of(empty_url, table) for table in TEXT_TABLES}
    for rows in (before, after):
        # Texts that had no excerpt got one on the way, which stays.
        rows["documents"] = sorted(
            ([pair for pair in row if pair[0] != "excerpt"] for row in rows["documents"]), key=str
        )
    made = [row for row in after["documents"] if row not in before["documents"]]
    assert [dict(row)["extractor"] for row in made] == ["unknown"]
    after["documents"] = [row for row in after["documents"] if row not in made]
    assert after == before


#: Without the chunks: workers make them again from the text.
TEXT_TABLES = ("documents", "fragments", "assets", "media_file", "library_media", "refreshes")


def test_an_old_text_is_found_again_after_the_migration(empty_url: str) -> None:
    """Its hash is the one that a refresh of the unchanged page makes."""
    migrate.upgrade_schema(empty_url, OLD)
    engine = migrate.engine_for(empty_url)
    with engine.begin() as connection:
        for statement in old_rows(engine.dialect.name):
            connection.exec_driver_sql(statement)
    engine.dispose()
    migrate.upgrade_schema(empty_url)
    book = Found(Extraction.plain("Title", "page"), "nexus 0")
    ready = Readable.of(UUID(BOOK), 1, book)
    hashes = asked(empty_url, "SELECT content_hash FROM revisions ORDER BY media_id")
    assert hashes[1] == (ready.revision["content_hash"],)
