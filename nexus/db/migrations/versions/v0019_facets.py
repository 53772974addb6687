# ruff: noqa: S608 every name comes from this file
"""facets: what lists are narrowed by is part of their indexes"""

import sqlalchemy as sa
from alembic import op

from nexus.db import facets

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

#: The indexes of a library's list, by their names, with the columns after the library.
ORDERS = {
    "order": ["added_at"],
    "title_key": ["title_key"],
    "published": ["published"],
    "words": ["words"],
    "host": ["host", "added_at"],
}


def upgrade() -> None:
    op.add_column("library_media", sa.Column("facet", sa.Integer(), nullable=False, server_default="0"))
    op.execute(f"UPDATE library_media SET facet = {facets.FACET_SQL}")
    _index_orders("library_id", "facet")
    for statement in facets.create_facet_triggers(op.get_bind().dialect.name):
        op.execute(statement)


def downgrade() -> None:
    for statement in facets.drop_facet_triggers(op.get_bind().dialect.name):
        op.execute(statement)
    _index_orders("library_id")
    op.drop_column("library_media", "facet")


def _index_orders(*first: str) -> None:
    for name, columns in ORDERS.items():
        op.drop_index(f"ix_library_media_{name}", "library_media")
        op.create_index(f"ix_library_media_{name}", "library_media", [*first, *columns, "media_id"])
