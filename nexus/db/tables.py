"""The tables. CHECK constraints keep facts consistent; triggers guard the statuses (see triggers.py)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ColumnElement,
    DateTime,
    FetchedValue,
    ForeignKey,
    ForeignKeyConstraint,
    Insert,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    Uuid,
    bindparam,
    insert,
    literal_column,
)

from nexus.states.media import FILE_KINDS, HELD, Kind, MediaStatus, Origin, Stage

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

#: What a database can't hold: NUL, and halves of characters.
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
Moment = DateTime(timezone=True)
BigId = BigInteger().with_variant(Integer, "sqlite")
#: What lists are sorted by: in the order of its characters, on every database.
SortKey = Text().with_variant(Text(collation="C"), "postgresql")


def quoted(values: Iterable[Enum]) -> str:
    """Return the values as an SQL list, in a fixed order."""
    return ", ".join(f"'{value.value}'" for value in sorted(values, key=lambda value: value.value))


def one_of(column: Column[str], values: Iterable[Enum]) -> ColumnElement[bool]:
    """Return a condition with its values written out, so that partial indexes match it in every plan."""
    return column.in_([literal_column(f"'{value.value}'") for value in sorted(values, key=lambda v: v.value)])


def given_columns(table: Table) -> list[Column[Any]]:
    """Return the columns that a writer gives: all but a key that the database counts up on its own."""
    return [column for column in table.c if column is not table.autoincrement_column]


def insert_all(table: Table) -> Insert:
    """Return an INSERT of every column that a writer gives."""
    return insert(table).values({column: bindparam(column.name) for column in given_columns(table)}).inline()


users = Table(
    "users",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("created_at", Moment, nullable=False),
    #: What the identity provider calls them, and what they call themselves, which comes first.
    Column("claimed_name", Text),
    Column("own_name", Text),
    #: Verified by the identity provider, or set by the operator.
    Column("email", Text),
)

libraries = Table(
    "libraries",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("name", Text, nullable=False),
    Column("owner_user_id", ForeignKey("users.id"), nullable=False),
    Column("is_default", Boolean(create_constraint=False), nullable=False),
    Column("created_at", Moment, nullable=False),
)

memberships = Table(
    "memberships",
    metadata,
    Column("user_id", ForeignKey("users.id"), primary_key=True),
    Column("library_id", ForeignKey("libraries.id", ondelete="CASCADE"), primary_key=True),
    Column("role", String(16), nullable=False),
    Column("created_at", Moment, nullable=False),
    CheckConstraint("role IN ('admin', 'member')", name="role"),
)

#: An invitation that waits for an answer. The row goes when there is one; the audit log remembers it.
invitations = Table(
    "invitations",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("library_id", ForeignKey("libraries.id", ondelete="CASCADE"), nullable=False),
    #: Who is invited: an address, or a user, who may not have signed in yet.
    Column("email", Text),
    Column("user_id", Uuid),
    Column("role", String(16), nullable=False),
    Column("invited_by", ForeignKey("users.id"), nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("expires_at", Moment, nullable=False),
    CheckConstraint("role IN ('admin', 'member')", name="role"),
    CheckConstraint("(email IS NULL) <> (user_id IS NULL)", name="one_invitee"),
)

#: Who did what that others may ask about. No foreign keys: an entry outlives what it is about.
audit = Table(
    "audit",
    metadata,
    Column("id", BigId, primary_key=True, autoincrement=True),
    Column("at", Moment, nullable=False),
    Column("event", String(32), nullable=False),
    #: None if nobody was signed in.
    Column("user_id", Uuid),
    #: Where the request came from; None for the command line.
    Column("address", String(64)),
    Column("library_id", Uuid),
    #: The item, person, invitation or token that it is about.
    Column("subject_id", Uuid),
    Column("about", Text),
    sqlite_autoincrement=True,
)

_FAILED = "(processing_status = 'failed')"
_HELD = f"(processing_status IN ({quoted(HELD)}))"

media = Table(
    "media",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("kind", String(32), nullable=False),
    Column("title", Text),
    Column("processing_status", String(32), nullable=False, server_default=MediaStatus.PENDING.value),
    #: The previous status, so that one UPDATE … RETURNING can report it.
    Column("status_before", String(32)),
    Column("failure_stage", String(16)),
    Column("last_error_code", String(64)),
    Column("last_error_message", Text),
    #: How many attempts there were. Also the fence: a result with an older number is stale.
    Column("processing_attempts", Integer, nullable=False, server_default="0"),
    #: How many of the automatic tries are used up; a retry and a success set it to 0.
    Column("tries", Integer, nullable=False, server_default="0"),
    Column("run_after", Moment, nullable=False),
    Column("lease_expires_at", Moment),
    Column("processing_started_at", Moment),
    Column("processing_completed_at", Moment),
    Column("failed_at", Moment),
    Column("requested_url", Text),
    Column("canonical_url", Text),
    Column("file_sha256", String(64)),
    Column("provider", String(32)),
    Column("provider_id", String(64)),
    Column("external_playback_url", Text),
    #: Of the canonical address, as people name it; empty without one.
    Column("host", SortKey, nullable=False, server_default=""),
    Column("created_by_user_id", ForeignKey("users.id"), nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
    #: The request that made it due, for the log lines of the work.
    Column("request_id", String(128)),
    #: The base revision: what libraries show that hold no other. 0 before there is one; a failed item may have its file
    #: alone.
    Column("revision", Integer, nullable=False, server_default="0"),
    #: The newest revision that everybody may read; 0 before there is one.
    Column("newest_revision", Integer, nullable=False, server_default="0"),
    #: The last number that was given out. A number is never used twice, because objects are stored under it.
    Column("last_revision", Integer, nullable=False, server_default="0"),
    CheckConstraint(f"kind IN ({quoted(Kind)})", name="kind"),
    CheckConstraint(f"processing_status IN ({quoted(MediaStatus)})", name="status"),
    CheckConstraint(f"failure_stage IN ({quoted(Stage)})", name="stage"),
    CheckConstraint(f"{_FAILED} = (failure_stage IS NOT NULL)", name="failed_has_stage"),
    CheckConstraint(f"{_FAILED} = (last_error_code IS NOT NULL)", name="failed_has_code"),
    CheckConstraint(f"{_FAILED} = (last_error_message IS NOT NULL)", name="failed_has_message"),
    CheckConstraint(f"{_FAILED} = (failed_at IS NOT NULL)", name="failed_has_time"),
    CheckConstraint(f"{_HELD} = (lease_expires_at IS NOT NULL)", name="held_has_lease"),
    CheckConstraint(f"file_sha256 IS NULL OR kind IN ({quoted(FILE_KINDS)})", name="files_have_sha256"),
)
#: Pending media that can be worked on. Those that still wait for an upload are not in the queue.
WAITING = f"processing_status = 'pending' AND (kind NOT IN ({quoted(FILE_KINDS)}) OR file_sha256 IS NOT NULL)"
#: Readable media whose vectors nobody has begun to make.
UNEMBEDDED = f"processing_status = '{MediaStatus.READY_FOR_READING.value}'"

media_file = Table(
    "media_file",
    metadata,
    Column("media_id", ForeignKey("media.id", ondelete="CASCADE"), primary_key=True),
    #: The revision that it was fetched for; 0 for the file of an upload, which every revision of its text shares.
    Column("revision", Integer, primary_key=True, autoincrement=False),
    Column("storage_path", Text, nullable=False),
    Column("content_type", Text, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    #: The user's name for it, for downloads.
    Column("filename", Text, nullable=False),
)

#: An upload that has begun, as the client described it. Deleted when the checked file becomes a media_file.
uploads = Table(
    "uploads",
    metadata,
    Column("media_id", ForeignKey("media.id", ondelete="CASCADE"), primary_key=True),
    Column("filename", Text, nullable=False),
    Column("content_type", Text, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("begun_at", Moment, nullable=False),
    Column("expires_at", Moment, nullable=False),
)

#: An upload of a file that its user already had: confirming it again returns the media that was kept.
duplicates = Table(
    "duplicates",
    metadata,
    Column("media_id", Uuid, primary_key=True),
    Column("winner_id", ForeignKey("media.id", ondelete="CASCADE"), nullable=False),
    Column("user_id", ForeignKey("users.id"), nullable=False),
    Column("at", Moment, nullable=False),
)

#: One text of an item, which never changes: fragments, chunks and pictures belong to it.
revisions = Table(
    "revisions",
    metadata,
    Column("media_id", ForeignKey("media.id", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("title", Text),
    Column("title_key", SortKey, nullable=False, server_default=""),
    #: The same for the same title, text, html, facts and pictures.
    Column("content_hash", String(64), nullable=False),
    Column("origin", String(16), nullable=False),
    #: Who asked for it; None for the first text of an item.
    Column("made_by", ForeignKey("users.id")),
    #: Set for a text that a user entered: nobody else may ever read it.
    Column("private_to", ForeignKey("users.id")),
    #: The package that read it, with its version.
    Column("extractor", Text, nullable=False),
    Column("byline", Text),
    Column("site", Text),
    Column("published", Text),
    Column("language", Text),
    Column("lead_image", Text),
    Column("excerpt", Text),
    #: Where a transcript comes from, for a person.
    Column("source", Text),
    Column("words", Integer, nullable=False),
    #: How many fragments and characters it has, to see that none is missing.
    Column("pieces", Integer, nullable=False),
    Column("characters", BigInteger, nullable=False),
    #: The table of contents as JSON: a list of title, level and anchor.
    Column("outline", Text, nullable=False),
    #: The final address of the fetch.
    Column("fetched_url", Text),
    Column("written_at", Moment, nullable=False),
    #: When and by which extractor the same text was found last, and what makes the next fetch conditional.
    Column("seen_at", Moment, nullable=False),
    Column("seen_by", Text, nullable=False),
    Column("etag", Text),
    Column("last_modified", Text),
    CheckConstraint(f"origin IN ({quoted(Origin)})", name="origin"),
    CheckConstraint("(origin = 'entered') = (private_to IS NOT NULL)", name="entered_is_private"),
)

library_media = Table(
    "library_media",
    metadata,
    Column("library_id", ForeignKey("libraries.id", ondelete="CASCADE"), primary_key=True),
    Column("media_id", ForeignKey("media.id", ondelete="CASCADE"), primary_key=True),
    Column("added_at", Moment, nullable=False),
    #: The revision that the library holds; None while it holds the base revision, whichever that is.
    Column("revision", Integer),
    #: When the library took another revision.
    Column("moved_at", Moment),
    #: What the list can be sorted by: copies from the item and the revision that is held (see list_keys.py).
    Column("host", SortKey, nullable=False, server_default=""),
    Column("title_key", SortKey, nullable=False, server_default=""),
    Column("published", SortKey, nullable=False, server_default=""),
    Column("words", Integer, nullable=False, server_default="0"),
    #: What the list can be narrowed by (see facets.py).
    Column("facet", Integer, nullable=False, server_default="0"),
    ForeignKeyConstraint(["media_id", "revision"], ["revisions.media_id", "revisions.number"]),
)

#: Revisions that a library held before: its members can read them and go back to them for a while.
earlier_holdings = Table(
    "earlier_holdings",
    metadata,
    Column("library_id", Uuid, primary_key=True),
    Column("media_id", Uuid, primary_key=True),
    Column("revision", Integer, primary_key=True, autoincrement=False),
    Column("until", Moment, nullable=False),
    ForeignKeyConstraint(
        ["library_id", "media_id"], ["library_media.library_id", "library_media.media_id"], ondelete="CASCADE"
    ),
    ForeignKeyConstraint(
        ["media_id", "revision"], ["revisions.media_id", "revisions.number"], ondelete="CASCADE"
    ),
)


def _of_revision() -> ForeignKeyConstraint:
    return ForeignKeyConstraint(
        ["media_id", "revision"], ["revisions.media_id", "revisions.number"], ondelete="CASCADE"
    )


fragments = Table(
    "fragments",
    metadata,
    Column("media_id", Uuid, primary_key=True),
    Column("revision", Integer, primary_key=True, autoincrement=False),
    Column("position", Integer, primary_key=True),
    #: Made from the text, so that it stays the same in a new revision if the text does. Unique within a revision.
    Column("id", Uuid, nullable=False),
    Column("text", Text, nullable=False),
    #: Sanitized. Its text content is exactly `text`, so offsets are the same in both.
    Column("html", Text),
    _of_revision(),
)

#: Pictures from inside a file. They are in the database so that they come and go together with their text.
assets = Table(
    "assets",
    metadata,
    Column("media_id", Uuid, primary_key=True),
    Column("revision", Integer, primary_key=True, autoincrement=False),
    Column("name", String(128), primary_key=True),
    Column("content_type", String(64), nullable=False),
    Column("data", LargeBinary, nullable=False),
    _of_revision(),
)

#: Refreshes that nobody has begun.
REFRESH_WAITING = "error_code IS NULL AND lease_expires_at IS NULL"

#: A readable item that a user wants refreshed. The row goes when that is done; one that failed says why.
refreshes = Table(
    "refreshes",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("media_id", ForeignKey("media.id", ondelete="CASCADE"), nullable=False),
    Column("requested_by", ForeignKey("users.id"), nullable=False),
    Column("requested_at", Moment, nullable=False),
    #: The fence, as processing_attempts is for a media.
    Column("attempt", Integer, nullable=False, server_default="0"),
    Column("tries", Integer, nullable=False, server_default="0"),
    Column("run_after", Moment, nullable=False),
    Column("lease_expires_at", Moment),
    Column("error_code", String(64)),
    Column("error_message", Text),
    Column("request_id", String(128)),
    CheckConstraint("(error_code IS NULL) = (error_message IS NULL)", name="error_is_told"),
    CheckConstraint("error_code IS NULL OR lease_expires_at IS NULL", name="failed_has_no_lease"),
)

history = Table(
    "history",
    metadata,
    Column("id", BigId, primary_key=True, autoincrement=True),
    #: The writing transaction: readers on PostgreSQL stop before the oldest running one. 0 on SQLite.
    Column("tx", BigInteger, FetchedValue(), nullable=False),
    Column("subject", String(16), nullable=False),
    Column("subject_id", Uuid, nullable=False),
    Column("event", String(32), nullable=False),
    Column("from_status", String(32)),
    Column("to_status", String(32), nullable=False),
    Column("at", Moment, nullable=False),
    Column("actor", String(64), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("error_code", String(64)),
    sqlite_autoincrement=True,
)

usage = Table(
    "usage",
    metadata,
    Column("id", BigId, primary_key=True, autoincrement=True),
    Column("user_id", ForeignKey("users.id"), nullable=False),
    Column("operation", String(32), nullable=False),
    Column("amount", BigInteger, nullable=False),
    Column("media_id", Uuid),
    Column("at", Moment, nullable=False),
)
