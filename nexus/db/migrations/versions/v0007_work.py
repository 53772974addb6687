"""work: the request that asked for it, and indexes along which users take turns"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_REFRESHES = "error_code IS NULL AND lease_expires_at IS NULL"
_STEPS = "status IN ('EXTRACTING', 'FETCHING', 'GENERATING') AND lease_expires_at IS NULL"


def upgrade() -> None:
    for table in ("media", "refreshes", "jobs"):
        op.add_column(table, sa.Column("request_id", sa.String(128)))
    # A step that waits says since when.
    op.execute("UPDATE jobs SET run_after = updated_at WHERE run_after IS NULL")
    _index("ix_refreshes_waiting", "refreshes", ["requested_by", "run_after", "media_id"], _REFRESHES)
    _index("ix_jobs_unbegun", "jobs", ["status", "created_by_user_id", "run_after", "id"], _STEPS)


def downgrade() -> None:
    _index("ix_jobs_unbegun", "jobs", ["updated_at", "id"], _STEPS)
    _index("ix_refreshes_waiting", "refreshes", ["run_after", "media_id"], _REFRESHES)
    for table in ("jobs", "refreshes", "media"):
        op.drop_column(table, "request_id")


def _index(name: str, table: str, columns: list[str], where: str) -> None:
    """In place of the one that has the name."""
    op.drop_index(name, table)
    op.create_index(name, table, columns, sqlite_where=sa.text(where), postgresql_where=sa.text(where))
