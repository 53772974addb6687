"""What each person has noted about the items that they can read. Nobody else ever sees it."""

from __future__ import annotations

from sqlalchemy import CheckConstraint, Column, Double, ForeignKey, Integer, Table, Text

from nexus.db.tables import Moment, SortKey, metadata

#: Where somebody is in a revision: a fragment, a block in it, and how far down in that.
PLACE = ("revision", "fragment", "block", "far")

#: A row only for those who have noted something. It goes when the person can no longer read the item.
shelf = Table(
    "shelf",
    metadata,
    Column("user_id", ForeignKey("users.id", ondelete="CASCADE"), primary_key=True),
    Column("media_id", ForeignKey("media.id", ondelete="CASCADE"), primary_key=True),
    Column("read_at", Moment),
    Column("archived_at", Moment),
    Column("favourite_at", Moment),
    #: Their own title for it, and what that is sorted by.
    Column("title", Text),
    Column("title_key", SortKey),
    #: How much of the text lies behind them, from 0 to 1. It outlives the place, which is one in a single revision.
    Column("fraction", Double, nullable=False, server_default="0"),
    Column("revision", Integer),
    Column("fragment", Integer),
    Column("block", Integer),
    Column("far", Double),
    #: When they were there, by the clock of the device they read on. The latest wins.
    Column("progress_at", Moment),
    #: When anything here changed last: of very many titles of their own, a search looks at the latest.
    Column("changed_at", Moment, nullable=False),
    CheckConstraint("(title IS NULL) = (title_key IS NULL)", name="title_has_key"),
    CheckConstraint("fraction BETWEEN 0 AND 1", name="fraction"),
    CheckConstraint(
        " AND ".join(f"(revision IS NULL) = ({column} IS NULL)" for column in PLACE[1:]), name="whole_place"
    ),
    CheckConstraint("progress_at IS NOT NULL OR (revision IS NULL AND fraction = 0)", name="place_has_time"),
)
