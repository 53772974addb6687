"""A short run of `make chaos` on each database, and whether its parts do what they say."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from uuid import uuid4

import pytest

from chaos import plan
from chaos.invariants import history, rows
from chaos.invariants.database import Database
from chaos.plan import Scene
from chaos.run import run
from chaos.stage import staged
from nexus.app import App
from nexus.extract import AVAILABLE_EXTRACTORS, Extraction
from nexus.states.media import Kind
from tests.kit.media import new_media
from tests.kit.run_storage import run_prefix
from tests.kit.work import extract_item

TEAM = Scene("postgres", "celery", "local")
PERSON = Scene("sqlite", "local", "local")
#: How long things go wrong in the tests, in seconds.
SHORT = 10.0


@pytest.mark.timeout(600)
@pytest.mark.parametrize("scene", [TEAM, PERSON], ids=lambda scene: scene.database)
def test_kills_freezes_cuts_and_full_disks_cost_nothing_that_was_acknowledged(scene: Scene) -> None:
    report = run(seed=2026, seconds=SHORT, scene=scene)
    assert report.ledger.acknowledged.total() > 0
    assert set(report.faults) == set(plan.menu(scene)), report.text
    assert not report.violations, report.text


@pytest.mark.parametrize("scene", [TEAM, PERSON, Scene("postgres", "local", "s3")], ids=str)
@pytest.mark.parametrize("seed", [7, 8, 2026])
def test_even_a_short_plan_has_every_kind_of_fault(scene: Scene, seed: int) -> None:
    assert {fault.kind for fault in plan.draw(seed, SHORT, scene)} == set(plan.menu(scene))


def test_a_chaos_run_stores_its_files_below_the_prefix_of_the_test_run() -> None:
    with staged(PERSON) as stage:
        assert stage._environment("server-1")["NEXUS_STORAGE_PREFIX"] == run_prefix()


def test_a_seed_always_gives_the_same_plan_of_faults() -> None:
    assert plan.draw(7, 120.0, TEAM) == plan.draw(7, 120.0, TEAM)
    assert plan.draw(7, 120.0, TEAM) != plan.draw(8, 120.0, TEAM)


def test_a_plan_of_faults_is_bounded_and_gives_no_target_two_at_a_time() -> None:
    drawn = plan.draw(7, 36_000.0, TEAM)
    assert len(drawn) == plan.MOST_FAULTS
    ends: dict[str, float] = {}
    for fault in drawn:
        assert ends.get(fault.target, 0.0) <= fault.at
        ends[fault.target] = fault.at + fault.length


@pytest.fixture
def app_with_text(app: App) -> App:
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = lambda _: Extraction.plain("A title", "Some text.")
    return app


@pytest.fixture
def database_url(sqlite_url: str) -> str:
    """SQLite alone: its rows are damaged by hand."""
    return sqlite_url


#: Damage done to a readable item behind Nexus's back, and what must be reported.
SPOILED = {
    "DELETE FROM fragments": "a readable item has no text",
    "DELETE FROM revisions": "a readable item has no document",
    "DELETE FROM library_media": "an item is in no library",
    "UPDATE media SET processing_status = 'pending'": "is pending",
    "UPDATE history SET to_status = 'ready' WHERE event = 'readable'": "is no edge",
    "DELETE FROM history WHERE event = 'start'": "the step before ended at pending",
    "UPDATE history SET attempt = 0": "start has attempt 0 and not 1",
    "DELETE FROM history": "has no history",
    "DELETE FROM media": "is gone and has a history",
}


@pytest.mark.parametrize("spoil", SPOILED)
def test_the_chaos_run_notices_damaged_rows(app_with_text: App, sqlite_url: str, spoil: str) -> None:
    media_id = new_media(app_with_text, uuid4())
    extract_item(app_with_text.tools, media_id)
    database = Database(sqlite_url)
    assert [*rows.check(database), *history.check(database)] == []
    with closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))) as connection, connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute(spoil)
    told = " ".join(one.about for one in [*rows.check(database), *history.check(database)])
    assert SPOILED[spoil] in told
