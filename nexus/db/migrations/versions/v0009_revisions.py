# ruff: noqa: S608 every name comes from this file
"""revisions: every text of an item has a number and never changes; libraries hold one of them"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.schema import SchemaItem

from nexus.db.migrations import revision_tables as tables

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_WAITING = "error_code IS NULL AND lease_expires_at IS NULL"
_HELD = "lease_expires_at IS NOT NULL"
_FACTS = ("byline", "site", "published", "language", "lead_image", "excerpt")
_ONE = "SELECT 1 FROM"
_FILES = "('epub', 'pdf', 'text')"


def upgrade() -> None:
    for name in ("revision", "newest_revision", "last_revision"):
        op.add_column("media", sa.Column(name, sa.Integer(), nullable=False, server_default="0"))
    op.add_column("jobs", sa.Column("media_revision", sa.Integer()))
    _create_revisions()
    _number_texts()
    _fill_revisions(op.get_bind())
    op.drop_table("documents")
    for table, (columns, keys) in tables.PARTS.items():
        _make_again(
            table,
            [tables.media_id(), tables.number("revision"), *columns(), tables.to_revision(table)],
            ["media_id", "revision", *keys],
            {"revision": "m.revision"},
        )
    _make_again(
        "media_file",
        [tables.media_id(), tables.number("revision"), *tables.file_columns(), tables.to_media("media_file")],
        ["media_id", "revision"],
        {"revision": f"CASE WHEN m.kind IN {_FILES} THEN 0 ELSE m.revision END"},
    )
    _make_again(
        "library_media",
        [
            *tables.holding_columns(),
            sa.Column("revision", sa.Integer()),
            sa.Column("moved_at", tables.moment()),
            *tables.held(),
        ],
        ["library_id", "media_id"],
        {"revision": "NULL", "moved_at": "NULL"},
    )
    _index_library_media()
    _create_earlier_holdings()
    _make_again(
        "refreshes",
        [tables.id_column(), tables.media_id(), *tables.refresh_columns(), *tables.refresh_checks()],
        ["id"],
        {"id": "o.media_id"},
    )
    _index_refreshes(["requested_by", "run_after", "id"])
    op.create_index("uq_refreshes_request", "refreshes", ["media_id", "requested_by"], unique=True)


def downgrade() -> None:
    """Of several revisions, the newest that everybody may read becomes the text of the item."""
    op.execute(
        "DELETE FROM refreshes WHERE id IN (SELECT a.id FROM refreshes a JOIN refreshes b"
        " ON b.media_id = a.media_id AND b.id < a.id)"
    )
    _make_again(
        "refreshes",
        [tables.media_id(), *tables.refresh_columns(), *tables.refresh_checks()],
        ["media_id"],
        {},
    )
    _index_refreshes(["requested_by", "run_after", "media_id"])
    op.drop_table("earlier_holdings")
    _make_again(
        "library_media",
        [*tables.holding_columns(), *tables.held(revisions=False)],
        ["library_id", "media_id"],
        {},
    )
    _index_library_media()
    kept = "o.revision IN (0, CASE m.newest_revision WHEN 0 THEN m.revision ELSE m.newest_revision END)"
    files = [tables.media_id(), *tables.file_columns(), tables.to_media("media_file")]
    _make_again("media_file", files, ["media_id"], {}, where=kept)
    for table, (columns, keys) in tables.PARTS.items():
        _make_again(
            table,
            [tables.media_id(), *columns(), tables.to_media(table)],
            ["media_id", *keys],
            {},
            where="o.revision = m.newest_revision",
        )
    _create_documents()
    same = ", ".join(
        ("extractor", *_FACTS, "words", "outline", "fetched_url", "etag", "last_modified", "written_at")
    )
    op.execute(
        f"INSERT INTO documents (media_id, revision, {same}) SELECT r.media_id, r.number, {_of('r', same)}"
        " FROM revisions r JOIN media m ON m.id = r.media_id AND m.newest_revision = r.number"
    )
    op.drop_table("revisions")
    op.drop_column("jobs", "media_revision")
    for name in ("last_revision", "newest_revision", "revision"):
        op.drop_column("media", name)


def _of(table: str, columns: str) -> str:
    return ", ".join(f"{table}.{name}" for name in columns.split(", "))


def _create_revisions() -> None:
    op.create_table(
        "revisions",
        tables.media_id(),
        tables.number("number"),
        sa.Column("title", sa.Text()),
        sa.Column("content_hash", sa.String(64), nullable=False),
        sa.Column("origin", sa.String(16), nullable=False),
        sa.Column("made_by", sa.Uuid()),
        sa.Column("private_to", sa.Uuid()),
        sa.Column("extractor", sa.Text(), nullable=False),
        *(sa.Column(name, sa.Text()) for name in _FACTS),
        sa.Column("words", sa.Integer(), nullable=False),
        sa.Column("pieces", sa.Integer(), nullable=False),
        sa.Column("characters", sa.BigInteger(), nullable=False),
        sa.Column("outline", sa.Text(), nullable=False),
        sa.Column("fetched_url", sa.Text()),
        sa.Column("written_at", tables.moment(), nullable=False),
        sa.Column("seen_at", tables.moment(), nullable=False),
        sa.Column("seen_by", sa.Text(), nullable=False),
        sa.Column("etag", sa.Text()),
        sa.Column("last_modified", sa.Text()),
        sa.CheckConstraint("origin IN ('entered', 'extracted')", name=op.f("ck_revisions_origin")),
        sa.CheckConstraint(
            "(origin = 'entered') = (private_to IS NOT NULL)", name=op.f("ck_revisions_entered_is_private")
        ),
        tables.to_media("revisions"),
        *(
            sa.ForeignKeyConstraint([name], ["users.id"], name=f"fk_revisions_{name}")
            for name in ("made_by", "private_to")
        ),
        sa.PrimaryKeyConstraint("media_id", "number", name="pk_revisions"),
    )


def _create_documents() -> None:
    op.create_table(
        "documents",
        tables.media_id(),
        tables.number("revision"),
        sa.Column("extractor", sa.Text(), nullable=False),
        *(sa.Column(name, sa.Text()) for name in _FACTS),
        sa.Column("words", sa.Integer(), nullable=False),
        sa.Column("outline", sa.Text(), nullable=False),
        *(sa.Column(name, sa.Text()) for name in ("fetched_url", "etag", "last_modified")),
        sa.Column("written_at", tables.moment(), nullable=False),
        tables.to_media("documents"),
        sa.PrimaryKeyConstraint("media_id", name="pk_documents"),
    )


def _number_texts() -> None:
    """The present text keeps its number. One from before documents were kept is the first, and so is a fetched file
    without a text."""
    number = "(SELECT d.revision FROM documents d WHERE d.media_id = media.id)"
    has_text = f"EXISTS ({_ONE} fragments f WHERE f.media_id = media.id)"
    has_file = f"EXISTS ({_ONE} media_file f WHERE f.media_id = media.id) AND kind NOT IN {_FILES}"
    op.execute(f"UPDATE media SET revision = coalesce({number}, 1) WHERE {has_text} OR {has_file}")
    op.execute(f"UPDATE media SET newest_revision = revision WHERE {has_text}")
    op.execute("UPDATE media SET last_revision = revision")


def _fill_revisions(connection: sa.Connection) -> None:
    media = sa.table("media", *(sa.column(name, kind) for name, kind in _MEDIA))
    documents = sa.table(
        "documents",
        sa.column("media_id", sa.Uuid),
        *map(sa.column, _DOCUMENT),
        sa.column("written_at", tables.moment()),
    )
    texts = sa.select(media, documents).outerjoin(documents, documents.c.media_id == media.c.id)
    found = connection.execute(texts.where(media.c.newest_revision > 0)).mappings().all()
    revisions = sa.table(
        "revisions",
        *(sa.column(name, sa.Uuid if name == "media_id" else None) for name in _REVISION),
        *(sa.column(name, tables.moment()) for name in ("written_at", "seen_at")),
    )
    for row in found:
        connection.execute(revisions.insert().values(_revision_of(connection, row)))


_MEDIA: Sequence[tuple[str, Any]] = (
    ("id", sa.Uuid),
    ("title", sa.Text),
    ("newest_revision", sa.Integer),
    ("updated_at", sa.DateTime(timezone=True)),
)
_DOCUMENT = ("extractor", *_FACTS, "words", "outline", "fetched_url", "etag", "last_modified")
_REVISION = (
    *("media_id", "number", "title", "content_hash", "origin", "pieces", "characters", "seen_by"),
    *_DOCUMENT,
)
_PIECES = sa.table("fragments", sa.column("media_id", sa.Uuid), *map(sa.column, ("position", "text", "html")))
_PICTURES = sa.table(
    "assets", sa.column("media_id", sa.Uuid), *map(sa.column, ("name", "content_type", "data"))
)


def _revision_of(connection: sa.Connection, row: sa.RowMapping) -> dict[str, Any]:
    one = row["id"]
    pieces = connection.execute(
        sa.select(_PIECES.c.text, _PIECES.c.html)
        .where(_PIECES.c.media_id == one)
        .order_by(_PIECES.c.position)
    ).all()
    pictures = connection.execute(
        sa.select(_PICTURES.c.name, _PICTURES.c.content_type, _PICTURES.c.data)
        .where(_PICTURES.c.media_id == one)
        .order_by(_PICTURES.c.name)
    ).all()
    known = row["extractor"] is not None
    outline = row["outline"] if known else "[]"
    written_at = row["written_at"] if known else row["updated_at"]
    extractor = row["extractor"] if known else "unknown"
    said = [
        row["title"],
        *(row[name] for name in _FACTS),
        outline,
        *(part for piece in pieces for part in piece),
    ]
    return {
        **{name: row[name] for name in _DOCUMENT},
        "media_id": one,
        "number": row["newest_revision"],
        "title": row["title"],
        "content_hash": _hash(said, pictures),
        "origin": "extracted",
        "extractor": extractor,
        "words": row["words"] if known else sum(len(piece[0].split()) for piece in pieces),
        "outline": outline,
        "pieces": len(pieces),
        "characters": sum(len(piece[0]) for piece in pieces),
        "written_at": written_at,
        "seen_at": written_at,
        "seen_by": extractor,
    }


def _hash(said: Sequence[str | None], pictures: Sequence[Any]) -> str:
    """As `nexus.media.revisions` makes it, so that the next refresh finds the same text again."""
    digest = hashlib.sha256()
    for part in said:
        data = b"" if part is None else part.encode(errors="surrogatepass")
        digest.update(b"%d:" % (-1 if part is None else len(data)))
        digest.update(data)
    for name, content_type, data in pictures:
        digest.update(f"{name} {content_type} {hashlib.sha256(data).hexdigest()}".encode())
    return digest.hexdigest()


def _make_again(
    table: str,
    items: Sequence[SchemaItem],
    keys: Sequence[str],
    values: Mapping[str, str],
    where: str = "1 = 1",
) -> None:
    """Create a table with other keys and copy its rows. SQLite can't change the keys of one that is there."""
    op.execute(f"CREATE TABLE old_{table} AS SELECT * FROM {table}")
    op.drop_table(table)
    op.create_table(table, *items, sa.PrimaryKeyConstraint(*keys, name=f"pk_{table}"))
    names = [item.name for item in items if isinstance(item, sa.Column)]
    copied = ", ".join(values.get(name, f'o."{name}"') for name in names)
    columns = ", ".join(f'"{name}"' for name in names)
    op.execute(
        f"INSERT INTO {table} ({columns}) SELECT {copied} FROM old_{table} o"
        f" JOIN media m ON m.id = o.media_id WHERE {where}"
    )
    op.drop_table(f"old_{table}")


def _create_earlier_holdings() -> None:
    op.create_table(
        "earlier_holdings",
        sa.Column("library_id", sa.Uuid(), nullable=False),
        tables.media_id(),
        tables.number("revision"),
        sa.Column("until", tables.moment(), nullable=False),
        sa.ForeignKeyConstraint(
            ["library_id", "media_id"],
            ["library_media.library_id", "library_media.media_id"],
            name="fk_earlier_holdings_library_id_media_id",
            ondelete="CASCADE",
        ),
        tables.to_revision("earlier_holdings"),
        sa.PrimaryKeyConstraint("library_id", "media_id", "revision", name="pk_earlier_holdings"),
    )
    op.create_index("ix_earlier_holdings_revision", "earlier_holdings", ["media_id", "revision"])


def _index_library_media() -> None:
    op.create_index("ix_library_media_order", "library_media", ["library_id", "added_at", "media_id"])
    op.create_index("ix_library_media_media", "library_media", ["media_id"])


def _index_refreshes(waiting: list[str]) -> None:
    for name, columns, where in (
        ("ix_refreshes_waiting", waiting, sa.text(_WAITING)),
        ("ix_refreshes_held", ["lease_expires_at"], sa.text(_HELD)),
    ):
        op.create_index(name, "refreshes", columns, sqlite_where=where, postgresql_where=where)
