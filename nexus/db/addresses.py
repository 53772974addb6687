"""The table of other addresses."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKey, Table, Text

from nexus.db.tables import metadata

#: Addresses, in canonical form, that turned out to lead to an item: where a redirect ended, what its page calls itself.
other_addresses = Table(
    "other_addresses",
    metadata,
    Column("media_id", ForeignKey("media.id", ondelete="CASCADE"), primary_key=True),
    Column("url", Text, primary_key=True),
)
