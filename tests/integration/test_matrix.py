"""Every cell of every machine, generated from its table: applied, skipped or refused.

The media machine is walked in the database, through the guarded move and around it by plain SQL.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from enum import Enum
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from sqlalchemy import bindparam, insert, literal_column, null, update

from nexus.app import App
from nexus.db.moves import MEDIA_ROWS, Missed, Move
from nexus.db.rows import MediaRow
from nexus.db.session import Statement
from nexus.db.tables import media
from nexus.libraries import access
from nexus.states.attempt import ATTEMPT
from nexus.states.job import JOB
from nexus.states.machine import Edge, Machine, Verdict
from nexus.states.media import HELD, MEDIA, RETRY_EMBEDDING, MediaStatus, Stage
from nexus.states.story import STORY
from tests.kit.media import everything_of, new_media, walk_media_to

NO_FAILURE = dict.fromkeys(("failure_stage", "last_error_code", "last_error_message", "failed_at"), null())
NOW = bindparam("now", type_=media.c.updated_at.type)


def facts(target: MediaStatus) -> dict[str, Any]:
    """What the CHECK constraints require of a row in this state."""
    return {
        **NO_FAILURE,
        "lease_expires_at": NOW if target in HELD else null(),
        **(
            {
                "failure_stage": literal_column("'other'"),
                "last_error_code": literal_column("'E_ANY'"),
                "last_error_message": literal_column("'It failed.'"),
                "failed_at": NOW,
            }
            if target is MediaStatus.FAILED
            else {}
        ),
    }


def cells(machine: Machine[Any]) -> list[Any]:
    return [
        pytest.param(edge, state, id=f"{edge.verb}-{state.value}")
        for edge in machine
        for state in machine.states
    ]


def stage_for(edge: Edge[MediaStatus]) -> Stage:
    """A failure that the edge starts from."""
    return Stage(edge.where[1]) if edge.where else Stage.EXTRACT


def unchanged(before: Any, after: Any, *but: str) -> bool:
    return all(getattr(before, name) == getattr(after, name) for name in before._fields if name not in but)


@pytest.mark.parametrize(("edge", "state"), cells(MEDIA))
def test_every_cell_of_the_media_table_holds_in_the_database(
    app: App, edge: Edge[MediaStatus], state: MediaStatus
) -> None:
    media_id = new_media(app)
    walk_media_to(app, media_id, state, stage_for(edge))
    before = everything_of(app.sessions, media_id)
    moved = Move(MEDIA_ROWS, edge, row=MediaRow, sets=facts(edge.target))
    with app.sessions.begin() as session:
        result = moved(session, media_id, actor="matrix", error_code="E_ANY")
    after = everything_of(app.sessions, media_id)
    if state not in edge.sources:
        expected = Verdict.SKIP if state in edge.skips else Verdict.REFUSE
        assert result == Missed(expected, state, stale=False)
        assert not result
        assert after == before
        return
    assert result == after.row
    assert (after.row.processing_status, after.row.status_before) == (edge.target, state)
    touched = {*NO_FAILURE, "lease_expires_at", "processing_status", "status_before", "updated_at"}
    assert unchanged(before.row, after.row, *touched)
    assert after.history[:-1] == before.history
    entry = after.history[-1]
    assert (entry.subject, entry.event) == ("media", edge.verb)
    assert (entry.from_status, entry.to_status) == (state, edge.target)
    assert (entry.actor, entry.error_code) == ("matrix", "E_ANY")
    assert entry.attempt == before.row.processing_attempts


@pytest.mark.parametrize("edge", MEDIA.edges, ids=lambda edge: edge.verb)
def test_a_fenced_move_of_another_attempt_is_stale_and_changes_nothing(
    app: App, edge: Edge[MediaStatus]
) -> None:
    moved = Move(MEDIA_ROWS, edge, sets=facts(edge.target), fenced=True)
    for state in sorted(edge.sources):
        media_id = new_media(app)
        attempt = walk_media_to(app, media_id, state, stage_for(edge))
        before = everything_of(app.sessions, media_id)
        for wrong in (attempt - 1, attempt + 1):
            with app.sessions.begin() as session:
                missed = moved(session, media_id, actor="matrix", fence=wrong)
            assert missed == Missed(Verdict.REFUSE, state, stale=True)
        assert everything_of(app.sessions, media_id) == before
        with app.sessions.begin() as session:
            assert moved(session, media_id, actor="matrix", fence=attempt)


def test_a_move_of_a_row_that_does_not_exist_says_so(app: App) -> None:
    for edge in MEDIA:
        with app.sessions.begin() as session:
            missed = Move(MEDIA_ROWS, edge, sets={})(session, uuid4(), actor="matrix")
        assert missed == Missed(Verdict.REFUSE, None)


def test_a_move_can_be_narrowed_to_some_of_its_sources_but_not_to_none(app: App) -> None:
    fail = next(edge for edge in MEDIA if edge.verb == "fail")
    narrow = Move(MEDIA_ROWS, fail, sets=facts(MediaStatus.FAILED), only=frozenset({MediaStatus.PENDING}))
    media_id = new_media(app)
    walk_media_to(app, media_id, MediaStatus.EXTRACTING)
    before = everything_of(app.sessions, media_id)
    with app.sessions.begin() as session:
        missed = narrow(session, media_id, actor="matrix")
    assert missed == Missed(Verdict.REFUSE, MediaStatus.EXTRACTING, stale=True)
    assert everything_of(app.sessions, media_id) == before
    with pytest.raises(ValueError, match="no source left"):
        Move(MEDIA_ROWS, fail, sets={}, only=frozenset({MediaStatus.READY}))


# around the move: plain SQL


@contextmanager
def refused(expected: bool) -> Iterator[None]:
    """Only by the trigger, and exactly when it is expected."""
    if not expected:
        yield
        return
    with pytest.raises(Exception, match="not an edge of the media machine") as caught:
        yield
    if isinstance(caught.value, psycopg.Error):
        assert isinstance(caught.value, psycopg.errors.CheckViolation)


def set_status(app: App, media_id: UUID, target: MediaStatus) -> None:
    by_hand = Statement(
        update(media)
        .where(media.c.id == bindparam("media_id"))
        .values({"processing_status": literal_column(f"'{target.value}'"), **facts(target)})
    )
    with app.sessions.begin() as session:
        session.run(by_hand, media_id=media_id, now=session.now)


@pytest.mark.parametrize("target", MediaStatus)
@pytest.mark.parametrize("source", MediaStatus)
def test_plain_sql_changes_a_status_only_along_an_edge(
    app: App, source: MediaStatus, target: MediaStatus
) -> None:
    legal = (source, target) in MEDIA.steps() or source is target
    media_id = new_media(app)
    walk_media_to(app, media_id, source, Stage.EMBED)
    before = everything_of(app.sessions, media_id)
    with refused(not legal):
        set_status(app, media_id, target)
    after = everything_of(app.sessions, media_id)
    if legal:
        assert after.row.processing_status == target
    else:
        assert after == before


def test_plain_sql_makes_readable_only_what_failed_to_be_embedded(app: App) -> None:
    for stage in set(Stage) - {Stage.EMBED}:
        media_id = new_media(app)
        walk_media_to(app, media_id, MediaStatus.FAILED, stage)
        with refused(True):
            set_status(app, media_id, RETRY_EMBEDDING.target)


def test_plain_sql_changes_no_row_when_one_of_many_is_off_the_edges(app: App) -> None:
    ready, pending = new_media(app), new_media(app)
    walk_media_to(app, ready, MediaStatus.READY)
    everywhere = Statement(
        update(media).values(
            {"processing_status": literal_column("'extracting'"), **facts(MediaStatus.EXTRACTING)}
        )
    )
    with refused(True), app.sessions.begin() as session:
        session.run(everywhere, now=session.now)
    assert everything_of(app.sessions, pending).row.processing_status == "pending"


def insert_with(app: App, status: str | None, now: datetime) -> None:
    target = MediaStatus(status or "pending")
    given: dict[str, Any] = dict.fromkeys(("run_after", "created_at", "updated_at"), NOW)
    given |= {"id": bindparam("media_id"), "kind": literal_column("'web_article'")}
    given |= {"created_by_user_id": bindparam("user_id"), **facts(target)}
    if status is not None:
        given["processing_status"] = literal_column(f"'{status}'")
    statement = Statement(insert(media).values(given))
    with app.sessions.begin() as session:
        access.ensure_user(session, user := uuid4())
        session.run(statement, media_id=uuid4(), user_id=user, now=now)


@pytest.mark.parametrize("status", [None, *MediaStatus])
def test_a_row_starts_only_in_the_initial_state(app: App, status: MediaStatus | None) -> None:
    with refused(status not in {None, MEDIA.initial}):
        insert_with(app, status, app.sessions.clock())


def test_no_status_outside_the_enum_can_be_written(app: App) -> None:
    media_id = new_media(app)
    by_hand = Statement(
        update(media)
        .where(media.c.id == bindparam("media_id"))
        .values(processing_status=literal_column("'done'"))
    )
    with refused(True), app.sessions.begin() as session:
        session.run(by_hand, media_id=media_id)


@pytest.mark.parametrize("name", [*NO_FAILURE, "lease_expires_at"])
def test_facts_that_belong_together_cannot_be_parted(app: App, name: str) -> None:
    """A failed media has all failure fields, a held one its lease, and no other media has them."""
    state = MediaStatus.EXTRACTING if name == "lease_expires_at" else MediaStatus.FAILED
    with_it, without_it = new_media(app), new_media(app)
    walk_media_to(app, with_it, state)
    value = NOW if name in {"lease_expires_at", "failed_at"} else literal_column("'other'")
    for media_id, given in ((with_it, null()), (without_it, value)):
        by_hand = Statement(update(media).where(media.c.id == bindparam("media_id")).values({name: given}))
        with pytest.raises(Exception, match=r"(?i)check constraint"), app.sessions.begin() as session:
            session.run(by_hand, media_id=media_id, now=session.now)


# the machines without a table


@pytest.mark.parametrize("machine", [JOB, ATTEMPT, MEDIA, STORY], ids=lambda machine: machine.name)
def test_every_cell_decides_as_its_line_in_the_table_says(machine: Machine[Any]) -> None:
    for edge in machine:
        for state in machine.states:
            assert edge.decide(state) is expected(edge, state), (edge.verb, state)


def expected(edge: Edge[Any], state: Enum) -> Verdict:
    if state in edge.sources:
        return Verdict.APPLY
    return Verdict.SKIP if state in edge.skips else Verdict.REFUSE
