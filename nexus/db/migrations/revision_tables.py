"""Columns and constraints of the tables that the migration to revisions makes again."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.schema import SchemaItem


def moment() -> sa.DateTime:
    return sa.DateTime(timezone=True)


def id_column() -> sa.Column[Any]:
    return sa.Column("id", sa.Uuid(), nullable=False)


def media_id() -> sa.Column[Any]:
    return sa.Column("media_id", sa.Uuid(), nullable=False)


def number(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Integer(), nullable=False)


def to_media(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["media_id"], ["media.id"], name=f"fk_{table}media_id", ondelete="CASCADE")


def to_revision(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["media_id", "revision"],
        ["revisions.media_id", "revisions.number"],
        name=f"fk_{table}_media_id_revision",
        ondelete="CASCADE",
    )


def fragment_columns() -> list[sa.Column[Any]]:
    return [
        number("position"),
        id_column(),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("html", sa.Text()),
    ]


def chunk_columns() -> list[sa.Column[Any]]:
    return [number(name) for name in ("position", "fragment", "start", "end")]


def asset_columns() -> list[sa.Column[Any]]:
    return [
        sa.Column("name", sa.String(128), nullable=False),
        sa.Column("content_type", sa.String(64), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
    ]


PARTS = {
    "fragments": (fragment_columns, ("position",)),
    "chunks": (chunk_columns, ("position",)),
    "assets": (asset_columns, ("name",)),
}


def file_columns() -> list[sa.Column[Any]]:
    return [
        sa.Column("storage_path", sa.Text(), nullable=False),
        sa.Column("content_type", sa.Text(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("filename", sa.Text(), nullable=False),
    ]


def holding_columns() -> list[sa.Column[Any]]:
    return [
        sa.Column("library_id", sa.Uuid(), nullable=False),
        media_id(),
        sa.Column("added_at", moment(), nullable=False),
    ]


def held(*, revisions: bool = True) -> list[SchemaItem]:
    to_library = sa.ForeignKeyConstraint(
        ["library_id"], ["libraries.id"], name="fk_library_media_library_id", ondelete="CASCADE"
    )
    to_revision = sa.ForeignKeyConstraint(
        ["media_id", "revision"],
        ["revisions.media_id", "revisions.number"],
        name="fk_library_media_media_id_revision",
    )
    return [to_library, to_media("library_media"), *([to_revision] if revisions else [])]


def refresh_columns() -> list[sa.Column[Any]]:
    return [
        sa.Column("requested_by", sa.Uuid(), nullable=False),
        sa.Column("requested_at", moment(), nullable=False),
        sa.Column("attempt", sa.Integer(), server_default="0", nullable=False),
        sa.Column("tries", sa.Integer(), server_default="0", nullable=False),
        sa.Column("run_after", moment(), nullable=False),
        sa.Column("lease_expires_at", moment()),
        sa.Column("error_code", sa.String(64)),
        sa.Column("error_message", sa.Text()),
        sa.Column("request_id", sa.String(128)),
    ]


def refresh_checks() -> list[SchemaItem]:
    return [
        sa.CheckConstraint(
            "(error_code IS NULL) = (error_message IS NULL)", name=op.f("ck_refreshes_error_is_told")
        ),
        sa.CheckConstraint(
            "error_code IS NULL OR lease_expires_at IS NULL", name=op.f("ck_refreshes_failed_has_no_lease")
        ),
        to_media("refreshes"),
        sa.ForeignKeyConstraint(["requested_by"], ["users.id"], name="fk_refreshes_requested_by"),
    ]
