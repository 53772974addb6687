"""What is known about the sites that are being fetched."""

from __future__ import annotations

from sqlalchemy import Column, Integer, Table, Text

from nexus.db.tables import metadata

#: As JSON; only PostgreSQL uses it (see work/sites.py).
site_pages = Table(
    "site_pages",
    metadata,
    Column("bucket", Integer, primary_key=True, autoincrement=False),
    Column("page", Text, nullable=False),
)
