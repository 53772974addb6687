"""users, libraries, media and their history"""

import sqlalchemy as sa
from alembic import op

from nexus.db import triggers
from nexus.db.moves import MEDIA_ROWS

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

WAITING = "processing_status = 'pending' AND (kind NOT IN ('epub', 'pdf', 'text') OR file_sha256 IS NOT NULL)"


def _transaction() -> str:
    return "0" if op.get_bind().dialect.name == "sqlite" else "(pg_current_xact_id()::text::bigint)"


def upgrade() -> None:
    op.create_table(
        "history",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False
        ),
        sa.Column("tx", sa.BigInteger(), server_default=sa.text(_transaction()), nullable=False),
        sa.Column("subject", sa.String(length=16), nullable=False),
        sa.Column("subject_id", sa.Uuid(), nullable=False),
        sa.Column("event", sa.String(length=32), nullable=False),
        sa.Column("from_status", sa.String(length=32), nullable=True),
        sa.Column("to_status", sa.String(length=32), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("actor", sa.String(length=64), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("error_code", sa.String(length=64), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_history")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_history_order", "history", ["tx", "id"], unique=False)
    op.create_index("ix_history_subject", "history", ["subject_id", "id"], unique=False)
    op.create_table(
        "users",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_users")),
    )
    op.create_table(
        "libraries",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("owner_user_id", sa.Uuid(), nullable=False),
        sa.Column("is_default", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["owner_user_id"], ["users.id"], name=op.f("fk_libraries_owner_user_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_libraries")),
    )
    op.create_index(
        "uq_libraries_default",
        "libraries",
        ["owner_user_id"],
        unique=True,
        sqlite_where=sa.text("is_default"),
        postgresql_where=sa.text("is_default"),
    )
    op.create_table(
        "media",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("title", sa.Text(), nullable=True),
        sa.Column("processing_status", sa.String(length=32), server_default="pending", nullable=False),
        sa.Column("status_before", sa.String(length=32), nullable=True),
        sa.Column("failure_stage", sa.String(length=16), nullable=True),
        sa.Column("last_error_code", sa.String(length=64), nullable=True),
        sa.Column("last_error_message", sa.Text(), nullable=True),
        sa.Column("processing_attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("tries", sa.Integer(), server_default="0", nullable=False),
        sa.Column("run_after", sa.DateTime(timezone=True), nullable=False),
        sa.Column("lease_expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("processing_started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("processing_completed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("failed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("requested_url", sa.Text(), nullable=True),
        sa.Column("canonical_url", sa.Text(), nullable=True),
        sa.Column("file_sha256", sa.String(length=64), nullable=True),
        sa.Column("provider", sa.String(length=32), nullable=True),
        sa.Column("provider_id", sa.String(length=64), nullable=True),
        sa.Column("external_playback_url", sa.Text(), nullable=True),
        sa.Column("created_by_user_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "(processing_status = 'failed') = (failed_at IS NOT NULL)", name=op.f("ck_media_failed_has_time")
        ),
        sa.CheckConstraint(
            "(processing_status = 'failed') = (failure_stage IS NOT NULL)",
            name=op.f("ck_media_failed_has_stage"),
        ),
        sa.CheckConstraint(
            "(processing_status = 'failed') = (last_error_code IS NOT NULL)",
            name=op.f("ck_media_failed_has_code"),
        ),
        sa.CheckConstraint(
            "(processing_status = 'failed') = (last_error_message IS NOT NULL)",
            name=op.f("ck_media_failed_has_message"),
        ),
        sa.CheckConstraint(
            "(processing_status IN ('embedding', 'extracting')) = (lease_expires_at IS NOT NULL)",
            name=op.f("ck_media_held_has_lease"),
        ),
        sa.CheckConstraint(
            "failure_stage IN ('embed', 'extract', 'other', 'transcribe', 'upload')",
            name=op.f("ck_media_stage"),
        ),
        sa.CheckConstraint(
            "file_sha256 IS NULL OR kind IN ('epub', 'pdf', 'text')", name=op.f("ck_media_files_have_sha256")
        ),
        sa.CheckConstraint(
            "kind IN ('epub', 'pdf', 'podcast_episode', 'text', 'video', 'web_article')",
            name=op.f("ck_media_kind"),
        ),
        sa.CheckConstraint(
            "processing_status IN ('embedding', 'extracting', 'failed', 'pending', 'ready', 'ready_for_reading')",
            name=op.f("ck_media_status"),
        ),
        sa.ForeignKeyConstraint(
            ["created_by_user_id"], ["users.id"], name=op.f("fk_media_created_by_user_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_media")),
    )
    op.create_index(
        "ix_media_held",
        "media",
        ["lease_expires_at"],
        unique=False,
        sqlite_where=sa.text("lease_expires_at IS NOT NULL"),
        postgresql_where=sa.text("lease_expires_at IS NOT NULL"),
    )
    op.create_index(
        "ix_media_waiting",
        "media",
        ["kind", "created_by_user_id", "run_after", "id"],
        unique=False,
        sqlite_where=sa.text(WAITING),
        postgresql_where=sa.text(WAITING),
    )
    op.create_index(
        "uq_media_file",
        "media",
        ["created_by_user_id", "kind", "file_sha256"],
        unique=True,
        sqlite_where=sa.text("file_sha256 IS NOT NULL"),
        postgresql_where=sa.text("file_sha256 IS NOT NULL"),
    )
    op.create_index(
        "uq_media_url",
        "media",
        ["kind", "canonical_url"],
        unique=True,
        sqlite_where=sa.text("canonical_url IS NOT NULL"),
        postgresql_where=sa.text("canonical_url IS NOT NULL"),
    )
    op.create_table(
        "usage",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False
        ),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("operation", sa.String(length=32), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("media_id", sa.Uuid(), nullable=True),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_usage_user_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_usage")),
    )
    op.create_index("ix_usage_user", "usage", ["user_id", "operation", "at"], unique=False)
    op.create_table(
        "fragments",
        sa.Column("media_id", sa.Uuid(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["media_id"], ["media.id"], name=op.f("fk_fragments_media_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("media_id", "position", name=op.f("pk_fragments")),
    )
    op.create_table(
        "library_media",
        sa.Column("library_id", sa.Uuid(), nullable=False),
        sa.Column("media_id", sa.Uuid(), nullable=False),
        sa.Column("added_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["library_id"], ["libraries.id"], name=op.f("fk_library_media_library_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["media_id"], ["media.id"], name=op.f("fk_library_media_media_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("library_id", "media_id", name=op.f("pk_library_media")),
    )
    op.create_index("ix_library_media_media", "library_media", ["media_id"], unique=False)
    op.create_index(
        "ix_library_media_order", "library_media", ["library_id", "added_at", "media_id"], unique=False
    )
    op.create_table(
        "media_file",
        sa.Column("media_id", sa.Uuid(), nullable=False),
        sa.Column("storage_path", sa.Text(), nullable=False),
        sa.Column("content_type", sa.Text(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["media_id"], ["media.id"], name=op.f("fk_media_file_media_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("media_id", name=op.f("pk_media_file")),
    )
    op.create_table(
        "memberships",
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("library_id", sa.Uuid(), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("role IN ('admin', 'member')", name=op.f("ck_memberships_role")),
        sa.ForeignKeyConstraint(
            ["library_id"], ["libraries.id"], name=op.f("fk_memberships_library_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_memberships_user_id")),
        sa.PrimaryKeyConstraint("user_id", "library_id", name=op.f("pk_memberships")),
    )
    op.create_index("ix_memberships_library", "memberships", ["library_id"], unique=False)
    for statement in triggers.create_triggers(MEDIA_ROWS, op.get_bind().dialect.name):
        op.execute(statement)


def downgrade() -> None:
    for statement in triggers.drop_triggers(MEDIA_ROWS, op.get_bind().dialect.name):
        op.execute(statement)
    for table in (
        "memberships",
        "media_file",
        "library_media",
        "fragments",
        "usage",
        "media",
        "libraries",
        "users",
        "history",
    ):
        op.drop_table(table)
