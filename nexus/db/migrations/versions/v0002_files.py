"""uploads, the name of a file, and duplicates"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # No row exists before this: files could not be taken in.
    op.drop_table("media_file")
    op.create_table(
        "media_file",
        sa.Column("media_id", sa.Uuid(), nullable=False),
        sa.Column("storage_path", sa.Text(), nullable=False),
        sa.Column("content_type", sa.Text(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("filename", sa.Text(), nullable=False),
        _to_media("media_file"),
        sa.PrimaryKeyConstraint("media_id", name="pk_media_file"),
    )
    op.create_table(
        "uploads",
        sa.Column("media_id", sa.Uuid(), nullable=False),
        sa.Column("filename", sa.Text(), nullable=False),
        sa.Column("content_type", sa.Text(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("begun_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        _to_media("uploads"),
        sa.PrimaryKeyConstraint("media_id", name="pk_uploads"),
    )
    op.create_index("ix_uploads_begun", "uploads", ["begun_at"])
    op.create_table(
        "duplicates",
        sa.Column("media_id", sa.Uuid(), nullable=False),
        sa.Column("winner_id", sa.Uuid(), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["winner_id"], ["media.id"], name="fk_duplicates_winner_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_duplicates_user_id"),
        sa.PrimaryKeyConstraint("media_id", name="pk_duplicates"),
    )
    op.create_index("ix_duplicates_winner", "duplicates", ["winner_id"])


def downgrade() -> None:
    for table in ("duplicates", "uploads", "media_file"):
        op.drop_table(table)
    op.create_table(
        "media_file",
        sa.Column("media_id", sa.Uuid(), nullable=False),
        sa.Column("storage_path", sa.Text(), nullable=False),
        sa.Column("content_type", sa.Text(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        _to_media("media_file"),
        sa.PrimaryKeyConstraint("media_id", name="pk_media_file"),
    )


def _to_media(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["media_id"], ["media.id"], name=f"fk_{table}_media_id", ondelete="CASCADE"
    )
