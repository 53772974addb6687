"""The tables of feeds: what people subscribe to, the subscriptions, and what the feeds have brought."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    Integer,
    String,
    Table,
    Text,
    Uuid,
)

from nexus.db.tables import Moment, metadata, quoted
from nexus.states.subscription import POLLED, SubscriptionStatus

#: Subscriptions that nobody polls at the moment.
POLL_WAITING = f"status IN ({quoted(POLLED)}) AND lease_expires_at IS NULL"

#: A feed, one for all who subscribe to it, and what it says about itself.
feeds = Table(
    "feeds",
    metadata,
    Column("id", Uuid, primary_key=True),
    #: Its canonical address. It moves with a permanent redirect, as long as it has no episodes.
    Column("url", Text, nullable=False),
    Column("title", Text),
    Column("author", Text),
    Column("description", Text),
    Column("site_url", Text),
    Column("picture_url", Text),
    Column("language", Text),
    #: Whether its items are episodes; otherwise they are articles or videos.
    Column("is_podcast", Boolean(create_constraint=False), nullable=False),
    Column("created_at", Moment, nullable=False),
)

#: An episode of a podcast: what makes two of them the same.
episodes = Table(
    "episodes",
    metadata,
    Column("media_id", ForeignKey("media.id", ondelete="CASCADE"), primary_key=True),
    Column("feed_id", ForeignKey("feeds.id"), nullable=False),
    Column("guid", Text),
    Column("enclosure_url", Text, nullable=False),
    Column("published_at", Moment),
    Column("season", Integer),
    Column("number", Integer),
)

subscriptions = Table(
    "subscriptions",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("library_id", ForeignKey("libraries.id", ondelete="CASCADE"), nullable=False),
    Column("feed_id", ForeignKey("feeds.id"), nullable=False),
    Column("created_by_user_id", ForeignKey("users.id"), nullable=False),
    Column("status", String(16), nullable=False, server_default=SubscriptionStatus.ACTIVE.value),
    Column("status_before", String(16)),
    #: Whether new items are taken in unasked; otherwise they wait as previews.
    Column("takes_new", Boolean(create_constraint=False), nullable=False),
    #: How many of the items that the feed had at the beginning are taken in.
    Column("takes_first", Integer, nullable=False),
    #: The fence, as processing_attempts is for a media.
    Column("attempt", Integer, nullable=False, server_default="0"),
    Column("tries", Integer, nullable=False, server_default="0"),
    Column("run_after", Moment, nullable=False),
    Column("lease_expires_at", Moment),
    #: How many polls in a row have failed, and why the last one did.
    Column("failures", Integer, nullable=False, server_default="0"),
    Column("error_code", String(64)),
    Column("error_message", Text),
    #: How long after a poll the next one is due.
    Column("interval_seconds", Integer, nullable=False),
    Column("etag", Text),
    Column("last_modified", Text),
    Column("polled_at", Moment),
    Column("succeeded_at", Moment),
    #: When a poll found something new last.
    Column("brought_at", Moment),
    Column("created_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
    Column("request_id", String(128)),
    CheckConstraint(f"status IN ({quoted(SubscriptionStatus)})", name="status"),
    CheckConstraint("(error_code IS NULL) = (error_message IS NULL)", name="error_is_told"),
    CheckConstraint("(failures = 0) = (error_code IS NULL)", name="failure_has_error"),
)

#: What a feed has brought to a subscription: a preview, and the item that it became, if it was taken in.
feed_items = Table(
    "feed_items",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("subscription_id", ForeignKey("subscriptions.id", ondelete="CASCADE"), nullable=False),
    #: A hash of what makes two of them the same: the guid, else the enclosure and the date, else the address.
    Column("identity", String(64), nullable=False),
    #: The host that answered with it, which another one may have redirected to.
    Column("told_by", Text),
    Column("guid", Text),
    Column("title", Text),
    Column("author", Text),
    Column("url", Text),
    Column("published_at", Moment),
    Column("summary", Text),
    #: What the feed carries of the text: clean html whose text content is `text`.
    Column("html", Text),
    Column("text", Text),
    Column("picture_url", Text),
    Column("language", Text),
    Column("enclosure_url", Text),
    Column("enclosure_type", Text),
    Column("enclosure_bytes", BigInteger),
    Column("seconds", Double),
    Column("season", Integer),
    Column("number", Integer),
    #: The address of its chapters, and those that the feed itself has, as JSON: a list of [seconds, title].
    Column("chapters_url", Text),
    Column("chapters", Text, nullable=False, server_default="[]"),
    #: As JSON: a list of {url, type, language, kind}.
    Column("transcripts", Text, nullable=False, server_default="[]"),
    #: What it is sorted by: when it was published, or else first seen.
    Column("shown_at", Moment, nullable=False),
    Column("seen_at", Moment, nullable=False),
    #: A hash of all that the feed says about it, to see whether that has changed.
    Column("digest", String(64), nullable=False),
    #: Since when it is to be taken in; None if it is not, or has been.
    Column("wanted_at", Moment),
    Column("media_id", ForeignKey("media.id", ondelete="SET NULL")),
    Column("taken_at", Moment),
    CheckConstraint("wanted_at IS NULL OR taken_at IS NULL", name="taken_is_not_wanted"),
    CheckConstraint("media_id IS NULL OR taken_at IS NOT NULL", name="media_was_taken"),
    CheckConstraint("(html IS NULL) OR (text IS NOT NULL)", name="html_has_text"),
)
