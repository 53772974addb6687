"""`nexus subscribe`, `nexus feeds` and `nexus unsubscribe`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import typer

from nexus.app import App
from nexus.cli import say
from nexus.cli.add import find_library
from nexus.cli.context import acting_user, opened
from nexus.cli.failures import MISUSED, Refused
from nexus.errors import ApiError, TooManySubscriptions
from nexus.libraries import catalog
from nexus.media.feeds import outlines, requests, subscriptions
from nexus.media.feeds.polling import POLL
from nexus.media.feeds.subscribing import Wishes
from nexus.media.feeds.subscriptions import SubscriptionView
from nexus.queue import Work

MOST_OPML = 16 * 1024 * 1024


def subscribe_to_sources(
    data_dir: Path | None,
    user: UUID | None,
    sources: Sequence[str],
    library: str | None,
    latest: int | None,
    *,
    full_text: bool,
    as_json: bool,
) -> None:
    """Subscribe to each; if one is refused, the others go on. Ends with 1 if any was."""
    wishes = Wishes(takes_new=True if full_text else None, takes_first=latest)
    with opened(data_dir) as app:
        viewer = acting_user(app.settings, user)
        library_id = _library_of(app, viewer, library)
        refused = 0
        for source in sources:
            try:
                _subscribe_to(app, viewer, source, wishes, library_id, as_json=as_json)
            except ApiError as error:
                refused += 1
                _tell_refusal(source, error, as_json=as_json)
    if refused:
        raise typer.Exit(1)


def print_subscriptions(
    data_dir: Path | None, user: UUID | None, library: str | None, *, as_opml: bool, as_json: bool
) -> None:
    with opened(data_dir) as app:
        viewer = acting_user(app.settings, user)
        found = _views(app, viewer, library)
    if as_opml:
        typer.echo(outlines.write_opml(library or "Nexus", found), nl=False)
    elif as_json:
        say.as_json([_as_json(view) for view in found], indent=2)
    else:
        for view in found:
            _tell(view)
        if not found:
            say.hint("No subscriptions yet. Begin with: nexus subscribe URL")


def end_subscription(
    data_dir: Path | None, user: UUID | None, feed: str, library: str | None, *, keeps_items: bool
) -> None:
    with opened(data_dir) as app:
        viewer = acting_user(app.settings, user)
        fitting = [view for view in _views(app, viewer, library) if feed in {str(view.id), view.url}]
        if len(fitting) != 1:
            raise Refused(
                "There is no such subscription. List them with: nexus feeds"
                if not fitting
                else "Several of your libraries have this feed. Name one with --library, or give the id."
            )
        (view,) = fitting
        try:
            requests.unsubscribe_and_discard(
                app.sessions, app.files, view.id, viewer, keeps_items=keeps_items
            )
        except ApiError as error:
            raise Refused(error.message) from error
    say.line("unsubscribed", view.id, view.title or view.url)


def _subscribe_to(
    app: App, viewer: UUID, source: str, wishes: Wishes, library_id: UUID | None, *, as_json: bool
) -> None:
    path = Path(source).expanduser()
    if "://" in source or not path.is_file():
        made = [requests.subscribe_to_address(app.tools, app.queue, viewer, source, wishes, library_id)]
        left_out: list[str] = []
        app.kernel.run(Work(POLL, made[0]))
    else:
        done = _from_file(app, viewer, path, wishes, library_id)
        made, left_out = done.made, done.left_out
    with app.sessions.read() as session:
        views = [subscriptions.get_subscription(session, one, viewer) for one in made]
    for view in views:
        if as_json:
            say.as_json(_as_json(view))
        else:
            _tell(view)
    if left_out:
        share = app.settings.subscriptions_per_user
        named = ", ".join(left_out)
        raise TooManySubscriptions(f"You may subscribe to {share} feeds, so these were left out: {named}")


def _from_file(
    app: App, viewer: UUID, path: Path, wishes: Wishes, library_id: UUID | None
) -> outlines.SubscribedList:
    """The feeds of an OPML file are polled by the workers: there may be hundreds."""
    try:
        if path.stat().st_size > MOST_OPML:
            raise Refused(f"This file is too large for a list of feeds: {path}", MISUSED)
        data = path.read_bytes()
    except OSError as error:
        raise Refused(f"This file can't be read: {path}: {error.strerror}.", MISUSED) from error
    done = requests.subscribe_to_outlines(app.tools, app.queue, viewer, data, wishes, library_id)
    if done.known:
        say.hint(f"{say.amount(len(done.known), 'feed was', 'feeds were')} already there.")
    for address in done.refused:
        say.problem(f"{address}: this is not the address of a feed.")
    return done


def _library_of(app: App, viewer: UUID, name: str | None) -> UUID | None:
    if name is None:
        return None
    with app.sessions.begin() as session:
        return find_library(session, viewer, name) or catalog.create_library(session, viewer, name)


def _views(app: App, viewer: UUID, library: str | None) -> list[SubscriptionView]:
    with app.sessions.read() as session:
        found = subscriptions.list_subscriptions(session, viewer)
    return [view for view in found if library is None or view.library_name == library]


def _tell(view: SubscriptionView) -> None:
    brought = f"{say.amount(view.items, 'item', 'items')}, {view.taken} taken in"
    problem = [view.error_message] if view.error_message else []
    say.line(view.id, view.status.value, view.title or view.url, view.url, brought, *problem)


def _tell_refusal(source: str, error: ApiError, *, as_json: bool) -> None:
    if as_json:
        say.as_json({"source": source, "error": error.code, "message": error.message})
    else:
        say.problem(f"{source}: {error.message}")


def _as_json(view: SubscriptionView) -> dict[str, Any]:
    from nexus.web.api.subscription_schemas import SubscriptionOut  # noqa: PLC0415 slow to load

    return SubscriptionOut.of(view).model_dump(mode="json")
