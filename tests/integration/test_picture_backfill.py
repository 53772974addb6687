"""Texts that were saved before Nexus fetched pictures get theirs, too."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from uuid import uuid4

from nexus.app import build
from nexus.db import migrate
from tests.kit.clock import SetClock
from tests.kit.pictures import illustrated, pictures_of
from tests.kit.settings import make_settings


def test_pictures_of_older_texts_wait_to_be_fetched_after_the_migration(
    own_database_url: str, tmp_path: Path, clock: SetClock
) -> None:
    sources = [
        "https://a.example/1.png?x=1&y=2",
        "https://a.example/2.png",
        "https://a.example/1.png?x=1&y=2",
    ]
    user = uuid4()
    with closing(build(make_settings(own_database_url, tmp_path), clock)) as app:
        media_id = illustrated(app, *sources, user=user, lead="https://a.example/lead.png")
        illustrated(app, user=user)
        written = pictures_of(app, media_id)
    migrate.downgrade_schema(own_database_url, "0011")
    migrate.upgrade_schema(own_database_url)
    with closing(build(make_settings(own_database_url, tmp_path), clock)) as app:
        found = pictures_of(app, media_id)
    assert [(row.revision, row.place, row.source) for row in found] == [
        (1, 0, "https://a.example/lead.png"),
        (1, 1, "https://a.example/1.png?x=1&y=2"),
        (1, 2, "https://a.example/2.png"),
    ]
    as_written = [(row.revision, row.place, row.source, row.user_id, row.tries) for row in written]
    assert [(row.revision, row.place, row.source, row.user_id, row.tries) for row in found] == as_written
