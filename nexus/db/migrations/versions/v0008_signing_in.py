"""signing in: links, browsers that are signed in, and tokens"""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "sign_in_links",
        sa.Column("key_hash", sa.String(64), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("expires_at", _MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("key_hash", name=op.f("pk_sign_in_links")),
    )
    op.create_table(
        "sign_ins",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("key_hash", sa.String(64), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("method", sa.String(8), nullable=False),
        sa.Column("device", sa.Text(), nullable=False),
        sa.Column("created_at", _MOMENT, nullable=False),
        sa.Column("used_at", _MOMENT, nullable=False),
        sa.Column("expires_at", _MOMENT, nullable=False),
        sa.Column("ends_at", _MOMENT, nullable=False),
        sa.CheckConstraint("method IN ('link', 'oidc')", name=op.f("ck_sign_ins_method")),
        sa.CheckConstraint("expires_at <= ends_at", name=op.f("ck_sign_ins_ends")),
        *_keys("sign_ins"),
    )
    op.create_table(
        "api_tokens",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("key_hash", sa.String(64), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("scope", sa.String(8), nullable=False),
        sa.Column("created_at", _MOMENT, nullable=False),
        sa.Column("used_at", _MOMENT),
        sa.CheckConstraint("scope IN ('add', 'all', 'feed', 'read')", name=op.f("ck_api_tokens_scope")),
        *_keys("api_tokens"),
    )
    for table in ("sign_ins", "api_tokens"):
        op.create_index(f"ix_{table}_user", table, ["user_id", "created_at"])


def downgrade() -> None:
    for table in ("api_tokens", "sign_ins", "sign_in_links"):
        op.drop_table(table)


def _keys(table: str) -> list[sa.Constraint]:
    return [
        sa.PrimaryKeyConstraint("id", name=op.f(f"pk_{table}")),
        sa.UniqueConstraint("key_hash", name=op.f(f"uq_{table}_key_hash")),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f(f"fk_{table}_user_id"), ondelete="CASCADE"
        ),
    ]
