"""site_pages: all processes keep the pace of a site together"""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    unlogged = [] if op.get_bind().dialect.name == "sqlite" else ["UNLOGGED"]
    op.create_table(
        "site_pages",
        sa.Column("bucket", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("page", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("bucket", name="pk_site_pages"),
        prefixes=unlogged,
    )


def downgrade() -> None:
    op.drop_table("site_pages")
