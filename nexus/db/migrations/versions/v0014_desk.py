"""desk: published stories are corrected, jobs are removed, and lists of jobs by status have an index"""

import sqlalchemy as sa
from alembic import op

from nexus.db import triggers
from nexus.db.moves import STORY_ROWS

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

_SHOWN = sa.text("removed_at IS NULL")
_MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.add_column("stories", sa.Column("corrected_at", _MOMENT))
    op.add_column("stories", sa.Column("correction", sa.Text()))
    op.add_column("jobs", sa.Column("removed_at", _MOMENT))
    for name, owner in (("creator", "created_by_user_id"), ("library", "library_id")):
        op.create_index(
            f"ix_jobs_{name}_status",
            "jobs",
            [owner, "status", "created_at", "id"],
            sqlite_where=_SHOWN,
            postgresql_where=_SHOWN,
        )
    _guard_again()


def downgrade() -> None:
    for name in ("creator", "library"):
        op.drop_index(f"ix_jobs_{name}_status", "jobs")
    op.drop_column("jobs", "removed_at")
    op.drop_column("stories", "correction")
    op.drop_column("stories", "corrected_at")
    # A step within a status, which a correction is, is not guarded: the new triggers suit the old table too.
    op.execute("DELETE FROM history WHERE subject = 'story' AND event = 'correct'")


def _guard_again() -> None:
    """A new edge is in the triggers too."""
    dialect = op.get_bind().dialect.name
    for statement in (
        *triggers.drop_triggers(STORY_ROWS, dialect),
        *triggers.create_triggers(STORY_ROWS, dialect),
    ):
        op.execute(statement)
