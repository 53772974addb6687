"""search: chunks with their words, vectors, and what is still to be indexed; every text that is there is"""

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Any
from uuid import uuid4

import sqlalchemy as sa
from alembic import op

from nexus.db import word_index
from nexus.db.migrations.revision_tables import chunk_columns, media_id, moment, number, to_revision

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

UNEMBEDDED = sa.text("processing_status = 'ready_for_reading'")
WAITING = sa.text("error_code IS NULL AND lease_expires_at IS NULL")
HELD = sa.text("lease_expires_at IS NOT NULL")
#: Items that were added last are indexed first.
FIRST = datetime(2000, 1, 1, tzinfo=UTC)
BATCH = 1000

_media = sa.table(
    "media",
    sa.column("id", sa.Uuid()),
    sa.column("created_by_user_id", sa.Uuid()),
    sa.column("created_at", moment()),
)
_revisions = sa.table("revisions", sa.column("media_id", sa.Uuid()))


def upgrade() -> None:
    dialect = op.get_bind().dialect.name
    op.drop_table("chunks")
    _create_chunks()
    _create_vectors(dialect)
    for statement in word_index.create_word_index(dialect):
        op.execute(statement.replace(":", r"\:"))
    _create_indexing()
    _index("ix_media_unembedded", "media", ["created_by_user_id", "run_after", "id"], UNEMBEDDED)
    _ask_for_all(op.get_bind())


def downgrade() -> None:
    op.drop_index("ix_media_unembedded", "media")
    for statement in word_index.drop_word_index(op.get_bind().dialect.name):
        op.execute(statement)
    op.rename_table("chunks", "cut_chunks")
    op.create_table(
        "chunks",
        media_id(),
        number("revision"),
        *chunk_columns(),
        to_revision("chunks"),
        sa.PrimaryKeyConstraint("media_id", "revision", "position", name="pk_chunks_of_texts"),
    )
    columns = 'media_id, revision, position, fragment, start, "end"'
    op.execute(f"INSERT INTO chunks ({columns}) SELECT {columns} FROM cut_chunks WHERE position >= 0")  # noqa: S608
    for table in ("embedding_progress", "indexing", "vector_sets", "vectors", "word_languages", "cut_chunks"):
        op.drop_table(table)


def _key(name: str) -> sa.Column[Any]:
    kind = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    return sa.Column(name, kind, autoincrement=True, nullable=False)


def _text(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Text(), nullable=False)


def _create_chunks() -> None:
    op.create_table(
        "chunks",
        _key("key"),
        media_id(),
        number("revision"),
        *chunk_columns(),
        sa.Column("id", sa.Uuid(), nullable=False),
        _text("head"),
        _text("words"),
        number("length"),
        to_revision("chunks"),
        sa.PrimaryKeyConstraint("key", name="pk_chunks"),
        sa.UniqueConstraint("media_id", "revision", "position", name="uq_chunks_media_id_revision_position"),
    )
    op.create_index("ix_chunks_id", "chunks", ["media_id", "id"])
    op.create_table(
        "word_languages",
        sa.Column("language", sa.String(32), nullable=False),
        sa.PrimaryKeyConstraint("language", name="pk_word_languages"),
    )


def _create_vectors(dialect: str) -> None:
    transaction = "0" if dialect == "sqlite" else "(pg_current_xact_id()::text::bigint)"
    op.create_table(
        "vectors",
        _key("seq"),
        sa.Column("tx", sa.BigInteger(), server_default=sa.text(transaction), nullable=False),
        media_id(),
        sa.Column("chunk_id", sa.Uuid(), nullable=False),
        _text("model"),
        sa.Column("vector", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["media_id"], ["media.id"], name="fk_vectors_media_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("seq", name="pk_vectors"),
        sa.UniqueConstraint("media_id", "chunk_id", "model", name="uq_vectors_media_id_chunk_id_model"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_vectors_order", "vectors", ["tx", "seq"])
    op.create_table(
        "vector_sets",
        _text("model"),
        number("dimension"),
        sa.Column("begun_at", moment(), nullable=False),
        sa.Column("whole_at", moment()),
        sa.PrimaryKeyConstraint("model", name="pk_vector_sets"),
    )


def _create_indexing() -> None:
    op.create_table(
        "indexing",
        sa.Column("id", sa.Uuid(), nullable=False),
        media_id(),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("attempt", sa.Integer(), server_default="0", nullable=False),
        sa.Column("tries", sa.Integer(), server_default="0", nullable=False),
        sa.Column("run_after", moment(), nullable=False),
        sa.Column("lease_expires_at", moment()),
        sa.Column("error_code", sa.String(64)),
        sa.CheckConstraint(
            "error_code IS NULL OR lease_expires_at IS NULL", name=op.f("ck_indexing_given_up_has_no_lease")
        ),
        sa.ForeignKeyConstraint(["media_id"], ["media.id"], name="fk_indexing_media_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_indexing_user_id"),
        sa.PrimaryKeyConstraint("id", name="pk_indexing"),
        sa.UniqueConstraint("media_id", name="uq_indexing_media_id"),
    )
    _index("ix_indexing_waiting", "indexing", ["user_id", "run_after", "id"], WAITING)
    _index("ix_indexing_held", "indexing", ["lease_expires_at"], HELD)
    op.create_table(
        "embedding_progress",
        media_id(),
        *(number(name) for name in ("attempt", "done", "total")),
        sa.ForeignKeyConstraint(
            ["media_id"], ["media.id"], name="fk_embedding_progress_media_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("media_id", name="pk_embedding_progress"),
    )


def _index(name: str, table: str, columns: list[str], where: sa.TextClause) -> None:
    op.create_index(name, table, columns, sqlite_where=where, postgresql_where=where)


def _ask_for_all(connection: sa.Connection) -> None:
    """Ask for every item with a text to be indexed: workers do it after the upgrade."""
    indexing = sa.table(
        "indexing",
        sa.column("id", sa.Uuid()),
        sa.column("media_id", sa.Uuid()),
        sa.column("user_id", sa.Uuid()),
        sa.column("run_after", moment()),
    )
    requests = _requests(connection)
    while batch := list(islice(requests, BATCH)):
        connection.execute(sa.insert(indexing), batch)


def _requests(connection: sa.Connection) -> Iterator[dict[str, Any]]:
    with_text = sa.select(_revisions.c.media_id).where(_revisions.c.media_id == _media.c.id).exists()
    rows = connection.execute(
        sa.select(_media.c.id, _media.c.created_by_user_id, _media.c.created_at).where(with_text)
    ).all()
    newest = max((row.created_at for row in rows), default=FIRST)
    for row in rows:
        after = FIRST + (newest - row.created_at)
        yield {"id": uuid4(), "media_id": row.id, "user_id": row.created_by_user_id, "run_after": after}
