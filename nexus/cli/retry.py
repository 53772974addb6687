"""`nexus retry`: retries what has failed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

from nexus.app import Front
from nexus.cli import say
from nexus.cli.context import acting_user, opened, opened_front
from nexus.cli.failures import MISUSED, Refused
from nexus.cli.follow import Follow, following
from nexus.cli.outcome import EndedItem, Item, Result
from nexus.errors import ApiError
from nexus.media import failures, queries


def retry_items(
    data_dir: Path | None,
    user: UUID | None,
    media_ids: Sequence[UUID],
    *,
    all_failed: bool,
    wait: bool,
    as_json: bool,
) -> None:
    if bool(media_ids) == all_failed:
        raise Refused("Give the ids of the items to retry, or --all-failed for all of them.", MISUSED)
    if not wait:
        with opened_front(data_dir) as front, _retried(front, user, media_ids, as_json=as_json) as follow:
            follow.leave()
        return
    with opened(data_dir) as app, _retried(app, user, media_ids, as_json=as_json) as follow:
        follow.wait(app)


@contextmanager
def _retried(
    front: Front, user: UUID | None, media_ids: Sequence[UUID], *, as_json: bool
) -> Iterator[Follow]:
    """Retry the named items, or everything that has failed."""
    viewer = acting_user(front.settings, user)
    with front.sessions.read() as session:
        chosen = list(dict.fromkeys(media_ids)) or failures.failed_items(session, viewer)
    if not chosen:
        say.hint("Nothing has failed.")
    with following(front, viewer, len(chosen), as_json=as_json) as follow:
        for media_id in chosen:
            _retry(follow, media_id)
        yield follow


def _retry(follow: Follow, media_id: UUID) -> None:
    """Retry one item. If it is refused, the others go on."""
    from nexus.media import submit  # noqa: PLC0415 slow to load, and often nothing has failed

    front = follow.front
    try:
        with front.sessions.read() as session:
            row = queries.get_media(session, media_id, follow.viewer).row
        submit.retry_failed_item(front.sessions, front.queue, media_id, follow.viewer)
    except ApiError as error:
        follow.end(EndedItem(Item(str(media_id), media_id), Result.REFUSED, error.message, code=error.code))
        return
    follow.follow(Item(row.canonical_url or row.title or str(media_id), media_id, due=True), media_id)
