# ruff: noqa: S608 every name comes from this file
"""shelves: what people note about items, and what lists are sorted by; every text has an excerpt"""

import unicodedata
from collections.abc import Iterator
from itertools import islice
from typing import Any
from urllib.parse import urlsplit

import sqlalchemy as sa
from alembic import op

from nexus.db import list_keys

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

MOMENT = sa.DateTime(timezone=True)
KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
PLACE = ("fragment", "block", "far")
KEYS = ("title_key", "published", "words")
LONGEST_KEY, LONGEST_EXCERPT, LONGEST_DATE = 80, 200, 32
#: How many rows are written at once.
BATCH = 1000

_media = sa.table(
    "media", sa.column("id", sa.Uuid()), sa.column("canonical_url", sa.Text()), sa.column("host", sa.Text())
)
_revisions = sa.table(
    "revisions",
    sa.column("media_id", sa.Uuid()),
    sa.column("number", sa.Integer()),
    sa.column("title", sa.Text()),
    sa.column("title_key", sa.Text()),
    sa.column("excerpt", sa.Text()),
)
_fragments = sa.table(
    "fragments",
    sa.column("media_id", sa.Uuid()),
    sa.column("revision", sa.Integer()),
    sa.column("position", sa.Integer()),
    sa.column("text", sa.Text()),
)


def upgrade() -> None:
    op.add_column("media", sa.Column("host", KEY, nullable=False, server_default=""))
    op.add_column("revisions", sa.Column("title_key", KEY, nullable=False, server_default=""))
    for name in ("host", "title_key", "published"):
        op.add_column("library_media", sa.Column(name, KEY, nullable=False, server_default=""))
    op.add_column("library_media", sa.Column("words", sa.Integer(), nullable=False, server_default="0"))
    connection = op.get_bind()
    _write(connection, _host_written(), _hosts(connection))
    _write(connection, _text_written(), _texts(connection))
    _copy_keys()
    for name in KEYS:
        op.create_index(f"ix_library_media_{name}", "library_media", ["library_id", name, "media_id"])
    op.create_index("ix_library_media_host", "library_media", ["library_id", "host", "added_at", "media_id"])
    for statement in list_keys.create_list_trigger(connection.dialect.name):
        op.execute(statement)
    _create_shelf()


def downgrade() -> None:
    op.drop_table("shelf")
    for statement in list_keys.drop_list_trigger(op.get_bind().dialect.name):
        op.execute(statement)
    for name in ("host", *KEYS):
        op.drop_index(f"ix_library_media_{name}", "library_media")
    for name in ("host", *KEYS):
        op.drop_column("library_media", name)
    op.drop_column("revisions", "title_key")
    op.drop_column("media", "host")


def _create_shelf() -> None:
    op.create_table(
        "shelf",
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("media_id", sa.Uuid(), nullable=False),
        sa.Column("read_at", MOMENT),
        sa.Column("archived_at", MOMENT),
        sa.Column("favourite_at", MOMENT),
        sa.Column("title", sa.Text()),
        sa.Column("title_key", KEY),
        sa.Column("fraction", sa.Double(), server_default="0", nullable=False),
        sa.Column("revision", sa.Integer()),
        sa.Column("fragment", sa.Integer()),
        sa.Column("block", sa.Integer()),
        sa.Column("far", sa.Double()),
        sa.Column("progress_at", MOMENT),
        sa.Column("changed_at", MOMENT, nullable=False),
        sa.CheckConstraint("(title IS NULL) = (title_key IS NULL)", name=op.f("ck_shelf_title_has_key")),
        sa.CheckConstraint("fraction BETWEEN 0 AND 1", name=op.f("ck_shelf_fraction")),
        sa.CheckConstraint(
            " AND ".join(f"(revision IS NULL) = ({column} IS NULL)" for column in PLACE),
            name=op.f("ck_shelf_whole_place"),
        ),
        sa.CheckConstraint(
            "progress_at IS NOT NULL OR (revision IS NULL AND fraction = 0)",
            name=op.f("ck_shelf_place_has_time"),
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_shelf_user_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["media_id"], ["media.id"], name="fk_shelf_media_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("user_id", "media_id", name="pk_shelf"),
    )
    op.create_index("ix_shelf_media", "shelf", ["media_id"])
    named = sa.text("title IS NOT NULL")
    op.create_index(
        "ix_shelf_title",
        "shelf",
        ["user_id", "title_key", "media_id"],
        sqlite_where=named,
        postgresql_where=named,
    )


def _write(connection: sa.Connection, statement: sa.Update, rows: Iterator[dict[str, Any]]) -> None:
    while batch := list(islice(rows, BATCH)):
        connection.execute(statement, batch)


def _host_written() -> sa.Update:
    return sa.update(_media).where(_media.c.id == sa.bindparam("media")).values(host=sa.bindparam("name"))


def _hosts(connection: sa.Connection) -> Iterator[dict[str, Any]]:
    found = sa.select(_media.c.id, _media.c.canonical_url).where(_media.c.canonical_url.is_not(None))
    for row in connection.execute(found).all():
        host = (urlsplit(row.canonical_url).hostname or "").removeprefix("www.")
        yield {"media": row.id, "name": host}


def _text_written() -> sa.Update:
    return (
        sa.update(_revisions)
        .where(
            _revisions.c.media_id == sa.bindparam("media"), _revisions.c.number == sa.bindparam("of_number")
        )
        .values(title_key=sa.bindparam("key"), excerpt=sa.bindparam("words_of_it"))
    )


def _texts(connection: sa.Connection) -> Iterator[dict[str, Any]]:
    columns = (_revisions.c.media_id, _revisions.c.number, _revisions.c.title, _revisions.c.excerpt)
    for row in connection.execute(sa.select(*columns)).all():
        excerpt = row.excerpt or _excerpt(connection, row)
        key = _title_key(row.title)
        yield {"media": row.media_id, "of_number": row.number, "key": key, "words_of_it": excerpt}


def _title_key(title: str | None) -> str:
    plain = unicodedata.normalize("NFKD", (title or "")[: 4 * LONGEST_KEY]).casefold()
    letters = "".join(char for char in plain if not unicodedata.combining(char))
    first = next((place for place, char in enumerate(letters) if char.isalnum()), 0)
    return " ".join(letters[first:].split())[:LONGEST_KEY]


def _excerpt(connection: sa.Connection, row: Any) -> str | None:
    """The first words of a text, without a title that it begins with."""
    pieces = connection.execute(
        sa.select(sa.func.substr(_fragments.c.text, 1, 8 * LONGEST_EXCERPT))
        .where(_fragments.c.media_id == row.media_id, _fragments.c.revision == row.number)
        .order_by(_fragments.c.position)
        .limit(10)
    ).scalars()
    text = next((" ".join(piece.split()) for piece in pieces if piece.strip()), "")
    text = text.removeprefix(" ".join((row.title or "").split())).lstrip() or text
    if len(text) <= LONGEST_EXCERPT:
        return text or None
    cut = text[: LONGEST_EXCERPT - 1]
    return (cut.rpartition(" ")[0] or cut).rstrip(" ,;:.") + "…"


def _copy_keys() -> None:
    held = (
        "FROM revisions WHERE revisions.media_id = library_media.media_id AND revisions.number = "
        "coalesce(library_media.revision, (SELECT media.revision FROM media WHERE media.id = library_media.media_id))"
    )
    date = f"substr(coalesce(revisions.published, ''), 1, {LONGEST_DATE})"
    op.execute(
        "UPDATE library_media SET "
        "host = (SELECT media.host FROM media WHERE media.id = library_media.media_id), "
        f"title_key = coalesce((SELECT revisions.title_key {held}), ''), "
        f"published = coalesce((SELECT {date} {held}), ''), "
        f"words = coalesce((SELECT revisions.words {held}), 0)"
    )
