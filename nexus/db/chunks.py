"""The chunks of texts, with the words by which they are found and the vectors that say what they mean."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    FetchedValue,
    ForeignKey,
    ForeignKeyConstraint,
    Integer,
    LargeBinary,
    String,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
)

from nexus.db.tables import BigId, Moment, metadata

#: The row of an item's title, byline and site, which stand beside its text.
ABOUT = -1

#: Parts of fragments, of a size to search and quote: where in the fragment's text each begins and ends. Rows are never
#: changed; triggers keep the index of words and the vectors in step with them (see word_index.py).
chunks = Table(
    "chunks",
    metadata,
    Column("key", BigId, primary_key=True, autoincrement=True),
    Column("media_id", Uuid, nullable=False),
    Column("revision", Integer, nullable=False),
    #: The order in the text, from 0; ABOUT for the row of the title.
    Column("position", Integer, nullable=False),
    #: The position of its fragment; ABOUT without one.
    Column("fragment", Integer, nullable=False),
    Column("start", Integer, nullable=False),
    Column("end", Integer, nullable=False),
    #: Made from the text: in every revision of an item, the same text has the same id.
    Column("id", Uuid, nullable=False),
    #: Words that count more, as `search.analysis` makes them: headings, or title, byline and site.
    Column("head", Text, nullable=False),
    #: The words of the text, in the same form.
    Column("words", Text, nullable=False),
    #: How many words both have.
    Column("length", Integer, nullable=False),
    UniqueConstraint("media_id", "revision", "position"),
    ForeignKeyConstraint(
        ["media_id", "revision"], ["revisions.media_id", "revisions.number"], ondelete="CASCADE"
    ),
)

#: Languages in which words are stemmed. A question is asked in each of them.
word_languages = Table("word_languages", metadata, Column("language", String(32), primary_key=True))

#: What each chunk means to a model. Chunks of the same text share it.
vectors = Table(
    "vectors",
    metadata,
    Column("seq", BigId, primary_key=True, autoincrement=True),
    #: The writing transaction: readers on PostgreSQL find what was committed since they looked. 0 on SQLite.
    Column("tx", BigInteger, FetchedValue(), nullable=False),
    Column("media_id", ForeignKey("media.id", ondelete="CASCADE"), nullable=False),
    Column("chunk_id", Uuid, nullable=False),
    Column("model", Text, nullable=False),
    #: Of unit length, as 32-bit floats, the lowest byte first.
    Column("vector", LargeBinary, nullable=False),
    UniqueConstraint("media_id", "chunk_id", "model"),
    sqlite_autoincrement=True,
)

#: The models that have made vectors. The newest whole set is the one that is searched.
vector_sets = Table(
    "vector_sets",
    metadata,
    Column("model", Text, primary_key=True),
    Column("dimension", Integer, nullable=False),
    Column("begun_at", Moment, nullable=False),
    #: When every chunk had a vector of it.
    Column("whole_at", Moment),
)

#: Requests that nobody works on at the moment.
INDEXING_WAITING = "error_code IS NULL AND lease_expires_at IS NULL"

#: Items with texts to index that their status does not tell of: older texts without chunks, a newer revision, a user's
#: own text, another model.
indexing = Table(
    "indexing",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("media_id", ForeignKey("media.id", ondelete="CASCADE"), nullable=False),
    #: In whose turn it is done.
    Column("user_id", ForeignKey("users.id"), nullable=False),
    #: The fence, as processing_attempts is for a media.
    Column("attempt", Integer, nullable=False, server_default="0"),
    Column("tries", Integer, nullable=False, server_default="0"),
    Column("run_after", Moment, nullable=False),
    Column("lease_expires_at", Moment),
    #: Why it was given up.
    Column("error_code", String(64)),
    UniqueConstraint("media_id"),
    CheckConstraint("error_code IS NULL OR lease_expires_at IS NULL", name="given_up_has_no_lease"),
)

#: How far the embedding of an item has come, for people who wait for it.
embedding_progress = Table(
    "embedding_progress",
    metadata,
    Column("media_id", ForeignKey("media.id", ondelete="CASCADE"), primary_key=True),
    Column("attempt", Integer, nullable=False),
    Column("done", Integer, nullable=False),
    Column("total", Integer, nullable=False),
)
