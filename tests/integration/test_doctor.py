"""The doctor: a healthy database is healthy, and the right check finds each kind of damage."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import Connection, text

from nexus.app import App, build
from nexus.db import migrate, triggers
from nexus.db.moves import STORY_ROWS, SUBJECTS, Subject
from nexus.editorial import steps
from nexus.extract import AVAILABLE_EXTRACTORS
from nexus.extract.feeds.results import FeedEntry, FeedReading
from nexus.libraries import access
from nexus.media import shelving
from nexus.media.feeds import arrivals, taking
from nexus.media.feeds.reading import told_items
from nexus.media.feeds.subscribing import Wishes, subscribe_unseen
from nexus.states import job, story
from nexus.states.media import Kind, MediaStatus, Stage
from nexus.storage import StorageError, Stored
from nexus.storage.local import LocalStorage
from nexus.upkeep import doctor
from nexus.upkeep.doctor import CheckVerdict, Finding, Patient
from nexus.upkeep.promises import PROMISES
from nexus.upkeep.speech import check_speech
from tests.kit import jobs
from tests.kit.clock import SetClock
from tests.kit.media import (
    fail_media,
    good_extractor,
    new_file,
    new_media,
    publish_text,
    start_embedding,
    start_extraction,
    walk_media_to,
)
from tests.kit.run_storage import run_prefix
from tests.kit.servers import object_store
from tests.kit.settings import make_settings
from tests.kit.uploads import Uploader, unique_pdf
from tests.kit.users import new_user

DROP_GUARDS = ("DROP TRIGGER media_status_edge", "DROP TRIGGER media_status_birth")


@pytest.fixture
def owner() -> UUID:
    return uuid4()


@pytest.fixture
def small(sqlite_url: str, tmp_path: Path, clock: SetClock) -> Iterator[App]:
    """On SQLite alone."""
    built = build(make_settings(sqlite_url, tmp_path, internal_secret="i" * 40), clock)
    yield built
    built.close()


def examine(app: App, **more: Any) -> dict[str, Finding]:
    settings = app.settings.model_copy(update={"internal_secret": "i" * 40, **more})
    findings = doctor.examine(Patient(settings, app.sessions, app.tools.extractors, app.files))
    return {finding.name: finding for finding in findings}


def complaints(app: App, **more: Any) -> dict[str, CheckVerdict]:
    found = examine(app, **more).values()
    return {finding.name: finding.verdict for finding in found if finding.verdict is not CheckVerdict.OK}


def damage(app: App, *statements: str, **values: Any) -> None:
    """Run raw SQL with all guards switched off."""
    engine = migrate.engine_for(app.settings.database)
    with engine.connect() as connection:
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql("PRAGMA ignore_check_constraints = ON")
            connection.exec_driver_sql("PRAGMA foreign_keys = OFF")
        for statement in statements:
            connection.execute(text(statement), _fitting(connection, values) if ":" in statement else {})
        connection.commit()
    engine.dispose()


def _fitting(connection: Connection, values: dict[str, Any]) -> dict[str, Any]:
    sqlite = connection.dialect.name == "sqlite"
    return {key: value.hex if sqlite and isinstance(value, UUID) else value for key, value in values.items()}


def one_of_each(app: App, owner: UUID) -> dict[MediaStatus, UUID]:
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = good_extractor
    made = {status: new_media(app, owner) for status in MediaStatus}
    for status, media_id in made.items():
        walk_media_to(app, media_id, status)
    return made


def test_a_healthy_database_is_healthy(app: App, owner: UUID) -> None:
    one_of_each(app, owner)
    fail_media(app, media := new_media(app, owner), start_extraction(app, media))
    embedding = new_media(app, owner)
    publish_text(app, embedding, start_extraction(app, embedding))
    fail_media(app, embedding, start_embedding(app, embedding), Stage.EMBED, "E_EMBEDDING_FAILED", "No.")
    jobs.jobs_in_every_state(app, owner)
    jobs.stories_in_every_state(app, owner)
    findings = examine(app)
    assert complaints(app) == {}
    assert doctor.is_healthy(findings.values())
    assert set(findings) >= {promise.name for promise in PROMISES}
    assert all(finding.says.endswith(".") for finding in findings.values())


def test_an_empty_database_is_healthy(app: App) -> None:
    assert complaints(app) == {}


CHUNKS = "UPDATE chunks SET"
GO_AWAY = "DELETE FROM {} WHERE media_id = :id"
SET = "UPDATE media SET {} WHERE id = :id"
_SAID = "'', 'x', 1, 1, 1, '[]', created_at, created_at, 'x'"
_MADE = (
    "INSERT INTO revisions (media_id, number, origin, private_to, content_hash, extractor, words, pieces, characters,"
    " outline, written_at, seen_at, seen_by) SELECT id, {}, {}, " + _SAID + " FROM media WHERE id = :id"
)
LEFT_OVER = _MADE.format("1, 'extracted'", "NULL")
MADE_PRIVATE = _MADE.format("7, 'entered'", "'00000000000000000000000000000001'")
THAT = "WHERE subject_id = :id"
LET_IN = "INSERT INTO memberships SELECT id, :library, 'member', created_at FROM users WHERE id != :owner"
DAMAGES = [
    ("media.values", MediaStatus.PENDING, [SET.format("kind = 'stone'")]),
    ("media.failures", MediaStatus.FAILED, [SET.format("last_error_message = NULL")]),
    ("media.failures", MediaStatus.READY, [SET.format("last_error_code = 'E_X'")]),
    ("media.leases", MediaStatus.EXTRACTING, [SET.format("lease_expires_at = NULL")]),
    ("media.leases", MediaStatus.PENDING, [SET.format("lease_expires_at = '2030-01-01 00:00:00.000000'")]),
    ("media.text", MediaStatus.READY_FOR_READING, [GO_AWAY.format("revisions")]),
    ("media.text", MediaStatus.READY, [SET.format("newest_revision = 7, last_revision = 7")]),
    ("media.leftovers", MediaStatus.PENDING, [LEFT_OVER]),
    ("media.leftovers", MediaStatus.FAILED, [LEFT_OVER]),
    ("revisions.held", MediaStatus.READY, ["UPDATE library_media SET revision = 7 WHERE media_id = :id"]),
    ("revisions.whole", MediaStatus.READY, [GO_AWAY.format("fragments")]),
    ("revisions.whole", MediaStatus.READY, [GO_AWAY.format("fragments") + " AND position = 1"]),
    ("revisions.whole", MediaStatus.READY, ["UPDATE fragments SET text = 'less' WHERE media_id = :id"]),
    ("revisions.numbers", MediaStatus.READY, [SET.format("last_revision = 0")]),
    (
        "revisions.private",
        MediaStatus.READY,
        [MADE_PRIVATE, "UPDATE library_media SET revision = 7 WHERE media_id = :id"],
    ),
    ("recordings.times", MediaStatus.READY, ["INSERT INTO timings VALUES (:id, 1, 0, '[[0, 9999, 0, 1]]')"]),
    ("recordings.times", MediaStatus.READY, ["INSERT INTO timings VALUES (:id, 1, 99, '[[0, 1, 0, 1]]')"]),
    ("search.words", MediaStatus.READY_FOR_READING, [GO_AWAY.format("chunks")]),
    ("search.words", MediaStatus.READY, [GO_AWAY.format("chunks") + " AND position >= 0"]),
    ("search.words", MediaStatus.READY, [GO_AWAY.format("chunks") + " AND position = 0"]),
    (
        "search.words",
        MediaStatus.READY,
        [f"{CHUNKS} start = start + 1 WHERE media_id = :id AND position = 0"],
    ),
    (
        "search.words",
        MediaStatus.READY,
        [f'{CHUNKS} "end" = "end" - 1 WHERE media_id = :id AND position = 0'],
    ),
    (
        "search.places",
        MediaStatus.READY,
        [f'{CHUNKS} "end" = "end" + 1 WHERE media_id = :id AND position = 0'],
    ),
    ("search.places", MediaStatus.READY, [f"{CHUNKS} start = -1 WHERE media_id = :id AND position = 0"]),
    ("search.places", MediaStatus.READY, [f"{CHUNKS} fragment = 7 WHERE media_id = :id AND position = 0"]),
    ("search.vectors", MediaStatus.READY, [GO_AWAY.format("vectors")]),
    ("search.vectors", MediaStatus.READY, ["UPDATE vectors SET vector = x'0000' WHERE media_id = :id"]),
    (
        "search.vectors",
        MediaStatus.READY,
        [
            GO_AWAY.format("vectors")
            + " AND chunk_id = (SELECT max(chunk_id) FROM vectors WHERE media_id = :id)"
        ],
    ),
    (
        "search.leftovers",
        MediaStatus.READY,
        [
            "UPDATE vectors SET chunk_id = media_id"
            " WHERE seq = (SELECT max(seq) FROM vectors WHERE media_id = :id)"
        ],
    ),
    ("search.leftovers", MediaStatus.READY, ["DELETE FROM vector_sets"]),
    ("media.held", MediaStatus.READY, [GO_AWAY.format("library_media")]),
    ("media.hashes", MediaStatus.READY, [SET.format("file_sha256 = 'f00'")]),
    (
        "history.last",
        MediaStatus.READY,
        [*DROP_GUARDS, SET.format("processing_status = 'ready_for_reading'")],
    ),
    ("history.last", MediaStatus.PENDING, [f"DELETE FROM history {THAT}"]),
    ("history.chain", MediaStatus.READY, [f"DELETE FROM history {THAT} AND event = 'readable'"]),
    (
        "history.steps",
        MediaStatus.READY,
        ["UPDATE history SET from_status = 'failed' WHERE subject_id = :id AND event = 'embed'"],
    ),
    ("history.attempts", MediaStatus.READY, [SET.format("processing_attempts = 7")]),
]


@pytest.mark.parametrize(("check", "status", "statements"), DAMAGES)
def test_every_kind_of_damage_to_a_media_is_found(
    small: App, owner: UUID, check: str, status: MediaStatus, statements: list[str]
) -> None:
    media_id = one_of_each(small, owner)[status]
    damage(small, *statements, id=media_id)
    found = examine(small)[check]
    assert (found.verdict, found.count, found.examples) == (CheckVerdict.PROBLEM, 1, (str(media_id),))
    assert found.advice


SET_JOB = "UPDATE jobs SET {} WHERE id = :id"
DROP_JOB_GUARD = "DROP TRIGGER jobs_status_edge"
J = job.JobStatus
JOB_DAMAGES = [
    ("jobs.values", J.QUEUED, [DROP_JOB_GUARD, SET_JOB.format("status = 'STONE'")]),
    ("jobs.failures", J.FAILED, [SET_JOB.format("error_code = NULL")]),
    ("jobs.failures", J.FAILED, [SET_JOB.format("error_message = NULL")]),
    ("jobs.failures", J.FAILED, [SET_JOB.format("error_message = 'It has no step.'")]),
    ("jobs.failures", J.SAVED, [SET_JOB.format("error_code = 'E_X'")]),
    ("jobs.leases", J.QUEUED, [SET_JOB.format("lease_expires_at = '2030-01-01 00:00:00.000000'")]),
    ("jobs.text", J.READY_TO_GENERATE, [SET_JOB.format("extracted_title = ''")]),
    ("jobs.text", J.GENERATING, [SET_JOB.format("extracted_text = NULL")]),
    ("jobs.text", J.SAVED, [SET_JOB.format("extracted_at = NULL")]),
    ("jobs.text", J.SAVED, [SET_JOB.format("extracted_text = printf('%.50001c', 'x')")]),
    ("jobs.pages", J.SAVED, [SET_JOB.format("raw_html = 'a page'")]),
    ("jobs.pages", J.FAILED, [SET_JOB.format("raw_html = 'a page'")]),
    ("jobs.stories", J.SAVED, ["DELETE FROM stories WHERE job_id = :id"]),
    ("jobs.stories", J.SAVED, [SET_JOB.format("story_id = NULL")]),
    ("jobs.stories", J.QUEUED, [SET_JOB.format("story_id = (SELECT id FROM stories LIMIT 1)")]),
    ("history.last", J.SAVED, [DROP_JOB_GUARD, SET_JOB.format("status = 'GENERATING'")]),
    ("history.chain", J.SAVED, [f"DELETE FROM history {THAT} AND event = 'extracted'"]),
    ("history.steps", J.SAVED, [f"UPDATE history SET from_status = 'QUEUED' {THAT} AND event = 'saved'"]),
    ("history.attempts", J.EXTRACTING, [SET_JOB.format("attempt = 1")]),
    ("history.attempts", J.SAVED, [f"DELETE FROM history {THAT} AND event = 'generate'"]),
]


@pytest.mark.parametrize(("check", "status", "statements"), JOB_DAMAGES)
def test_every_kind_of_damage_to_a_job_is_found(
    small: App, owner: UUID, check: str, status: job.JobStatus, statements: list[str]
) -> None:
    job_id = jobs.jobs_in_every_state(small, owner)[status]
    assert complaints(small) == {}
    damage(small, *statements, id=job_id)
    found = examine(small)[check]
    assert (found.verdict, found.count, found.examples) == (CheckVerdict.PROBLEM, 1, (str(job_id),))
    assert found.advice


FEED_DAMAGES = [
    ("subscriptions.values", "UPDATE subscriptions SET error_code = 'E_X'"),
    ("subscriptions.values", "UPDATE subscriptions SET failures = 7"),
    ("subscriptions.admin", "UPDATE memberships SET role = 'member'"),
    ("feed_items.taken", "UPDATE feed_items SET wanted_at = seen_at WHERE taken_at IS NOT NULL"),
    ("feed_items.taken", "UPDATE feed_items SET taken_at = NULL WHERE taken_at IS NOT NULL"),
    ("episodes.identity", "DELETE FROM episodes"),
    ("episodes.identity", "UPDATE media SET kind = 'video'"),
    ("history.last", "DELETE FROM history WHERE subject = 'subscription'"),
]


@pytest.mark.parametrize(("check", "statement"), FEED_DAMAGES)
def test_every_kind_of_damage_to_what_feeds_bring_is_found(
    small: App, owner: UUID, check: str, statement: str
) -> None:
    AVAILABLE_EXTRACTORS[Kind.PODCAST_EPISODE] = good_extractor
    with small.sessions.begin() as session:
        made = subscribe_unseen(session, owner, "https://example.com/feed", Wishes(takes_first=1))
        assert made is not None
        entry = FeedEntry(guid="one", title="One", enclosure_url="https://example.com/one.mp3")
        items = told_items(FeedReading(entries=(entry, FeedEntry(guid="two"))), session.now)
        arrivals.write_arrivals(session, made.id, arrivals.sort_out([], items), [items[0].identity])
    assert len(taking.take_wanted(small.sessions, {}, made.id)) == 1
    assert complaints(small) == {}
    damage(small, statement)
    found = examine(small)[check]
    assert (found.verdict, found.count) == (CheckVerdict.PROBLEM, 1)
    assert found.advice


SET_STORY = "UPDATE stories SET {} WHERE id = :id"
DROP_STORY_GUARD = "DROP TRIGGER stories_status_edge"
#: Evidence that ends beyond the article, before its own beginning, or nowhere.
SET_CLAIM = "sections = json_set(sections, '$.what_happened[0].{}', {})"
T = story.StoryStatus
STORY_DAMAGES = [
    ("stories.values", T.DRAFT, [DROP_STORY_GUARD, SET_STORY.format("status = 'stone'")]),
    ("stories.published", T.PUBLISHED, [SET_STORY.format("published_at = NULL")]),
    ("stories.published", T.ARCHIVED, [SET_STORY.format("published_at = NULL")]),
    ("stories.evidence", T.DRAFT, [SET_STORY.format(SET_CLAIM.format("end", "length(article_text) + 1"))]),
    ("stories.evidence", T.DRAFT, [SET_STORY.format(SET_CLAIM.format("end", "0"))]),
    ("stories.evidence", T.DRAFT, [SET_STORY.format(SET_CLAIM.format("end", "NULL"))]),
    ("stories.evidence", T.DRAFT, [SET_STORY.format(SET_CLAIM.format("start", "-1"))]),
    ("stories.evidence", T.DRAFT, [SET_STORY.format("article_text = 'A short one.'")]),
    ("history.last", T.REVIEW, [DROP_STORY_GUARD, SET_STORY.format("status = 'draft'")]),
    ("history.chain", T.ARCHIVED, [f"DELETE FROM history {THAT} AND event = 'publish'"]),
    ("history.steps", T.REVIEW, [f"UPDATE history SET from_status = 'archived' {THAT} AND event = 'submit'"]),
]


@pytest.mark.parametrize(("check", "status", "statements"), STORY_DAMAGES)
def test_every_kind_of_damage_to_a_story_is_found(
    small: App, owner: UUID, check: str, status: story.StoryStatus, statements: list[str]
) -> None:
    story_id = jobs.stories_in_every_state(small, owner)[status]
    assert complaints(small) == {}
    damage(small, *statements, id=story_id)
    found = examine(small)[check]
    assert (found.verdict, found.count, found.examples) == (CheckVerdict.PROBLEM, 1, (str(story_id),))
    assert found.advice


def test_a_story_with_an_unsupported_claim_is_healthy(small: App, owner: UUID) -> None:
    story_id = jobs.new_story_in(small, owner, T.DRAFT)
    nowhere = "sections = json_set(sections, '$.background', json('[{}]'))"
    claim = '{"text": "He waved.", "quote": "", "start": null, "end": null}'
    damage(small, SET_STORY.format(nowhere.format(claim.replace(":", "\\:"))), id=story_id)
    assert complaints(small) == {}


def test_a_file_whose_bytes_never_came_is_found(small: App, owner: UUID) -> None:
    media_id = new_file(small, owner, "a" * 64, stored=True)
    start_extraction(small, media_id)
    damage(small, SET.format("file_sha256 = NULL"), id=media_id)
    assert complaints(small) == {"media.bytes": CheckVerdict.PROBLEM}


@pytest.mark.parametrize(
    ("check", "statement"),
    [
        ("users.default_library", "DELETE FROM libraries WHERE id = :library"),
        ("users.default_library", "UPDATE libraries SET is_default = 0 WHERE id = :library"),
        ("libraries.owner", "UPDATE memberships SET role = 'member' WHERE library_id = :library"),
        ("libraries.admin", "DELETE FROM memberships WHERE library_id = :library"),
        ("libraries.private", LET_IN),
    ],
)
def test_every_kind_of_damage_to_a_library_is_found(
    small: App, owner: UUID, check: str, statement: str
) -> None:
    one_of_each(small, owner)
    new_media(small, uuid4())
    library = _default_library(small, owner)
    damage(small, statement, library=library, owner=owner)
    found = examine(small)[check]
    assert found.verdict is CheckVerdict.PROBLEM
    assert set(found.examples) <= {str(library), str(owner)}


def test_a_file_in_the_default_library_of_somebody_else_is_found(small: App, owner: UUID) -> None:
    media_id, other = new_file(small, owner, "a" * 64, stored=True), new_user(small)
    assert examine(small)["libraries.files"].verdict is CheckVerdict.OK
    damage(
        small,
        "INSERT INTO library_media (library_id, media_id, added_at) SELECT :library, id, created_at FROM media",
        library=_default_library(small, other),
    )
    found = examine(small)["libraries.files"]
    assert (found.verdict, found.examples) == (CheckVerdict.PROBLEM, (str(media_id),))


def _default_library(app: App, owner: UUID) -> UUID:
    with app.sessions.read() as session:
        return access.default_library(session, owner)


def test_an_index_of_words_that_differs_from_the_texts_is_found(small: App, owner: UUID) -> None:
    one_of_each(small, owner)
    assert examine(small)["search.index"].verdict is CheckVerdict.OK
    damage(small, "UPDATE chunks SET words = 'other words' WHERE position = 0")
    assert examine(small)["search.index"].verdict is CheckVerdict.PROBLEM


def test_dangling_references_are_found(small: App, owner: UUID) -> None:
    media_id = one_of_each(small, owner)[MediaStatus.READY]
    damage(small, "DELETE FROM media WHERE id = :id", id=media_id)
    found = examine(small)["database.integrity"]
    assert found.verdict is CheckVerdict.PROBLEM
    assert any("revisions refers to a missing row of media" in example for example in found.examples)


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.machine.name)
def test_missing_or_weakened_guards_are_found(app: App, subject: Subject[Any]) -> None:
    dialect, table = app.sessions.engine.dialect.name, subject.table.name
    on = "" if dialect == "sqlite" else f" ON {table}"
    guard = next(sql for sql in triggers.create_triggers(subject, dialect) if "status_birth" in sql)
    initial, other = (state.value for state in list(subject.machine.states)[:2])
    damage(app, f"DROP TRIGGER {table}_status_birth{on}")
    try:
        assert examine(app)["database.triggers"].examples == (f"{table}_status_birth",)
        damage(app, guard.replace(f"'{initial}'", f"'{other}'"))
        assert examine(app)["database.triggers"].examples == (f"{table}_status_birth",)
    finally:
        damage(app, f"DROP TRIGGER IF EXISTS {table}_status_birth{on}", guard)
    assert complaints(app) == {}


def test_damage_is_found_on_both_databases(app: App, owner: UUID) -> None:
    made = one_of_each(app, owner)
    parts = ("chunks", "fragments", "revisions")
    damage(app, *map(GO_AWAY.format, parts), id=made[MediaStatus.READY])
    damage(app, GO_AWAY.format("library_media"), id=made[MediaStatus.FAILED])
    damage(
        app,
        "DELETE FROM history WHERE subject_id = :id AND event = 'start'",
        id=made[MediaStatus.READY_FOR_READING],
    )
    assert set(complaints(app)) == {
        "media.text",
        "media.held",
        "lists.keys",
        "history.chain",
        "history.attempts",
    }


@pytest.mark.parametrize(
    "damages",
    [
        "UPDATE library_media SET facet = facet + 64 WHERE (facet & 2) > 0",
        "UPDATE shelf SET user_id = :other",
    ],
)
def test_a_list_that_is_narrowed_by_an_old_state_is_found(app: App, owner: UUID, damages: str) -> None:
    media_id, other = one_of_each(app, owner)[MediaStatus.READY], uuid4()
    new_media(app, other)
    with app.sessions.begin() as session:
        shelving.mark_item(session, media_id, owner, shelving.Marks(is_archived=True))
    assert complaints(app) == {}
    damage(app, damages, other=other)
    assert str(media_id) in examine(app)["lists.facets"].examples


def test_notes_about_an_item_that_their_author_can_not_read_are_found(app: App, owner: UUID) -> None:
    media_id, stranger = one_of_each(app, owner)[MediaStatus.READY], uuid4()
    new_media(app, stranger)
    with app.sessions.begin() as session:
        shelving.mark_item(session, media_id, owner, shelving.Marks(is_read=True))
    assert "shelves.readers" not in complaints(app)
    damage(app, "UPDATE shelf SET user_id = :stranger", stranger=stranger)
    assert examine(app)["shelves.readers"].examples == (str(media_id),)


@pytest.mark.parametrize(
    "spans", ["[[3, 3, 0, 1]]", "[[0, 2, 5, 4]]", "[[0, 2, 0, 1], [2, 9999, 1, 2]]", "[[-1, 2, 0, 1]]", None]
)
def test_times_outside_of_their_words_are_found_on_both_databases(
    app: App, owner: UUID, spans: str | None
) -> None:
    media_id = one_of_each(app, owner)[MediaStatus.READY]
    damage(app, "INSERT INTO timings VALUES (:id, 1, 0, '[[0, 2, 0, 1], [2, 4, 1, 7]]')", id=media_id)
    assert "recordings.times" not in complaints(app)
    wrong = "UPDATE timings SET position = 99" if spans is None else f"UPDATE timings SET spans = '{spans}'"
    damage(app, wrong)
    assert examine(app)["recordings.times"].examples == (str(media_id),)


def test_damage_of_jobs_and_stories_is_found_on_both_databases(app: App, owner: UUID) -> None:
    made = jobs.jobs_in_every_state(app, owner)
    unread, failed, strayed = made[J.READY_TO_GENERATE], made[J.FAILED], made[J.SAVED]
    stray = jobs.subject_row(app.sessions, STORY_ROWS, jobs.stories_of(app, strayed)[0].id)
    damage(app, SET_JOB.format("extracted_text = ''"), id=unread)
    damage(app, SET_JOB.format("story_id = :story"), id=failed, story=stray.id)
    damage(app, SET_STORY.format("article_text = 'A short one.'"), id=stray.id)
    damage(app, f"DELETE FROM history {THAT} AND event = 'fetch'", id=strayed)
    found = {name: finding.examples for name, finding in examine(app).items() if finding.examples}
    assert found == {
        "jobs.text": (str(unread),),
        "jobs.stories": (str(failed),),
        "stories.evidence": (str(stray.id),),
        "history.chain": (str(strayed),),
        "history.attempts": (str(strayed),),
    }


def test_overdue_work_is_noted(app: App, owner: UUID, clock: SetClock) -> None:
    made = one_of_each(app, owner)
    video = new_media(app, owner, kind="video")
    assert complaints(app) == {"work.processors": CheckVerdict.NOTE}
    clock.forward(hours=1)
    findings = examine(app)
    assert findings["work.leases"].verdict is CheckVerdict.NOTE
    assert findings["work.leases"].count == 2
    assert findings["work.due"].examples == (str(made[MediaStatus.PENDING]),)
    assert str(video) not in findings["work.due"].examples
    assert "1 video" in findings["work.processors"].says
    assert doctor.is_healthy(findings.values())


def test_overdue_steps_of_jobs_are_noted(app: App, owner: UUID, clock: SetClock) -> None:
    made = jobs.jobs_in_every_state(app, owner)
    left = jobs.new_job(app, owner)
    steps.leave_fetch(app.tools, left, "test")
    assert complaints(app) == {}
    clock.forward(hours=1)
    findings = examine(app)
    held = {str(made[status]) for status in job.HELD}
    assert (findings["work.leases"].verdict, set(findings["work.leases"].examples)) == (
        CheckVerdict.NOTE,
        held,
    )
    assert (findings["work.due"].verdict, findings["work.due"].examples) == (CheckVerdict.NOTE, (str(left),))
    assert doctor.is_healthy(findings.values())


def test_a_file_that_is_missing_from_the_store_is_a_problem(app: App, owner: UUID) -> None:
    kept, missing = (new_file(app, owner, hash_ * 64, stored=True) for hash_ in "ab")
    assert "files.missing" not in complaints(app)
    app.files.storage.delete(app.files.path(missing, Kind.PDF))
    found = examine(app)["files.missing"]
    assert (found.verdict, found.count, found.examples) == (CheckVerdict.PROBLEM, 1, (str(missing),))
    assert str(kept) not in found.examples
    assert found.advice


def test_a_store_that_lacks_its_keys_is_named_and_the_database_is_not_blamed(
    small: App, owner: UUID, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    object_store.forget_aws(monkeypatch, tmp_path)
    new_file(small, owner, "a" * 64, stored=True)
    elsewhere = {"storage": "s3", "s3_bucket": "nexus", "s3_endpoint_url": "http://127.0.0.1:9"}
    with closing(build(small.settings.model_copy(update=elsewhere))) as app:
        findings = examine(app)
    (found,) = [one for one in findings.values() if one.verdict is CheckVerdict.PROBLEM]
    assert found.name == "files.store"
    assert "NEXUS_S3_ACCESS_KEY and NEXUS_S3_SECRET_KEY" in found.advice
    assert not {"files.missing", "files.orphaned"} & set(findings)


def test_a_store_that_fails_during_a_check_is_not_the_databases_fault(small: App, owner: UUID) -> None:
    class Failing(LocalStorage):
        def objects(self, prefix: str) -> Iterator[Stored]:
            raise StorageError("SlowDown")

    new_file(small, owner, "a" * 64, stored=True)
    kept = small.files.storage
    assert isinstance(kept, LocalStorage)
    failing = replace(small.files, storage=Failing(kept.folder, kept.secret, kept.clock))
    found = examine(replace(small, files=failing))["files.missing"]
    assert (found.verdict, "SlowDown" in found.says) == (CheckVerdict.PROBLEM, True)
    assert "store" in found.advice
    assert "restore" not in found.advice


def test_an_orphaned_object_is_noted(app: App, clock: SetClock) -> None:
    clock.time = datetime.now(UTC)
    path = f"{run_prefix()}media/{uuid4()}/original.pdf"
    app.files.storage.put(path, [b"left behind"], "application/pdf")
    assert complaints(app) == {}
    clock.forward(hours=2)
    found = examine(app)["files.orphaned"]
    assert (found.verdict, found.count, found.examples) == (CheckVerdict.NOTE, 1, (path,))
    assert "nexus clean --remove" in found.advice


def test_an_unfinished_upload_is_healthy(app: App, owner: UUID) -> None:
    begun = Uploader(app, owner).begin(unique_pdf())
    Uploader(app, owner).send(begun, unique_pdf())
    assert not {"files.missing", "files.orphaned"} & set(complaints(app))


def test_the_doctor_names_only_a_few_examples(small: App, owner: UUID) -> None:
    for _ in range(8):
        new_media(small, owner)
    damage(small, "DELETE FROM library_media")
    found = examine(small)["media.held"]
    assert (found.count, len(found.examples)) == (8, doctor.NAMED)


def test_missing_and_weak_secrets_are_found(small: App) -> None:
    assert complaints(small, internal_secret="") == {"settings.secrets": CheckVerdict.PROBLEM}
    assert complaints(small, internal_secret="short") == {"settings.secrets": CheckVerdict.NOTE}
    assert complaints(small, jwt_secret="", jwks_url="https://keys.example") == {}
    path = small.settings.data_dir / "secrets.json"
    path.write_text("{}")
    path.chmod(0o640)
    assert complaints(small) == {"settings.secrets_file": CheckVerdict.PROBLEM}
    path.chmod(0o600)
    assert complaints(small) == {}


def test_redis_is_checked_only_if_the_queue_needs_it(small: App, redis_url: str) -> None:
    away = "redis://127.0.0.1:1/0"
    assert complaints(small, queue="celery", redis_url=redis_url) == {}
    assert complaints(small, queue="celery", redis_url=away) == {"queue.reachable": CheckVerdict.PROBLEM}
    assert complaints(small, queue="local", redis_url=away) == {}


def test_a_database_that_is_not_migrated_is_a_problem(small: App, tmp_path: Path) -> None:
    migrate.downgrade_schema(small.settings.database, "base")
    findings = examine(small)
    assert findings["database.migrated"].advice == "Run: nexus db upgrade"
    assert "media.text" not in findings


def test_a_database_that_does_not_exist_is_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "nothing.sqlite3"
    app = build(make_settings(f"sqlite:///{path}", tmp_path))
    assert complaints(app)["database.reachable"] is CheckVerdict.PROBLEM
    app.close()
    assert not path.exists()
    away = build(make_settings("postgresql://127.0.0.1:1/none", tmp_path))
    assert complaints(away)["database.reachable"] is CheckVerdict.PROBLEM
    away.close()


def test_a_check_that_breaks_is_reported_as_a_problem(small: App, owner: UUID) -> None:
    damage(small, "DROP TABLE revisions")
    found = examine(small)["media.text"]
    assert found.verdict is CheckVerdict.PROBLEM
    assert "could not be checked" in found.says


@pytest.mark.parametrize(
    ("chosen", "installed", "verdict"),
    [("", False, "note"), ("local", False, "problem"), ("local", True, "ok"), ("off", False, "ok")],
)
def test_a_speech_model_that_is_missing_is_named_with_what_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chosen: str, installed: bool, verdict: str
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object() if installed else None)
    found = check_speech(make_settings("", tmp_path, speech=chosen))
    assert found.verdict.value == verdict
    assert ("make speech" in found.advice) == (verdict != "ok")
