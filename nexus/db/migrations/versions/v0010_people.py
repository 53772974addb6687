"""people: names and addresses, invitations, the audit log"""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

MOMENT = sa.DateTime(timezone=True)
BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
NAMES = ("claimed_name", "own_name", "email")


def upgrade() -> None:
    for name in NAMES:
        op.add_column("users", sa.Column(name, sa.Text()))
    op.create_index("ix_users_email", "users", ["email"])
    _create_invitations()
    _create_audit()


def downgrade() -> None:
    op.drop_table("audit")
    op.drop_table("invitations")
    op.drop_index("ix_users_email", "users")
    for name in reversed(NAMES):
        op.drop_column("users", name)


def _create_invitations() -> None:
    op.create_table(
        "invitations",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("library_id", sa.Uuid(), nullable=False),
        sa.Column("email", sa.Text()),
        sa.Column("user_id", sa.Uuid()),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("invited_by", sa.Uuid(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("expires_at", MOMENT, nullable=False),
        sa.CheckConstraint("role IN ('admin', 'member')", name=op.f("ck_invitations_role")),
        sa.CheckConstraint("(email IS NULL) <> (user_id IS NULL)", name=op.f("ck_invitations_one_invitee")),
        sa.ForeignKeyConstraint(
            ["library_id"], ["libraries.id"], name="fk_invitations_library_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["invited_by"], ["users.id"], name="fk_invitations_invited_by"),
        sa.PrimaryKeyConstraint("id", name="pk_invitations"),
    )
    op.create_index("uq_invitations_email", "invitations", ["library_id", "email"], unique=True)
    op.create_index("uq_invitations_user", "invitations", ["library_id", "user_id"], unique=True)
    op.create_index("ix_invitations_email", "invitations", ["email"])
    op.create_index("ix_invitations_user", "invitations", ["user_id"])
    op.create_index("ix_invitations_inviter", "invitations", ["invited_by"])


def _create_audit() -> None:
    op.create_table(
        "audit",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.Column("event", sa.String(32), nullable=False),
        sa.Column("user_id", sa.Uuid()),
        sa.Column("address", sa.String(64)),
        sa.Column("library_id", sa.Uuid()),
        sa.Column("subject_id", sa.Uuid()),
        sa.Column("about", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_audit"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_audit_at", "audit", ["at"])
    op.create_index("ix_audit_library", "audit", ["library_id", "id"])
    op.create_index("ix_audit_user", "audit", ["user_id", "id"])
