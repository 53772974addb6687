"""recordings and feeds: transcripts with times, what is known about recordings, subscriptions and what they bring"""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.schema import SchemaItem

from nexus.db import triggers
from nexus.db.migrations.revision_tables import id_column, media_id, moment, number, to_revision
from nexus.db.moves import SUBSCRIPTION_ROWS

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

MADE = (
    "timings",
    "speech_progress",
    "speech_pieces",
    "recordings",
    "heard",
    "listening",
    "feed_items",
    "subscriptions",
    "episodes",
    "feeds",
)


def upgrade() -> None:
    op.add_column("revisions", sa.Column("source", sa.Text()))
    _index("uq_media_provider", "media", ["kind", "provider", "provider_id"], "provider_id IS NOT NULL")
    _create_recordings()
    _create_speech()
    _create_notes_of_listeners()
    _create_feeds()
    _create_subscriptions()
    _create_feed_items()
    for statement in triggers.create_triggers(SUBSCRIPTION_ROWS, op.get_bind().dialect.name):
        op.execute(statement)


def downgrade() -> None:
    for statement in triggers.drop_triggers(SUBSCRIPTION_ROWS, op.get_bind().dialect.name):
        op.execute(statement)
    for table in MADE:
        op.drop_table(table)
    op.execute("DELETE FROM history WHERE subject = 'subscription'")
    op.drop_index("uq_media_provider", "media")
    op.drop_column("revisions", "source")


def _create_recordings() -> None:
    op.create_table(
        "recordings",
        media_id(),
        *_texts("title", "author", "site", "published", "language"),
        sa.Column("seconds", sa.Double()),
        *_texts("picture_url", "embed_url", "notes", "chapters_url"),
        *_lists("chapters", "transcripts"),
        *_texts("audio_url", "audio_type"),
        sa.Column("audio_bytes", sa.BigInteger()),
        *_texts("audio_path"),
        sa.Column("audio_sha256", sa.String(64)),
        sa.Column("looked_at", moment(), nullable=False),
        _check("recordings", "copy_has_sha256", "(audio_path IS NULL) = (audio_sha256 IS NULL)"),
        _to("recordings", "media_id", "media.id", "CASCADE"),
        _key("recordings", "media_id"),
    )
    op.create_table(
        "timings",
        media_id(),
        number("revision"),
        number("position"),
        sa.Column("spans", sa.Text(), nullable=False),
        to_revision("timings"),
        _key("timings", "media_id", "revision", "position"),
    )


def _create_speech() -> None:
    op.create_table(
        "speech_pieces",
        media_id(),
        number("number"),
        sa.Column("starts_ms", sa.BigInteger(), nullable=False),
        sa.Column("ends_ms", sa.BigInteger(), nullable=False),
        sa.Column("audio_sha256", sa.String(64), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("cues", sa.Text(), nullable=False),
        _check("speech_pieces", "forward", "starts_ms <= ends_ms"),
        _to("speech_pieces", "media_id", "media.id", "CASCADE"),
        _key("speech_pieces", "media_id", "number"),
    )
    op.create_table(
        "speech_progress",
        media_id(),
        number("attempt"),
        sa.Column("done_ms", sa.BigInteger(), nullable=False),
        sa.Column("total_ms", sa.BigInteger(), nullable=False),
        _to("speech_progress", "media_id", "media.id", "CASCADE"),
        _key("speech_progress", "media_id"),
    )


def _create_notes_of_listeners() -> None:
    op.create_table(
        "heard",
        sa.Column("user_id", sa.Uuid(), nullable=False),
        media_id(),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("at", moment(), nullable=False),
        _check("heard", "seconds", "seconds >= 0"),
        *_of_user_and_media("heard"),
    )
    op.create_index("ix_heard_media", "heard", ["media_id"])
    op.create_table(
        "listening",
        sa.Column("user_id", sa.Uuid(), nullable=False),
        media_id(),
        sa.Column("place", sa.Double(), nullable=False),
        sa.Column("added_at", moment(), nullable=False),
        *_of_user_and_media("listening"),
    )
    op.create_index("ix_listening_media", "listening", ["media_id"])
    op.create_index("ix_listening_order", "listening", ["user_id", "place", "media_id"])


def _create_feeds() -> None:
    op.create_table(
        "feeds",
        id_column(),
        sa.Column("url", sa.Text(), nullable=False),
        *_texts("title", "author", "description", "site_url", "picture_url", "language"),
        sa.Column("is_podcast", sa.Boolean(create_constraint=False), nullable=False),
        sa.Column("created_at", moment(), nullable=False),
        _key("feeds", "id"),
    )
    op.create_index("uq_feeds_url", "feeds", ["url"], unique=True)
    op.create_table(
        "episodes",
        media_id(),
        sa.Column("feed_id", sa.Uuid(), nullable=False),
        *_texts("guid"),
        sa.Column("enclosure_url", sa.Text(), nullable=False),
        sa.Column("published_at", moment()),
        sa.Column("season", sa.Integer()),
        sa.Column("number", sa.Integer()),
        _to("episodes", "feed_id", "feeds.id"),
        _to("episodes", "media_id", "media.id", "CASCADE"),
        _key("episodes", "media_id"),
    )
    _index("uq_episodes_guid", "episodes", ["feed_id", "guid"], "guid IS NOT NULL")
    dated = ["feed_id", "enclosure_url", "published_at"]
    _index("uq_episodes_enclosure", "episodes", dated, "guid IS NULL AND published_at IS NOT NULL")
    _index("uq_episodes_undated", "episodes", dated[:2], "guid IS NULL AND published_at IS NULL")


def _create_subscriptions() -> None:
    op.create_table(
        "subscriptions",
        id_column(),
        *(
            sa.Column(name, sa.Uuid(), nullable=False)
            for name in ("library_id", "feed_id", "created_by_user_id")
        ),
        sa.Column("status", sa.String(16), server_default="active", nullable=False),
        sa.Column("status_before", sa.String(16)),
        sa.Column("takes_new", sa.Boolean(create_constraint=False), nullable=False),
        number("takes_first"),
        sa.Column("attempt", sa.Integer(), server_default="0", nullable=False),
        sa.Column("tries", sa.Integer(), server_default="0", nullable=False),
        sa.Column("run_after", moment(), nullable=False),
        sa.Column("lease_expires_at", moment()),
        sa.Column("failures", sa.Integer(), server_default="0", nullable=False),
        sa.Column("error_code", sa.String(64)),
        *_texts("error_message"),
        number("interval_seconds"),
        *_texts("etag", "last_modified"),
        *(sa.Column(name, moment()) for name in ("polled_at", "succeeded_at", "brought_at")),
        *(sa.Column(name, moment(), nullable=False) for name in ("created_at", "updated_at")),
        sa.Column("request_id", sa.String(128)),
        _check("subscriptions", "status", "status IN ('active', 'failing', 'gone', 'paused')"),
        _check("subscriptions", "error_is_told", "(error_code IS NULL) = (error_message IS NULL)"),
        _check("subscriptions", "failure_has_error", "(failures = 0) = (error_code IS NULL)"),
        _to("subscriptions", "created_by_user_id", "users.id"),
        _to("subscriptions", "feed_id", "feeds.id"),
        _to("subscriptions", "library_id", "libraries.id", "CASCADE"),
        _key("subscriptions", "id"),
    )
    op.create_index("uq_subscriptions_feed", "subscriptions", ["library_id", "feed_id"], unique=True)
    op.create_index("ix_subscriptions_feed", "subscriptions", ["feed_id"])
    op.create_index("ix_subscriptions_creator", "subscriptions", ["created_by_user_id"])
    waiting = "status IN ('active', 'failing') AND lease_expires_at IS NULL"
    columns = ["created_by_user_id", "run_after", "id"]
    _index("ix_subscriptions_waiting", "subscriptions", columns, waiting, unique=False)
    held = "lease_expires_at IS NOT NULL"
    _index("ix_subscriptions_held", "subscriptions", ["lease_expires_at"], held, unique=False)


def _create_feed_items() -> None:
    op.create_table(
        "feed_items",
        id_column(),
        sa.Column("subscription_id", sa.Uuid(), nullable=False),
        sa.Column("identity", sa.String(64), nullable=False),
        *_texts("told_by", "guid", "title", "author", "url"),
        sa.Column("published_at", moment()),
        *_texts("summary", "html", "text", "picture_url", "language", "enclosure_url", "enclosure_type"),
        sa.Column("enclosure_bytes", sa.BigInteger()),
        sa.Column("seconds", sa.Double()),
        sa.Column("season", sa.Integer()),
        sa.Column("number", sa.Integer()),
        *_texts("chapters_url"),
        *_lists("chapters", "transcripts"),
        sa.Column("shown_at", moment(), nullable=False),
        sa.Column("seen_at", moment(), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("wanted_at", moment()),
        sa.Column("media_id", sa.Uuid()),
        sa.Column("taken_at", moment()),
        _check("feed_items", "taken_is_not_wanted", "wanted_at IS NULL OR taken_at IS NULL"),
        _check("feed_items", "media_was_taken", "media_id IS NULL OR taken_at IS NOT NULL"),
        _check("feed_items", "html_has_text", "(html IS NULL) OR (text IS NOT NULL)"),
        _to("feed_items", "media_id", "media.id", "SET NULL"),
        _to("feed_items", "subscription_id", "subscriptions.id", "CASCADE"),
        _key("feed_items", "id"),
    )
    op.create_index("uq_feed_items_identity", "feed_items", ["subscription_id", "identity"], unique=True)
    op.create_index("ix_feed_items_order", "feed_items", ["subscription_id", "shown_at", "id"])
    op.create_index("ix_feed_items_media", "feed_items", ["media_id"])
    wanted = ["subscription_id", "shown_at", "id"]
    _index("ix_feed_items_wanted", "feed_items", wanted, "wanted_at IS NOT NULL", unique=False)


def _texts(*names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, sa.Text()) for name in names]


def _lists(*names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, sa.Text(), server_default="[]", nullable=False) for name in names]


def _key(table: str, *columns: str) -> sa.PrimaryKeyConstraint:
    return sa.PrimaryKeyConstraint(*columns, name=f"pk_{table}")


def _check(table: str, name: str, condition: str) -> sa.CheckConstraint:
    return sa.CheckConstraint(condition, name=op.f(f"ck_{table}_{name}"))


def _to(table: str, column: str, target: str, ondelete: str | None = None) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [target], name=f"fk_{table}_{column}", ondelete=ondelete)


def _of_user_and_media(table: str) -> list[SchemaItem]:
    return [
        _to(table, "media_id", "media.id", "CASCADE"),
        _to(table, "user_id", "users.id", "CASCADE"),
        _key(table, "user_id", "media_id"),
    ]


def _index(name: str, table: str, columns: list[str], where: str, *, unique: bool = True) -> None:
    condition = sa.text(where)
    op.create_index(name, table, columns, unique=unique, sqlite_where=condition, postgresql_where=condition)
