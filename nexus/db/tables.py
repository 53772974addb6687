"""The tables. Facts that belong together are CHECK constraints; statuses are guarded by triggers (see triggers.py)."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ColumnElement,
    DateTime,
    FetchedValue,
    ForeignKey,
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

from nexus.states.media import FILE_KINDS, HELD, Kind, Stage, Status

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

Moment = DateTime(timezone=True)
BigId = BigInteger().with_variant(Integer, "sqlite")


def quoted(values: Iterable[Enum]) -> str:
    return ", ".join(f"'{value.value}'" for value in sorted(values, key=lambda value: value.value))


def one_of(column: Column[str], values: Iterable[Enum]) -> ColumnElement[bool]:
    """A condition with its values written out, so that partial indexes match it in every plan."""
    return column.in_([literal_column(f"'{value.value}'") for value in sorted(values, key=lambda v: v.value)])


def insert_all(table: Table) -> Insert:
    """An INSERT that is given every column."""
    return insert(table).values({column: bindparam(column.name) for column in table.c})


users = Table(
    "users",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("created_at", Moment, nullable=False),
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

_FAILED = "(processing_status = 'failed')"
_HELD = f"(processing_status IN ({quoted(HELD)}))"

media = Table(
    "media",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("kind", String(32), nullable=False),
    Column("title", Text),
    Column("processing_status", String(32), nullable=False, server_default=Status.PENDING.value),
    #: What the last transition left: lets one UPDATE … RETURNING report where it came from.
    Column("status_before", String(32)),
    Column("failure_stage", String(16)),
    Column("last_error_code", String(64)),
    Column("last_error_message", Text),
    #: The total, and the fence: a result that carries an older number is stale.
    Column("processing_attempts", Integer, nullable=False, server_default="0"),
    #: Counts towards the automatic tries; zeroed by retry and by readable.
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
    Column("created_by_user_id", ForeignKey("users.id"), nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
    CheckConstraint(f"kind IN ({quoted(Kind)})", name="kind"),
    CheckConstraint(f"processing_status IN ({quoted(Status)})", name="status"),
    CheckConstraint(f"failure_stage IN ({quoted(Stage)})", name="stage"),
    CheckConstraint(f"{_FAILED} = (failure_stage IS NOT NULL)", name="failed_has_stage"),
    CheckConstraint(f"{_FAILED} = (last_error_code IS NOT NULL)", name="failed_has_code"),
    CheckConstraint(f"{_FAILED} = (last_error_message IS NOT NULL)", name="failed_has_message"),
    CheckConstraint(f"{_FAILED} = (failed_at IS NOT NULL)", name="failed_has_time"),
    CheckConstraint(f"{_HELD} = (lease_expires_at IS NOT NULL)", name="held_has_lease"),
    CheckConstraint(f"file_sha256 IS NULL OR kind IN ({quoted(FILE_KINDS)})", name="files_have_sha256"),
)
#: Pending media whose bytes, if it needs any, are there. An upload that never came does not lengthen the queue.
WAITING = f"processing_status = 'pending' AND (kind NOT IN ({quoted(FILE_KINDS)}) OR file_sha256 IS NOT NULL)"

media_file = Table(
    "media_file",
    metadata,
    Column("media_id", ForeignKey("media.id", ondelete="CASCADE"), primary_key=True),
    Column("storage_path", Text, nullable=False),
    Column("content_type", Text, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    #: What the user called it, for the download.
    Column("filename", Text, nullable=False),
)

#: A file that is expected: what the client said of it. The row goes when the file is checked and becomes media_file.
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

#: An upload that turned out to be a file its user had: asking for it again answers with the one that stayed.
duplicates = Table(
    "duplicates",
    metadata,
    Column("media_id", Uuid, primary_key=True),
    Column("winner_id", ForeignKey("media.id", ondelete="CASCADE"), nullable=False),
    Column("user_id", ForeignKey("users.id"), nullable=False),
    Column("at", Moment, nullable=False),
)

library_media = Table(
    "library_media",
    metadata,
    Column("library_id", ForeignKey("libraries.id", ondelete="CASCADE"), primary_key=True),
    Column("media_id", ForeignKey("media.id", ondelete="CASCADE"), primary_key=True),
    Column("added_at", Moment, nullable=False),
)

fragments = Table(
    "fragments",
    metadata,
    Column("media_id", ForeignKey("media.id", ondelete="CASCADE"), primary_key=True),
    Column("position", Integer, primary_key=True),
    #: Made from the text: a new revision keeps it wherever the text is the same. No two of a media are the same.
    Column("id", Uuid, nullable=False),
    Column("text", Text, nullable=False),
    #: Clean, and its text content is exactly `text`: an offset in the one is an offset in the other.
    Column("html", Text),
)

#: Fragments cut to a size that can be searched and quoted: where in its text each begins and ends.
chunks = Table(
    "chunks",
    metadata,
    Column("media_id", ForeignKey("media.id", ondelete="CASCADE"), primary_key=True),
    Column("position", Integer, primary_key=True),
    #: The place of the fragment that it is a part of.
    Column("fragment", Integer, nullable=False),
    Column("start", Integer, nullable=False),
    Column("end", Integer, nullable=False),
)

#: What a readable media's text is, beside its fragments. One row per readable media; its revision counts the swaps.
documents = Table(
    "documents",
    metadata,
    Column("media_id", ForeignKey("media.id", ondelete="CASCADE"), primary_key=True),
    Column("revision", Integer, nullable=False),
    #: Who read it, with its version.
    Column("extractor", Text, nullable=False),
    Column("byline", Text),
    Column("site", Text),
    Column("published", Text),
    Column("language", Text),
    Column("lead_image", Text),
    Column("excerpt", Text),
    Column("words", Integer, nullable=False),
    #: The table of contents: JSON, a list of title, level and anchor.
    Column("outline", Text, nullable=False),
    #: What the fetch ended at, and what to ask with when it is fetched again.
    Column("fetched_url", Text),
    Column("etag", Text),
    Column("last_modified", Text),
    Column("written_at", Moment, nullable=False),
)

#: Pictures that came inside a file, in the database because they change places with the text they belong to.
assets = Table(
    "assets",
    metadata,
    Column("media_id", ForeignKey("media.id", ondelete="CASCADE"), primary_key=True),
    Column("name", String(128), primary_key=True),
    Column("content_type", String(64), nullable=False),
    Column("data", LargeBinary, nullable=False),
)

#: A readable media that is to be read anew. The row goes when that is done; one that failed says why.
refreshes = Table(
    "refreshes",
    metadata,
    Column("media_id", ForeignKey("media.id", ondelete="CASCADE"), primary_key=True),
    Column("requested_by", ForeignKey("users.id"), nullable=False),
    Column("requested_at", Moment, nullable=False),
    #: The fence, as processing_attempts is for a media.
    Column("attempt", Integer, nullable=False, server_default="0"),
    Column("tries", Integer, nullable=False, server_default="0"),
    Column("run_after", Moment, nullable=False),
    Column("lease_expires_at", Moment),
    Column("error_code", String(64)),
    Column("error_message", Text),
    CheckConstraint("(error_code IS NULL) = (error_message IS NULL)", name="error_is_told"),
    CheckConstraint("error_code IS NULL OR lease_expires_at IS NULL", name="failed_has_no_lease"),
)

history = Table(
    "history",
    metadata,
    Column("id", BigId, primary_key=True, autoincrement=True),
    #: The writing transaction: readers of PostgreSQL stay below the oldest running one. 0 on SQLite.
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
