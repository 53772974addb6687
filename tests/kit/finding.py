"""Items with texts to find, and what a search finds of them."""

from __future__ import annotations

from uuid import UUID

from nexus.app import App
from nexus.extract import Extraction, Facts, Fragment
from nexus.libraries import access
from nexus.media.lifecycle import mark_ready_for_reading
from nexus.media.searching.finding import Asked, SearchPage, search_items
from nexus.media.texts import Found
from nexus.search.words_postgres import refresh_counts
from tests.kit.media import new_media, start_extraction

NO_FACTS = Facts()


def publish(
    app: App,
    user: UUID,
    *texts: str,
    title: str | None = "A title",
    facts: Facts = NO_FACTS,
    url: str | None = None,
    html: bool = False,
) -> UUID:
    """A readable item in the default library of a user, with one fragment for each text."""
    media_id = new_media(app, user, url)
    attempt = start_extraction(app, media_id)
    pieces = tuple(Fragment(text, f"<p>{text}</p>" if html else None) for text in texts)
    with app.sessions.begin() as session:
        found = Found(Extraction(title, pieces, facts), "tests")
        assert mark_ready_for_reading(session, media_id, attempt, found)
    return media_id


def count_words_now(app: App) -> None:
    """What upkeep does at intervals on PostgreSQL; SQLite counts when it is asked."""
    if app.sessions.engine.dialect.name == "postgresql":
        with app.sessions.begin() as session:
            refresh_counts(session)


def hold(app: App, user: UUID, url: str) -> UUID:
    """Let somebody else hold the item of an address."""
    with app.sessions.begin() as session:
        access.ensure_user(session, user)
    return new_media(app, user, url)


def found_in(app: App, viewer: UUID, question: str) -> SearchPage:
    return search_items(app.tools, viewer, Asked(question))


def ids_found(app: App, viewer: UUID, question: str) -> list[UUID]:
    return [one.view.row.id for one in found_in(app, viewer, question).items]
