"""fragments without an index on their ids: they are always looked for within their media"""

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_index("uq_fragments_id", "fragments")


def downgrade() -> None:
    op.create_index("uq_fragments_id", "fragments", ["id"], unique=True)
