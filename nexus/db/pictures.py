"""The pictures of texts that have an address of their own, and are fetched for their readers."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Integer,
    String,
    Table,
    Text,
    Uuid,
)

from nexus.db.tables import Moment, metadata

#: Pictures that nobody fetches at the moment, and that are neither there nor given up.
PICTURE_WAITING = "name IS NULL AND error_code IS NULL AND lease_expires_at IS NULL"
#: What is known about a picture that is there, and about no other.
KEPT = ("name", "storage_path", "sha256", "content_type", "size_bytes", "width", "height")

#: One row for each address in a revision of a text. The text never changes: what became of its pictures is only here.
pictures = Table(
    "pictures",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("media_id", Uuid, nullable=False),
    Column("revision", Integer, nullable=False),
    #: Their order in the text, from 0.
    Column("place", Integer, nullable=False),
    Column("source", Text, nullable=False),
    #: In whose turn it is fetched.
    Column("user_id", ForeignKey("users.id"), nullable=False),
    Column("asked_at", Moment, nullable=False),
    #: The fence, as processing_attempts is for a media.
    Column("attempt", Integer, nullable=False, server_default="0"),
    Column("tries", Integer, nullable=False, server_default="0"),
    Column("run_after", Moment, nullable=False),
    Column("lease_expires_at", Moment),
    #: Why it was given up.
    Column("error_code", String(64)),
    #: The name by which it is asked for: its content's hash and its format. Two addresses may have the same content.
    Column("name", String(128)),
    Column("storage_path", Text),
    Column("sha256", String(64)),
    Column("content_type", String(64)),
    Column("size_bytes", BigInteger),
    Column("width", Integer),
    Column("height", Integer),
    ForeignKeyConstraint(
        ["media_id", "revision"], ["revisions.media_id", "revisions.number"], ondelete="CASCADE"
    ),
    CheckConstraint(
        " AND ".join(f"(name IS NULL) = ({column} IS NULL)" for column in KEPT[1:]), name="whole"
    ),
    CheckConstraint("name IS NULL OR error_code IS NULL", name="kept_or_given_up"),
    CheckConstraint(
        "lease_expires_at IS NULL OR (name IS NULL AND error_code IS NULL)", name="held_is_unfinished"
    ),
)
