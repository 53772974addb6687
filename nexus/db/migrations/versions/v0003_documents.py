"""documents, assets, refreshes, and fragments with ids and html"""

from uuid import NAMESPACE_OID, UUID, uuid5

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

WAITING = sa.text("error_code IS NULL AND lease_expires_at IS NULL")
HELD = sa.text("lease_expires_at IS NOT NULL")


def upgrade() -> None:
    _add_to_fragments()
    op.create_table(
        "documents",
        sa.Column("media_id", sa.Uuid(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("extractor", sa.Text(), nullable=False),
        *(
            sa.Column(name, sa.Text())
            for name in ("byline", "site", "published", "language", "lead_image", "excerpt")
        ),
        sa.Column("words", sa.Integer(), nullable=False),
        sa.Column("outline", sa.Text(), nullable=False),
        *(sa.Column(name, sa.Text()) for name in ("fetched_url", "etag", "last_modified")),
        sa.Column("written_at", sa.DateTime(timezone=True), nullable=False),
        _to_media("documents"),
        sa.PrimaryKeyConstraint("media_id", name="pk_documents"),
    )
    op.create_table(
        "assets",
        sa.Column("media_id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.String(128), nullable=False),
        sa.Column("content_type", sa.String(64), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        _to_media("assets"),
        sa.PrimaryKeyConstraint("media_id", "name", name="pk_assets"),
    )
    _create_refreshes()


def downgrade() -> None:
    for table in ("refreshes", "assets", "documents"):
        op.drop_table(table)
    op.drop_index("uq_fragments_id", "fragments")
    with op.batch_alter_table("fragments") as fragments:
        fragments.drop_column("html")
        fragments.drop_column("id")


def _add_to_fragments() -> None:
    op.add_column("fragments", sa.Column("id", sa.Uuid()))
    op.add_column("fragments", sa.Column("html", sa.Text()))
    _name_fragments(op.get_bind())
    with op.batch_alter_table("fragments") as fragments:
        fragments.alter_column("id", existing_type=sa.Uuid(), nullable=False)
    op.create_index("uq_fragments_id", "fragments", ["id"], unique=True)


def _name_fragments(connection: sa.Connection) -> None:
    """Any id will do for a text that was written before there were ids: its next revision gives it a lasting one."""
    table = sa.table(
        "fragments", sa.column("media_id", sa.Uuid), sa.column("position"), sa.column("id", sa.Uuid)
    )
    named = (
        table.update()
        .where(table.c.media_id == sa.bindparam("of"), table.c.position == sa.bindparam("place"))
        .values(id=sa.bindparam("name"))
    )
    for media_id, position in connection.execute(sa.select(table.c.media_id, table.c.position)).all():
        name = uuid5(NAMESPACE_OID, f"{UUID(str(media_id)).hex} {position}")
        connection.execute(named, {"of": media_id, "place": position, "name": name})


def _create_refreshes() -> None:
    op.create_table(
        "refreshes",
        sa.Column("media_id", sa.Uuid(), nullable=False),
        sa.Column("requested_by", sa.Uuid(), nullable=False),
        sa.Column("requested_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("attempt", sa.Integer(), server_default="0", nullable=False),
        sa.Column("tries", sa.Integer(), server_default="0", nullable=False),
        sa.Column("run_after", sa.DateTime(timezone=True), nullable=False),
        sa.Column("lease_expires_at", sa.DateTime(timezone=True)),
        sa.Column("error_code", sa.String(64)),
        sa.Column("error_message", sa.Text()),
        sa.CheckConstraint(
            "(error_code IS NULL) = (error_message IS NULL)", name=op.f("ck_refreshes_error_is_told")
        ),
        sa.CheckConstraint(
            "error_code IS NULL OR lease_expires_at IS NULL", name=op.f("ck_refreshes_failed_has_no_lease")
        ),
        _to_media("refreshes"),
        sa.ForeignKeyConstraint(["requested_by"], ["users.id"], name="fk_refreshes_requested_by"),
        sa.PrimaryKeyConstraint("media_id", name="pk_refreshes"),
    )
    op.create_index(
        "ix_refreshes_waiting",
        "refreshes",
        ["run_after", "media_id"],
        sqlite_where=WAITING,
        postgresql_where=WAITING,
    )
    op.create_index(
        "ix_refreshes_held", "refreshes", ["lease_expires_at"], sqlite_where=HELD, postgresql_where=HELD
    )


def _to_media(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["media_id"], ["media.id"], name=f"fk_{table}_media_id", ondelete="CASCADE"
    )
