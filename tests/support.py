"""What tests share: a clock to set, settings, and rows to start from."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid4

from sqlalchemy import bindparam, column, null, select, table, text, update

from nexus.app import App
from nexus.db.editorial import jobs
from nexus.db.session import Row, Sessions, Statement
from nexus.db.tables import history, media
from nexus.media.add import add_url
from nexus.settings import Settings
from nexus.states.job import Status as JobStatus
from tests.runs import run_prefix

_GUARD = Statement(
    select(column("sql")).select_from(table("sqlite_master")).where(column("name") == "jobs_status_edge")
)
_PUT_JOB = Statement(
    update(jobs)
    .where(jobs.c.id == bindparam("job_id"))
    .values(
        status=bindparam("put_status"),
        error_code=bindparam("put_error", type_=jobs.c.error_code.type),
        error_message=bindparam("put_error", type_=jobs.c.error_message.type),
        story_id=jobs.c.id,
        lease_expires_at=null(),
    )
)


class SetClock:
    """A clock that stands still until it is told to go on."""

    def __init__(self) -> None:
        self.time = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.time

    def forward(self, **by: float) -> None:
        self.time += timedelta(**by)


def make_settings(database_url: str, folder: Path, **more: object) -> Settings:
    """Settings of a test: nothing of them comes from the environment or a .env file of the machine."""
    given: dict[str, object] = {
        "env": "test",
        "database_url": database_url,
        "data_dir": folder,
        "jwt_secret": "a-secret-of-the-tests-that-is-long-enough",
        "internal_secret": "internal-secret-of-the-tests",
        "session_secret": "session-secret-of-the-tests-that-is-long",
        "poll_seconds": 0.05,
        "sweep_seconds": 0.05,
        "storage_prefix": run_prefix(),
        **more,
    }
    return Settings(_env_file=None, **given)  # type: ignore[arg-type]


def new_media(app: App, user: UUID | None = None, url: str | None = None, kind: str = "web_article") -> UUID:
    """A pending media in the default library of a user."""
    address = url or f"https://example.com/{uuid4().hex}"
    with app.sessions.begin() as session:
        return add_url(session, user or uuid4(), kind, address, {}).media_id


_ROW = Statement(select(media).where(media.c.id == bindparam("media_id")))
_HISTORY = Statement(
    select(history).where(history.c.subject_id == bindparam("media_id")).order_by(history.c.id)
)


def row_of(sessions: Sessions, media_id: UUID) -> Row:
    with sessions.read() as session:
        return session.first(_ROW, media_id=media_id)


def history_of(sessions: Sessions, media_id: UUID) -> list[Row]:
    with sessions.read() as session:
        return session.all(_HISTORY, media_id=media_id)


def put_job(sessions: Sessions, job_id: UUID, status: JobStatus) -> None:
    """Past the guards, as no verb could: into a state that only old rows are in, or one that is far away."""
    error = "E_ANY" if status is JobStatus.FAILED else None
    values = {"job_id": job_id, "put_status": status.value, "put_error": error}
    with sessions.begin() as session:
        if session.is_sqlite:
            guard = session.first(_GUARD).sql
            session.run(Statement(text("DROP TRIGGER jobs_status_edge")))
            session.run(_PUT_JOB, **values)
            session.run(Statement(text(guard)))
        else:
            session.run(Statement(text("SET LOCAL session_replication_role = replica")))
            session.run(_PUT_JOB, **values)
