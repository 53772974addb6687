# ruff: noqa: PLC0415
"""What a command starts with: settings, the app on a migrated database, and the user it acts as.

The app and the database are imported only when they are made: a command that needs neither answers at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from nexus import logging, settings
from nexus.cli import garbage
from nexus.cli.failures import MISUSED, Refused
from nexus.settings import Settings

if TYPE_CHECKING:
    from nexus.app import App, Front
    from nexus.db.session import Sessions


def load_settings(data_dir: Path | None, **overrides: object) -> Settings:
    try:
        return settings.load(data_dir, **overrides)
    except OSError as error:
        place = error.filename or data_dir or settings.default_data_dir()
        raise Refused(
            f"The data folder can't be used: {place}: {error.strerror}. "
            "Choose another with --data-dir, or change its permissions.",
        ) from error


def build_app(chosen: Settings, *, quiet: bool) -> App:
    """Build the whole app. Quiet commands log only warnings, unless NEXUS_LOG_LEVEL asks for more."""
    from nexus import app as nexus_app

    _speak(chosen, quiet=quiet)
    registered(chosen)
    with _made_folder():
        return nexus_app.build(chosen)


def make_front(chosen: Settings) -> Front:
    """Build what a command needs that leaves the work to others: nothing that fetches, reads or drafts."""
    from nexus import app as nexus_app

    _speak(chosen, quiet=True)
    registered(chosen)
    with _made_folder():
        return nexus_app.build_front(chosen)


@contextmanager
def _made_folder() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Refused(
            f"The folder of the database can't be created: {error.filename}: {error.strerror}. "
            "Check NEXUS_DATABASE_URL.",
        ) from error


def registered(chosen: Settings) -> None:
    """Register every extractor that is installed or named in the settings. Raises Refused."""
    from nexus import app as nexus_app
    from nexus.extract.registry import BadExtractor

    try:
        nexus_app.load_extractors(chosen)
    except BadExtractor as error:
        raise Refused(
            f"An installed extractor can't be used: {error}. Repair or uninstall it.", MISUSED
        ) from error
    except ImportError as error:
        raise Refused(
            f"A module of NEXUS_PLUGINS can't be imported: {error}. Install it, or correct the list.", MISUSED
        ) from error


def unopened() -> Settings:
    """For commands that need no database: load the settings only, and create no folder."""
    chosen = Settings()
    _speak(chosen, quiet=True)
    registered(chosen)
    return chosen


def _speak(chosen: Settings, *, quiet: bool) -> None:
    silenced = quiet and "log_level" not in chosen.model_fields_set
    logging.configure(json=chosen.json_logs, level="warning" if silenced else chosen.log_level)


@contextmanager
def opened(data_dir: Path | None) -> Iterator[App]:
    """For commands that do one thing and end."""
    app = build_app(load_settings(data_dir), quiet=True)
    try:
        _require_migrated(app.settings)
        garbage.collect_from_now_on()
        yield app
    finally:
        app.close()


@contextmanager
def opened_front(data_dir: Path | None) -> Iterator[Front]:
    """For commands that ask for work and end."""
    front = make_front(load_settings(data_dir))
    try:
        _require_migrated(front.settings)
        yield front
    finally:
        front.close()


@contextmanager
def connected(data_dir: Path | None, **overrides: object) -> Iterator[tuple[Settings, Sessions]]:
    """For commands that only read the database: they need nothing that works, fetches or reads."""
    from nexus.db.session import connect

    chosen = load_settings(data_dir, **overrides)
    _speak(chosen, quiet=True)
    with _made_folder():
        sessions = connect(chosen.database, chosen.database_pool)
    try:
        _require_migrated(chosen)
        yield chosen, sessions
    finally:
        sessions.dispose()


def _require_migrated(chosen: Settings) -> None:
    """Migrate a person's own database without asking; refuse to use an old one that a team shares."""
    from nexus.db import migrate

    if chosen.env != "prod":
        migrate.upgrade_schema(chosen.database)
    elif migrate.schema_version(chosen.database) != migrate.head():
        raise Refused("The database is not migrated. Run: nexus db upgrade")


def acting_user(chosen: Settings, user: UUID | None) -> UUID:
    found = user or chosen.local_owner
    if found is None:
        raise Refused(
            "There is no local owner in prod. Choose the user to act as with --user UUID, or set NEXUS_LOCAL_OWNER.",
            MISUSED,
        )
    return found
