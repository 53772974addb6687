"""The tables of signing in. Keys that open something are stored as hashes: reading them here is no use."""

from __future__ import annotations

from sqlalchemy import CheckConstraint, Column, ForeignKey, String, Table, Text, Uuid

from nexus.db.tables import Moment, metadata

#: A link is deleted when it is used.
sign_in_links = Table(
    "sign_in_links",
    metadata,
    Column("key_hash", String(64), primary_key=True),
    #: Not a foreign key: a link may be the first thing that Nexus hears of a user.
    Column("user_id", Uuid, nullable=False),
    Column("expires_at", Moment, nullable=False),
)

#: Browsers that are signed in. A row is deleted when it is signed out.
sign_ins = Table(
    "sign_ins",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("key_hash", String(64), nullable=False, unique=True),
    Column("user_id", ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    #: Whether by a link or at an identity provider.
    Column("method", String(8), nullable=False),
    Column("device", Text, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("used_at", Moment, nullable=False),
    #: Moves on with each use, but never beyond `ends_at`.
    Column("expires_at", Moment, nullable=False),
    Column("ends_at", Moment, nullable=False),
    #: When its user has shown who they are; empty if the provider did not ask them.
    Column("proven_at", Moment),
    CheckConstraint("method IN ('link', 'oidc')", name="method"),
    CheckConstraint("expires_at <= ends_at", name="ends"),
)

#: Personal API tokens and the tokens in the addresses of feeds. A row is deleted when the token is revoked.
api_tokens = Table(
    "api_tokens",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("key_hash", String(64), nullable=False, unique=True),
    Column("user_id", ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    Column("name", Text, nullable=False),
    Column("scope", String(8), nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("used_at", Moment),
    CheckConstraint("scope IN ('add', 'all', 'feed', 'read')", name="scope"),
)
