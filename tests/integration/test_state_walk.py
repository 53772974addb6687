"""Random walks: whatever workers, sweeps and users do, in any order, a small model predicts the outcome."""

import shutil
import tempfile
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from sqlalchemy import func, select

from nexus.app import build
from nexus.db.session import Statement
from nexus.db.tables import media
from nexus.errors import InvalidState, NotFound
from nexus.extract import Extraction
from nexus.libraries import catalog
from nexus.media.add import add_url
from nexus.media.lifecycle import (
    BACKLOG,
    mark_embedded,
    mark_failed,
    mark_ready_for_reading,
    release,
    retry_media,
    worker_start_attempt,
    worker_start_embedding,
)
from nexus.media.texts import Found
from nexus.states.media import MEDIA, MediaStatus, Stage
from nexus.work.retry import MAX_TRIES
from tests.kit.clock import SetClock
from tests.kit.media import everything_of
from tests.kit.settings import make_settings
from tests.kit.work import take_back_lost

LEASE = timedelta(seconds=60)
PAUSE = timedelta(seconds=20)
URLS = [f"https://example.com/{n}" for n in range(3)]
ANY_URL = st.sampled_from(URLS)
RARELY = st.sampled_from([False, False, False, False, True])
#: How a worker ends; mostly well, so that walks get far.
REPORTS = ["done", "done", "done", "text", "vectors", "failure", "transient", "untouched", "life", "nothing"]
S = MediaStatus
_ALL = Statement(select(func.count().label("media")).select_from(media))


@dataclass
class Model:
    """The specification's model of one media."""

    run_after: datetime
    status: MediaStatus = S.PENDING
    attempts: int = 0
    tries: int = 0
    lease: datetime | None = None
    error: str | None = None
    stage: Stage | None = None
    texts: list[str] = field(default_factory=list)
    walked: list[str] = field(default_factory=lambda: ["create"])

    def claim(self, verb: str, to: MediaStatus, now: datetime) -> None:
        self.attempts += 1
        self.tries += 1
        self.lease = now + LEASE
        self.go(verb, to)

    def go(self, verb: str, to: MediaStatus) -> None:
        self.walked.append(verb)
        self.status = to

    def held_by(self, attempt: int) -> bool:
        return self.lease is not None and self.attempts == attempt

    def back(self, run_after: datetime) -> None:
        self.lease, self.run_after = None, run_after
        if self.status is S.EMBEDDING:
            self.go("release_embedding", S.READY_FOR_READING)
        else:
            self.go("release", S.PENDING)

    def fail(self, stage: Stage, error: str) -> None:
        self.lease, self.stage, self.error = None, stage, error
        self.go("fail", S.FAILED)

    def retry(self, now: datetime) -> None:
        self.tries, self.run_after = 0, now
        if self.stage is Stage.EMBED:
            self.go("retry_embedding", S.READY_FOR_READING)
        else:
            self.texts = []
            self.go("retry", S.PENDING)
        self.stage = self.error = None


class Walk(RuleBasedStateMachine):
    """Every attempt is remembered: workers freeze, wake up, and deliver their result."""

    def __init__(self, template: Path) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="nexus-walk-"))
        shutil.copy(template, self.folder / "nexus.sqlite3")
        self.clock = SetClock()
        url = f"sqlite:///{self.folder / 'nexus.sqlite3'}"
        self.app = build(make_settings(url, self.folder), self.clock)
        self.user = uuid4()
        self.ids: dict[str, UUID] = {}
        self.models: dict[UUID, Model] = {}
        self.issued: list[tuple[UUID, int]] = [(UUID(int=1), 1)]

    def teardown(self) -> None:
        self.app.close()
        shutil.rmtree(self.folder)

    def model(self, url: str) -> tuple[UUID, Model | None]:
        media_id = self.ids.get(url, UUID(int=1))
        return media_id, self.models.get(media_id)

    @initialize()
    def begin(self) -> None:
        for url in URLS:
            self.add(url)

    @rule(url=ANY_URL)
    def add(self, url: str) -> None:
        _, model = self.model(url)
        with self.app.sessions.begin() as session:
            added = add_url(session, self.user, "web_article", url, {})
        assert added.created == (model is None)
        if model is None:
            self.ids[url] = added.media_id
            self.models[added.media_id] = Model(self.clock())
        elif model.status is S.FAILED:
            model.retry(self.clock())

    @rule(url=ANY_URL, muddled=RARELY, report=st.sampled_from(REPORTS))
    def work(self, url: str, muddled: bool, report: str) -> None:
        """A worker claims a media, and then reports or disappears."""
        media_id, model = self.model(url)
        readable = model is not None and model.status is S.READY_FOR_READING
        verb = "embed" if readable != muddled else "start"
        claim = worker_start_attempt if verb == "start" else worker_start_embedding
        home, target = (S.PENDING, S.EXTRACTING) if verb == "start" else (S.READY_FOR_READING, S.EMBEDDING)
        with self.app.sessions.begin() as session:
            row = claim(session, media_id, LEASE)
        due = model is not None and model.status is home and model.run_after <= self.clock()
        assert (row is not None) == due
        if due:
            model.claim(verb, target, self.clock())
            self.issued.append((media_id, model.attempts))
            self.report(report, self.issued[-1])

    @rule(report=st.sampled_from(REPORTS), which=st.integers(0, 99))
    def late_report(self, report: str, which: int) -> None:
        """The worker of any earlier attempt wakes up; its media may be gone."""
        self.report(report, self.issued[-1 - which % len(self.issued)])

    def report(self, name: str, attempt: tuple[UUID, int]) -> None:
        getattr(self, f"report_{name}")(attempt)

    def report_done(self, attempt: tuple[UUID, int]) -> None:
        embedding = self.holder(attempt, S.EMBEDDING) is not None
        self.report("vectors" if embedding else "text", attempt)

    def report_nothing(self, attempt: tuple[UUID, int]) -> None:
        pass

    def holder(self, attempt: tuple[UUID, int], *where: MediaStatus) -> Model | None:
        """The media that this attempt may still write to."""
        model = self.models.get(attempt[0])
        good = model is not None and model.held_by(attempt[1]) and model.status in where
        return model if good else None

    def report_text(self, attempt: tuple[UUID, int]) -> None:
        text = f"text of attempt {attempt[1]}"
        with self.app.sessions.begin() as session:
            done = mark_ready_for_reading(session, *attempt, Found(Extraction.plain("title", text), "tests"))
        model = self.holder(attempt, S.EXTRACTING)
        assert done == (model is not None)
        if model:
            model.lease, model.tries, model.texts = None, 0, [text]
            model.go("readable", S.READY_FOR_READING)

    def report_vectors(self, attempt: tuple[UUID, int]) -> None:
        with self.app.sessions.begin() as session:
            done = mark_embedded(session, *attempt)
        model = self.holder(attempt, S.EMBEDDING)
        assert done == (model is not None)
        if model:
            model.lease, model.tries = None, 0
            model.go("embedded", S.READY)

    def report_failure(self, attempt: tuple[UUID, int]) -> None:
        model = self.holder(attempt, S.EXTRACTING, S.EMBEDDING)
        stage = Stage.EMBED if model and model.status is S.EMBEDDING else Stage.EXTRACT
        with self.app.sessions.begin() as session:
            done = mark_failed(session, attempt[0], stage, "E_ANY", "It failed.", attempt[1])
        assert done == (model is not None)
        if model:
            model.fail(stage, "E_ANY")

    def report_transient(self, attempt: tuple[UUID, int]) -> None:
        later = self.clock() + PAUSE
        with self.app.sessions.begin() as session:
            done = release(session, *attempt, "E_FETCH_FAILED", later)
        model = self.holder(attempt, S.EXTRACTING, S.EMBEDDING)
        assert done == (model is not None)
        if model:
            model.back(later)

    def report_untouched(self, attempt: tuple[UUID, int]) -> None:
        with self.app.sessions.begin() as session:
            done = release(session, *attempt, None, session.now, counted=False)
        model = self.holder(attempt, S.EXTRACTING, S.EMBEDDING)
        assert done == (model is not None)
        if model:
            model.tries -= 1
            model.back(self.clock())

    def report_life(self, attempt: tuple[UUID, int]) -> None:
        with self.app.sessions.begin() as session:
            BACKLOG.renew(session, [attempt], session.now + LEASE)
        if model := self.holder(attempt, S.EXTRACTING, S.EMBEDDING):
            model.lease = self.clock() + LEASE

    @rule(url=ANY_URL, sure=RARELY)
    def fail_unbegun(self, url: str, sure: bool) -> None:
        media_id, model = self.model(url)
        if not sure:
            return
        with self.app.sessions.begin() as session:
            done = mark_failed(session, media_id, Stage.OTHER, "E_ANY", "It failed.")
        assert done == (model is not None and model.status is S.PENDING)
        if done:
            model.fail(Stage.OTHER, "E_ANY")

    @rule(seconds=st.sampled_from([1, 19, 20, 59, 60, 600]))
    def time_passes(self, seconds: int) -> None:
        self.clock.forward(seconds=seconds)

    @rule()
    def sweep(self) -> None:
        now = self.clock()
        released = take_back_lost(self.app.tools)
        expired = [model for model in self.models.values() if model.lease and model.lease <= now]
        assert released == len(expired)
        for model in expired:
            if model.tries < MAX_TRIES:
                model.back(now)
            elif model.status is S.EMBEDDING:
                model.fail(Stage.EMBED, "E_EMBEDDING_TIMEOUT")
            else:
                model.fail(Stage.EXTRACT, "E_JOB_TIMEOUT")

    @rule(url=ANY_URL)
    def retry(self, url: str) -> None:
        media_id, model = self.model(url)
        if model is not None and model.status is S.FAILED:
            with self.app.sessions.begin() as session:
                retry_media(session, media_id, self.user)
            model.retry(self.clock())
            return
        with pytest.raises(NotFound if model is None else InvalidState), self.app.sessions.begin() as session:
            retry_media(session, media_id, self.user)

    @rule(url=ANY_URL, sure=RARELY)
    def delete(self, url: str, sure: bool) -> None:
        media_id, model = self.model(url)
        if not sure:
            return
        if model is None:
            with pytest.raises(NotFound), self.app.sessions.begin() as session:
                catalog.delete_media(session, media_id, self.user)
            return
        with self.app.sessions.begin() as session:
            catalog.delete_media(session, media_id, self.user)
        del self.models[media_id], self.ids[url]

    @invariant()
    def the_database_is_as_the_model_says(self) -> None:
        for media_id, model in self.models.items():
            found = everything_of(self.app.sessions, media_id)
            row = found.row
            assert MediaStatus(row.processing_status) is model.status
            assert (row.processing_attempts, row.tries) == (model.attempts, model.tries)
            assert (row.run_after, row.lease_expires_at) == (model.run_after, model.lease)
            assert (row.last_error_code, row.failure_stage) == (model.error, model.stage)
            assert found.texts == model.texts
            assert [entry.event for entry in found.history] == model.walked
            assert replayed(found.history) == (row.processing_status, row.processing_attempts)
        with self.app.sessions.read() as session:
            assert session.first(_ALL).media == len(self.models)


def replayed(entries: list[Any]) -> tuple[str | None, int]:
    """The status and the attempts that the history leads to, step by step along the machine's edges."""
    edges = {edge.verb: edge for edge in MEDIA}
    state, attempt = None, 0
    for entry in entries:
        assert entry.from_status == state
        if state is not None:
            assert MediaStatus(state) in edges[entry.event].sources
            assert edges[entry.event].target == entry.to_status
        attempt += entry.event in {"start", "embed"}
        assert entry.attempt == attempt
        state = entry.to_status
    return state, attempt


def test_random_walks_end_where_the_model_says(migrated_sqlite: Path) -> None:
    run_state_machine_as_test(
        lambda: Walk(migrated_sqlite),
        settings=settings(
            max_examples=60,
            stateful_step_count=40,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
