"""chunks"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "chunks",
        sa.Column("media_id", sa.Uuid(), nullable=False),
        *(sa.Column(name, sa.Integer(), nullable=False) for name in ("position", "fragment", "start", "end")),
        sa.ForeignKeyConstraint(["media_id"], ["media.id"], name="fk_chunks_media_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("media_id", "position", name="pk_chunks"),
    )


def downgrade() -> None:
    op.drop_table("chunks")
