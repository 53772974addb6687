"""pictures: those of articles are fetched by Nexus; texts that are there already get theirs too"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from html import unescape
from typing import Any
from uuid import uuid4

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

MOMENT = sa.DateTime(timezone=True)
WAITING = "name IS NULL AND error_code IS NULL AND lease_expires_at IS NULL"
KEPT = ("storage_path", "sha256", "content_type", "size_bytes", "width", "height")
SOURCE = re.compile(r'<img\b[^<>]* src="(https?://[^"]*)"')
#: How many pictures of a text are fetched at most, and how many rows are written at once.
MOST, BATCH = 200, 1000


def upgrade() -> None:
    _create_pictures()
    batch: list[dict[str, Any]] = []
    for row in _old_pictures(op.get_bind()):
        batch.append(row)
        if len(batch) == BATCH:
            op.bulk_insert(_table(), batch)
            batch = []
    if batch:
        op.bulk_insert(_table(), batch)


def downgrade() -> None:
    op.drop_table("pictures")


def _create_pictures() -> None:
    op.create_table(
        "pictures",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("media_id", sa.Uuid(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("asked_at", MOMENT, nullable=False),
        sa.Column("attempt", sa.Integer(), server_default="0", nullable=False),
        sa.Column("tries", sa.Integer(), server_default="0", nullable=False),
        sa.Column("run_after", MOMENT, nullable=False),
        sa.Column("lease_expires_at", MOMENT),
        sa.Column("error_code", sa.String(64)),
        sa.Column("name", sa.String(128)),
        sa.Column("storage_path", sa.Text()),
        sa.Column("sha256", sa.String(64)),
        sa.Column("content_type", sa.String(64)),
        sa.Column("size_bytes", sa.BigInteger()),
        sa.Column("width", sa.Integer()),
        sa.Column("height", sa.Integer()),
        sa.CheckConstraint(
            " AND ".join(f"(name IS NULL) = ({column} IS NULL)" for column in KEPT),
            name=op.f("ck_pictures_whole"),
        ),
        sa.CheckConstraint("name IS NULL OR error_code IS NULL", name=op.f("ck_pictures_kept_or_given_up")),
        sa.CheckConstraint(
            "lease_expires_at IS NULL OR (name IS NULL AND error_code IS NULL)",
            name=op.f("ck_pictures_held_is_unfinished"),
        ),
        sa.ForeignKeyConstraint(
            ["media_id", "revision"],
            ["revisions.media_id", "revisions.number"],
            name="fk_pictures_media_id_revision",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_pictures_user_id"),
        sa.PrimaryKeyConstraint("id", name="pk_pictures"),
    )
    op.create_index("uq_pictures_place", "pictures", ["media_id", "revision", "place"], unique=True)
    for name, columns, condition in (
        ("ix_pictures_waiting", ["user_id", "run_after", "id"], WAITING),
        ("ix_pictures_held", ["lease_expires_at"], "lease_expires_at IS NOT NULL"),
    ):
        where = sa.text(condition)
        op.create_index(name, "pictures", columns, sqlite_where=where, postgresql_where=where)


def _table() -> sa.TableClause:
    return sa.table(
        "pictures",
        sa.column("id", sa.Uuid()),
        sa.column("media_id", sa.Uuid()),
        sa.column("revision", sa.Integer()),
        sa.column("place", sa.Integer()),
        sa.column("source", sa.Text()),
        sa.column("user_id", sa.Uuid()),
        sa.column("asked_at", MOMENT),
        sa.column("run_after", MOMENT),
    )


def _old_pictures(connection: sa.Connection) -> Iterator[dict[str, Any]]:
    """The pictures of all texts that there are, to be fetched by and by."""
    now = datetime.now(UTC)
    for text in connection.execute(_texts()).all():
        htmls = connection.execute(_htmls(), {"media_id": text.media_id, "number": text.number}).scalars()
        lead = [text.lead_image] if (text.lead_image or "").startswith(("http://", "https://")) else []
        named = [unescape(source) for html in htmls for source in SOURCE.findall(html)]
        for place, source in enumerate(list(dict.fromkeys(lead + named))[:MOST]):
            yield {
                "id": uuid4(),
                "media_id": text.media_id,
                "revision": text.number,
                "place": place,
                "source": source,
                "user_id": text.private_to or text.created_by_user_id,
                "asked_at": now,
                "run_after": now,
            }


def _texts() -> sa.Select[Any]:
    media = sa.table("media", sa.column("id", sa.Uuid()), sa.column("created_by_user_id", sa.Uuid()))
    revisions = sa.table(
        "revisions",
        sa.column("media_id", sa.Uuid()),
        sa.column("number", sa.Integer()),
        sa.column("private_to", sa.Uuid()),
        sa.column("lead_image", sa.Text()),
    )
    return sa.select(revisions, media.c.created_by_user_id).join(media, media.c.id == revisions.c.media_id)


def _htmls() -> sa.Select[Any]:
    fragments = sa.table(
        "fragments",
        sa.column("media_id", sa.Uuid()),
        sa.column("revision", sa.Integer()),
        sa.column("position", sa.Integer()),
        sa.column("html", sa.Text()),
    )
    return (
        sa.select(fragments.c.html)
        .where(
            fragments.c.media_id == sa.bindparam("media_id", type_=sa.Uuid()),
            fragments.c.revision == sa.bindparam("number", type_=sa.Integer()),
            fragments.c.html.contains("<img"),
        )
        .order_by(fragments.c.position)
    )
