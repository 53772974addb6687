"""Every cell of the job machine, in the database: what applies changes the status, what does not changes nothing."""

from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import literal_column, null

from nexus.app import App
from nexus.db.moves import JOB_ROWS, Missed, Move
from nexus.editorial import jobs
from nexus.libraries import access
from nexus.states.job import JOB, JobStatus
from nexus.states.machine import Edge, Verdict
from tests.kit.jobs import force_job_into

CELLS = [pytest.param(edge, state, id=f"{edge.verb}-{state.value}") for edge in JOB for state in JOB.states]


def facts(target: JobStatus) -> dict[str, Any]:
    """What the CHECK constraints require of a row in this state."""
    error = literal_column("'E_ANY'") if target is JobStatus.FAILED else null()
    return {"error_code": error, "error_message": error}


@pytest.fixture
def job_id(app: App) -> UUID:
    user = uuid4()
    with app.sessions.begin() as session:
        library = access.ensure_user(session, user)
        return jobs.queue_job(session, user, library, "https://example.com/a", {})


@pytest.mark.parametrize(("edge", "state"), CELLS)
def test_every_cell_of_the_job_table_holds_in_the_database(
    app: App, job_id: UUID, edge: Edge[JobStatus], state: JobStatus
) -> None:
    force_job_into(app.sessions, job_id, state)
    with app.sessions.begin() as session:
        result = Move(JOB_ROWS, edge, sets=facts(edge.target))(session, job_id, actor="matrix")
    with app.sessions.read() as session:
        after = jobs.find_job(session, job_id)
    assert after is not None
    if state in edge.sources:
        assert (after.status, after.status_before) == (edge.target.value, state.value)
        return
    expected = Verdict.SKIP if state in edge.skips else Verdict.REFUSE
    assert result == Missed(expected, state, stale=False)
    assert (after.status, after.attempt) == (state.value, 0)
