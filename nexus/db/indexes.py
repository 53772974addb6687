"""The indexes. Only migrations import this: for a partial index, SQLAlchemy loads the dialects that it names."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Index, text

from nexus.db.addresses import other_addresses
from nexus.db.chunks import INDEXING_WAITING, chunks, indexing, vectors
from nexus.db.editorial import SHOWN, UNBEGUN, jobs, stories
from nexus.db.feeds import POLL_WAITING, episodes, feed_items, feeds, subscriptions
from nexus.db.pictures import PICTURE_WAITING, pictures
from nexus.db.recordings import heard, listening
from nexus.db.shelves import shelf
from nexus.db.signing_in import api_tokens, sign_ins
from nexus.db.site_pages import site_pages  # noqa: F401 part of the metadata
from nexus.db.tables import (
    REFRESH_WAITING,
    UNEMBEDDED,
    WAITING,
    audit,
    duplicates,
    earlier_holdings,
    history,
    invitations,
    libraries,
    library_media,
    media,
    memberships,
    refreshes,
    uploads,
    usage,
    users,
)


def _where(condition: str) -> dict[str, Any]:
    """Options of a partial index, for both databases."""
    return {"sqlite_where": text(condition), "postgresql_where": text(condition)}


Index(
    "uq_libraries_default",
    libraries.c.owner_user_id,
    unique=True,
    **_where("is_default"),
)
Index("ix_other_addresses_url", other_addresses.c.url)
Index("ix_memberships_library", memberships.c.library_id)
Index("ix_users_email", users.c.email)
# One open invitation for each address and user: inviting again renews it.
Index("uq_invitations_email", invitations.c.library_id, invitations.c.email, unique=True)
Index("uq_invitations_user", invitations.c.library_id, invitations.c.user_id, unique=True)
Index("ix_invitations_email", invitations.c.email)
Index("ix_invitations_user", invitations.c.user_id)
Index("ix_invitations_inviter", invitations.c.invited_by)
Index("ix_audit_at", audit.c.at)
Index("ix_audit_library", audit.c.library_id, audit.c.id)
Index("ix_audit_user", audit.c.user_id, audit.c.id)
Index("ix_audit_subject", audit.c.subject_id)
Index(
    "uq_media_url",
    media.c.kind,
    media.c.canonical_url,
    unique=True,
    **_where("canonical_url IS NOT NULL"),
)
Index(
    "uq_media_file",
    media.c.created_by_user_id,
    media.c.kind,
    media.c.file_sha256,
    unique=True,
    **_where("file_sha256 IS NOT NULL"),
)
Index(
    "ix_media_waiting",
    media.c.kind,
    media.c.created_by_user_id,
    media.c.run_after,
    media.c.id,
    **_where(WAITING),
)
Index(
    "ix_media_held",
    media.c.lease_expires_at,
    **_where("lease_expires_at IS NOT NULL"),
)
Index("ix_uploads_begun", uploads.c.begun_at)
Index("ix_duplicates_winner", duplicates.c.winner_id)
Index("ix_library_media_media", library_media.c.media_id)
# One for each order in which a library can be listed; by host also for the items of one site, the latest first.
for _name, _keys in (
    ("order", ("added_at",)),
    ("title_key", ("title_key",)),
    ("published", ("published",)),
    ("words", ("words",)),
    ("host", ("host", "added_at")),
):
    Index(
        f"ix_library_media_{_name}",
        *(library_media.c[column] for column in ("library_id", "facet", *_keys, "media_id")),
    )
Index("ix_shelf_media", shelf.c.media_id)
Index("ix_shelf_title", shelf.c.user_id, shelf.c.title_key, shelf.c.media_id, **_where("title IS NOT NULL"))
Index("ix_earlier_holdings_revision", earlier_holdings.c.media_id, earlier_holdings.c.revision)
Index("uq_refreshes_request", refreshes.c.media_id, refreshes.c.requested_by, unique=True)
Index(
    "ix_refreshes_waiting",
    refreshes.c.requested_by,
    refreshes.c.run_after,
    refreshes.c.id,
    **_where(REFRESH_WAITING),
)
Index(
    "ix_refreshes_held",
    refreshes.c.lease_expires_at,
    **_where("lease_expires_at IS NOT NULL"),
)
Index("uq_pictures_place", pictures.c.media_id, pictures.c.revision, pictures.c.place, unique=True)
Index(
    "ix_pictures_waiting",
    pictures.c.user_id,
    pictures.c.run_after,
    pictures.c.id,
    **_where(PICTURE_WAITING),
)
Index(
    "ix_pictures_kept",
    pictures.c.user_id,
    pictures.c.media_id,
    pictures.c.storage_path,
    pictures.c.size_bytes,
    **_where("name IS NOT NULL"),
)
Index(
    "ix_pictures_held",
    pictures.c.lease_expires_at,
    **_where("lease_expires_at IS NOT NULL"),
)
Index("ix_chunks_id", chunks.c.media_id, chunks.c.id)
Index("ix_vectors_order", vectors.c.tx, vectors.c.seq)
Index(
    "ix_indexing_waiting",
    indexing.c.user_id,
    indexing.c.run_after,
    indexing.c.id,
    **_where(INDEXING_WAITING),
)
Index(
    "ix_indexing_held",
    indexing.c.lease_expires_at,
    **_where("lease_expires_at IS NOT NULL"),
)
Index(
    "ix_media_unembedded",
    media.c.created_by_user_id,
    media.c.run_after,
    media.c.id,
    **_where(UNEMBEDDED),
)
Index("ix_history_subject", history.c.subject_id, history.c.id)
Index("ix_history_order", history.c.tx, history.c.id)
Index("ix_usage_user", usage.c.user_id, usage.c.operation, usage.c.at)
Index("ix_jobs_creator", jobs.c.created_by_user_id, jobs.c.created_at, jobs.c.id)
Index("ix_jobs_library", jobs.c.library_id, jobs.c.created_at, jobs.c.id)
Index("ix_jobs_media", jobs.c.media_id)
for _whose, _owner in (("creator", jobs.c.created_by_user_id), ("library", jobs.c.library_id)):
    Index(f"ix_jobs_{_whose}_status", _owner, jobs.c.status, jobs.c.created_at, jobs.c.id, **_where(SHOWN))
Index(
    "ix_jobs_unbegun",
    jobs.c.status,
    jobs.c.created_by_user_id,
    jobs.c.run_after,
    jobs.c.id,
    **_where(UNBEGUN),
)
Index(
    "ix_jobs_held",
    jobs.c.lease_expires_at,
    **_where("lease_expires_at IS NOT NULL"),
)
Index("ix_stories_job", stories.c.job_id, stories.c.created_at)
Index(
    "ix_stories_published",
    stories.c.published_at,
    **_where("status = 'published'"),
)
Index("ix_sign_ins_user", sign_ins.c.user_id, sign_ins.c.created_at)
Index("ix_api_tokens_user", api_tokens.c.user_id, api_tokens.c.created_at)
Index(
    "uq_media_provider",
    media.c.kind,
    media.c.provider,
    media.c.provider_id,
    unique=True,
    **_where("provider_id IS NOT NULL"),
)
Index("uq_feeds_url", feeds.c.url, unique=True)
# An episode is known by its guid; without one, by its enclosure and its date, if it has one.
Index("uq_episodes_guid", episodes.c.feed_id, episodes.c.guid, unique=True, **_where("guid IS NOT NULL"))
Index(
    "uq_episodes_enclosure",
    episodes.c.feed_id,
    episodes.c.enclosure_url,
    episodes.c.published_at,
    unique=True,
    **_where("guid IS NULL AND published_at IS NOT NULL"),
)
Index(
    "uq_episodes_undated",
    episodes.c.feed_id,
    episodes.c.enclosure_url,
    unique=True,
    **_where("guid IS NULL AND published_at IS NULL"),
)
Index("uq_subscriptions_feed", subscriptions.c.library_id, subscriptions.c.feed_id, unique=True)
Index("ix_subscriptions_feed", subscriptions.c.feed_id)
Index("ix_subscriptions_creator", subscriptions.c.created_by_user_id)
Index(
    "ix_subscriptions_waiting",
    subscriptions.c.created_by_user_id,
    subscriptions.c.run_after,
    subscriptions.c.id,
    **_where(POLL_WAITING),
)
Index(
    "ix_subscriptions_held",
    subscriptions.c.lease_expires_at,
    **_where("lease_expires_at IS NOT NULL"),
)
Index("uq_feed_items_identity", feed_items.c.subscription_id, feed_items.c.identity, unique=True)
Index("ix_feed_items_order", feed_items.c.subscription_id, feed_items.c.shown_at, feed_items.c.id)
Index("ix_feed_items_media", feed_items.c.media_id)
Index(
    "ix_feed_items_wanted",
    feed_items.c.subscription_id,
    feed_items.c.shown_at,
    feed_items.c.id,
    **_where("wanted_at IS NOT NULL"),
)
Index("ix_listening_order", listening.c.user_id, listening.c.place, listening.c.media_id)
Index("ix_listening_media", listening.c.media_id)
Index("ix_heard_media", heard.c.media_id)
