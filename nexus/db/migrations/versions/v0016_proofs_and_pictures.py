"""proofs and pictures: when a user has shown who they are, and an index of the pictures that they pay for"""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

_KEPT = sa.text("name IS NOT NULL")


def upgrade() -> None:
    op.add_column("sign_ins", sa.Column("proven_at", sa.DateTime(timezone=True)))
    op.create_index(
        "ix_pictures_kept",
        "pictures",
        ["user_id", "media_id", "storage_path", "size_bytes"],
        sqlite_where=_KEPT,
        postgresql_where=_KEPT,
    )


def downgrade() -> None:
    op.drop_index("ix_pictures_kept", "pictures")
    op.drop_column("sign_ins", "proven_at")
