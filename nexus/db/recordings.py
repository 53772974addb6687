"""What videos and episodes have besides their text: what is known about them, the times of their words, and the pieces
of a transcription that is under way."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Integer,
    String,
    Table,
    Text,
    Uuid,
)

from nexus.db.tables import Moment, metadata

#: What is known about a video or an episode, with or without a transcript. One row for each, from the first look on.
recordings = Table(
    "recordings",
    metadata,
    Column("media_id", ForeignKey("media.id", ondelete="CASCADE"), primary_key=True),
    Column("title", Text),
    Column("author", Text),
    Column("site", Text),
    #: An ISO date, with the time if that is known.
    Column("published", Text),
    Column("language", Text),
    Column("seconds", Double),
    #: The address of its picture, outside of Nexus.
    Column("picture_url", Text),
    #: What a page may show in a frame to play it, once its reader asks for that.
    Column("embed_url", Text),
    #: Show notes: clean html.
    Column("notes", Text),
    #: The address of its chapters, if they are not known yet.
    Column("chapters_url", Text),
    #: As JSON: a list of [seconds, title].
    Column("chapters", Text, nullable=False, server_default="[]"),
    #: Transcripts that a feed or a page names, as JSON: a list of {url, type, language, kind}.
    Column("transcripts", Text, nullable=False, server_default="[]"),
    #: The address of its sound, its type and its size, as far as they are known.
    Column("audio_url", Text),
    Column("audio_type", Text),
    Column("audio_bytes", BigInteger),
    #: A copy of the sound in the store, for as long as it is being transcribed.
    Column("audio_path", Text),
    Column("audio_sha256", String(64)),
    Column("looked_at", Moment, nullable=False),
    CheckConstraint("(audio_path IS NULL) = (audio_sha256 IS NULL)", name="copy_has_sha256"),
)

#: When the words of a transcript are spoken: one row for each fragment that has times.
timings = Table(
    "timings",
    metadata,
    Column("media_id", Uuid, primary_key=True),
    Column("revision", Integer, primary_key=True, autoincrement=False),
    Column("position", Integer, primary_key=True, autoincrement=False),
    #: As JSON: a list of [start, end, starts_ms, ends_ms], in the order of the characters.
    Column("spans", Text, nullable=False),
    ForeignKeyConstraint(
        ["media_id", "revision"], ["revisions.media_id", "revisions.number"], ondelete="CASCADE"
    ),
)

#: What has been heard of a recording so far. The rows go when its text is written.
speech_pieces = Table(
    "speech_pieces",
    metadata,
    Column("media_id", ForeignKey("media.id", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("starts_ms", BigInteger, nullable=False),
    Column("ends_ms", BigInteger, nullable=False),
    #: The sound that it was heard in, and the model that heard it: pieces of two don't fit together.
    Column("audio_sha256", String(64), nullable=False),
    Column("model", Text, nullable=False),
    #: As JSON: a list of [starts_ms, ends_ms, text].
    Column("cues", Text, nullable=False),
    CheckConstraint("starts_ms <= ends_ms", name="forward"),
)

#: How far the transcription of an item is, in milliseconds, for people who wait for it.
speech_progress = Table(
    "speech_progress",
    metadata,
    Column("media_id", ForeignKey("media.id", ondelete="CASCADE"), primary_key=True),
    Column("attempt", Integer, nullable=False),
    Column("done_ms", BigInteger, nullable=False),
    Column("total_ms", BigInteger, nullable=False),
)

#: What somebody wants to hear next, in their own order.
listening = Table(
    "listening",
    metadata,
    Column("user_id", ForeignKey("users.id", ondelete="CASCADE"), primary_key=True),
    Column("media_id", ForeignKey("media.id", ondelete="CASCADE"), primary_key=True),
    Column("place", Double, nullable=False),
    Column("added_at", Moment, nullable=False),
)

#: How far somebody has listened to a recording. Nobody else ever sees it.
heard = Table(
    "heard",
    metadata,
    Column("user_id", ForeignKey("users.id", ondelete="CASCADE"), primary_key=True),
    Column("media_id", ForeignKey("media.id", ondelete="CASCADE"), primary_key=True),
    Column("seconds", Double, nullable=False),
    #: When they were there, by the clock of the device they listen on. The latest wins.
    Column("at", Moment, nullable=False),
    CheckConstraint("seconds >= 0", name="seconds"),
)
