"""proven sign-ins: when a user has last shown at a browser who they are"""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("sign_ins", sa.Column("proven_at", sa.DateTime(timezone=True)))


def downgrade() -> None:
    op.drop_column("sign_ins", "proven_at")
