"""jobs and stories"""

import sqlalchemy as sa
from alembic import op

from nexus.db import triggers
from nexus.db.moves import JOB_ROWS, STORY_ROWS

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

MOMENT = sa.DateTime(timezone=True)
UNBEGUN = sa.text("status IN ('EXTRACTING', 'FETCHING', 'GENERATING') AND lease_expires_at IS NULL")
HELD = sa.text("lease_expires_at IS NOT NULL")
PUBLISHED = sa.text("status = 'published'")


def upgrade() -> None:
    _create_jobs()
    _create_stories()
    for rows in (JOB_ROWS, STORY_ROWS):
        for statement in triggers.create_triggers(rows, op.get_bind().dialect.name):
            op.execute(statement)


def downgrade() -> None:
    for rows in (STORY_ROWS, JOB_ROWS):
        for statement in triggers.drop_triggers(rows, op.get_bind().dialect.name):
            op.execute(statement)
        op.drop_table(rows.table.name)
    op.execute("DELETE FROM history WHERE subject IN ('job', 'story')")


def _create_jobs() -> None:
    op.create_table(
        "jobs",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("created_by_user_id", sa.Uuid(), nullable=False),
        sa.Column("library_id", sa.Uuid()),
        sa.Column("media_id", sa.Uuid()),
        *(sa.Column(name, sa.Text()) for name in ("url", "canonical_url")),
        sa.Column("status", sa.String(32), server_default="QUEUED", nullable=False),
        sa.Column("status_before", sa.String(32)),
        *(sa.Column(name, sa.Integer(), server_default="0", nullable=False) for name in ("attempt", "tries")),
        *(sa.Column(name, MOMENT) for name in ("lease_expires_at", "run_after", "generate_after")),
        sa.Column("drafted_for_user_id", sa.Uuid()),
        sa.Column("raw_html", sa.LargeBinary()),
        sa.Column("charset", sa.Text()),
        sa.Column("http_status", sa.Integer()),
        *(
            sa.Column(name, sa.Text())
            for name in ("content_type", "fetched_url", "extracted_title", "extracted_text")
        ),
        sa.Column("manually_provided", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("error_code", sa.String(64)),
        sa.Column("error_message", sa.Text()),
        sa.Column("story_id", sa.Uuid()),
        *(sa.Column(name, MOMENT) for name in ("fetched_at", "extracted_at", "generated_at")),
        *(sa.Column(name, MOMENT, nullable=False) for name in ("created_at", "updated_at")),
        sa.CheckConstraint(
            "status IN ('EXTRACTED', 'EXTRACTING', 'FAILED', 'FETCHING', 'GENERATING', 'QUEUED', "
            "'READY_TO_GENERATE', 'SAVED')",
            name=op.f("ck_jobs_status"),
        ),
        sa.CheckConstraint(
            "(status = 'FAILED') = (error_code IS NOT NULL)", name=op.f("ck_jobs_failed_has_code")
        ),
        sa.CheckConstraint(
            "(status = 'FAILED') = (error_message IS NOT NULL)", name=op.f("ck_jobs_failed_has_message")
        ),
        sa.CheckConstraint(
            "lease_expires_at IS NULL OR status IN ('EXTRACTING', 'FETCHING', 'GENERATING')",
            name=op.f("ck_jobs_only_held_has_lease"),
        ),
        sa.CheckConstraint("status <> 'SAVED' OR story_id IS NOT NULL", name=op.f("ck_jobs_saved_has_story")),
        *(
            sa.ForeignKeyConstraint([name], ["users.id"], name=f"fk_jobs_{name}")
            for name in ("created_by_user_id", "drafted_for_user_id")
        ),
        sa.ForeignKeyConstraint(
            ["library_id"], ["libraries.id"], name="fk_jobs_library_id", ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(["media_id"], ["media.id"], name="fk_jobs_media_id", ondelete="SET NULL"),
        sa.PrimaryKeyConstraint("id", name="pk_jobs"),
    )
    op.create_index("ix_jobs_creator", "jobs", ["created_by_user_id", "created_at", "id"])
    op.create_index("ix_jobs_library", "jobs", ["library_id", "created_at", "id"])
    op.create_index("ix_jobs_media", "jobs", ["media_id"])
    op.create_index(
        "ix_jobs_unbegun", "jobs", ["updated_at", "id"], sqlite_where=UNBEGUN, postgresql_where=UNBEGUN
    )
    op.create_index("ix_jobs_held", "jobs", ["lease_expires_at"], sqlite_where=HELD, postgresql_where=HELD)


def _create_stories() -> None:
    op.create_table(
        "stories",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("job_id", sa.Uuid(), nullable=False),
        sa.Column("slug", sa.String(120), nullable=False),
        sa.Column("status", sa.String(16), server_default="draft", nullable=False),
        sa.Column("status_before", sa.String(16)),
        sa.Column("revision", sa.Integer(), server_default="1", nullable=False),
        *(
            sa.Column(name, sa.Text(), nullable=False)
            for name in ("headline", "summary", "sections", "sources", "article_text", "model")
        ),
        sa.Column("prompt_version", sa.String(32), nullable=False),
        sa.Column("tokens_used", sa.BigInteger(), nullable=False),
        sa.Column("generated_at", MOMENT, nullable=False),
        *(sa.Column(name, MOMENT) for name in ("edited_at", "published_at")),
        *(sa.Column(name, MOMENT, nullable=False) for name in ("created_at", "updated_at")),
        sa.CheckConstraint(
            "status IN ('archived', 'discarded', 'draft', 'published', 'review')",
            name=op.f("ck_stories_status"),
        ),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_stories_job_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_stories"),
        sa.UniqueConstraint("slug", name="uq_stories_slug"),
    )
    op.create_index("ix_stories_job", "stories", ["job_id", "created_at"])
    op.create_index(
        "ix_stories_published",
        "stories",
        ["published_at"],
        sqlite_where=PUBLISHED,
        postgresql_where=PUBLISHED,
    )
