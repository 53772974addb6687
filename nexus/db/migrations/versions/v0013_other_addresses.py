"""other_addresses: redirects and canonical links of a page lead to its item; what the audit log says of an item"""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "other_addresses",
        sa.Column("media_id", sa.Uuid(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["media_id"], ["media.id"], name="fk_other_addresses_media_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("media_id", "url", name="pk_other_addresses"),
    )
    op.create_index("ix_other_addresses_url", "other_addresses", ["url"])
    op.create_index("ix_audit_subject", "audit", ["subject_id"])


def downgrade() -> None:
    op.drop_index("ix_audit_subject", "audit")
    op.drop_table("other_addresses")
