"""Polls as work: a feed is fetched and read with no transaction open; what it says is written under the fence.

A poll that found new items keeps its lease until they are taken in, so that a worker that dies between the two is
noticed, and another one goes on.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import bindparam, exists, select

from nexus.db.feeds import feed_items, feeds, subscriptions
from nexus.db.rows import SubscriptionRow
from nexus.db.session import Query, Session
from nexus.db.tables import memberships
from nexus.errors import WorkError
from nexus.media.feeds import pace, taking
from nexus.media.feeds.poll_results import (
    BACKLOG,
    ERRANDS,
    CheckedFeed,
    DueFeed,
    let_go_of_poll,
    write_failure,
    write_poll,
)
from nexus.media.feeds.reading import NothingNew, fetch_feed
from nexus.media.workbench import Tools
from nexus.queue import Work
from nexus.work.errands import ErrandHandler
from nexus.work.handler import WORKER, Claim, Hold
from nexus.work.retry import decide

POLL = "poll"
PollResult = CheckedFeed | NothingNew | WorkError


class _Polled(NamedTuple):
    """Where the feed of a subscription is, and whether items wait to be taken in."""

    url: str
    has_wanted: bool
    #: Whether the one who subscribed is still in the library.
    is_there: bool


_MEMBERS = select(memberships.c.user_id).where(memberships.c.library_id == subscriptions.c.library_id)
_LOOK = Query(
    select(
        feeds.c.url,
        exists(
            select(feed_items.c.id)
            .where(feed_items.c.subscription_id == subscriptions.c.id, feed_items.c.wanted_at.is_not(None))
            .correlate(subscriptions)
        ).label("has_wanted"),
        exists(
            _MEMBERS.where(memberships.c.user_id == subscriptions.c.created_by_user_id).correlate(
                subscriptions
            )
        ).label("is_there"),
    )
    .join_from(subscriptions, feeds, feeds.c.id == subscriptions.c.feed_id)
    .where(subscriptions.c.id == bindparam("row_id")),
    _Polled,
)
_SUBSCRIPTION = Query(select(subscriptions).where(subscriptions.c.id == bindparam("row_id")), SubscriptionRow)


class PollingFeeds(ErrandHandler[SubscriptionRow, DueFeed, PollResult]):
    """Uses some of the threads: what people add comes first."""

    kind = POLL
    backlog, errands = BACKLOG, ERRANDS
    log_event, log_id = "poll", "subscription_id"
    share = 0.5

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    def take(self, session: Session, row: SubscriptionRow) -> Claim[DueFeed] | None:
        found = session.first(_LOOK, row_id=row.id)
        if found is None:
            return None
        subject = DueFeed(row, *found)
        return Claim(Hold(Work(POLL, row.id), row.attempt), row.tries, subject, row.request_id)

    def do(self, claim: Claim[DueFeed]) -> PollResult:
        due = claim.subject
        try:
            found = fetch_feed(
                self._tools, due.row.created_by_user_id, due.url, due.row.etag, due.row.last_modified
            )
        except WorkError as error:
            return error
        return found if isinstance(found, NothingNew) else CheckedFeed.of(found, self._tools.sessions.clock())

    def settle_one(self, claim: Claim[DueFeed], result: PollResult) -> str:
        if isinstance(result, WorkError) and not result.counted:
            return self._wait(claim, result)
        with self._tools.sessions.begin() as session:
            written = write_poll(session, claim.hold, claim.subject, result)
        if written is None:
            return "stale"
        if not written.has_wanted:
            return written.outcome
        taken = taking.take_wanted(self._tools.sessions, self._tools.limits, claim.subject.row.id)
        self._let_go(claim, written.run_after)
        return f"{written.outcome}, {len(taken)} taken in"

    def give_up(self, session: Session, hold: Hold, error: WorkError) -> bool:
        """A worker was lost three times over this feed."""
        found = session.first(_SUBSCRIPTION, row_id=hold.work.id)
        return (
            found is not None
            and write_failure(session, hold, DueFeed(found, "", False, True), error) is not None
        )

    def _wait(self, claim: Claim[DueFeed], error: WorkError) -> str:
        """The site is busy: waiting is not trying."""
        again = decide(error, claim.tries, self._tools.backoff_seconds)
        with self._tools.sessions.begin() as session:
            return "released" if self.put_down(session, claim.hold, again, error, WORKER) else "stale"

    def _let_go(self, claim: Claim[DueFeed], run_after: datetime) -> None:
        """Items beyond those that are taken in at once follow after the shortest pause."""
        with self._tools.sessions.begin() as session:
            if taking.count_wanted(session, claim.subject.row.id) > 0:
                run_after = min(run_after, session.now + timedelta(seconds=pace.SHORTEST))
            let_go_of_poll(session, claim.hold, run_after)
