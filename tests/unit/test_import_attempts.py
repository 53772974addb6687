"""The one import attempt of a user: every promise of its states."""

from __future__ import annotations

import logging
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from unittest.mock import Mock
from uuid import UUID, uuid4

import pytest
import structlog
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from structlog.testing import capture_logs

from nexus.errors import CancellationFailed, WorkspaceFailed
from nexus.imports.attempts import IDLE, AttemptAnswer, AttemptState, Registry, StopFlags
from nexus.imports.workspaces import LOCK, Workspace, Workspaces
from nexus.states.attempt import AttemptStatus, Phase
from nexus.states.machine import Verdict

PHASES = [Phase.PARSING, Phase.SPLITTING, Phase.ATOMIC_TEXT_COMMIT, Phase.TEXT_COMMITTED]


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return tmp_path / "imports"


@pytest.fixture
def workspaces(base: Path) -> Iterator[Workspaces]:
    made = Workspaces(base)
    yield made
    made.close()


@pytest.fixture
def registry(workspaces: Workspaces) -> Registry:
    return Registry(workspaces)


def started(registry: Registry) -> UUID:
    return known(registry.start())


def known(answer: AttemptAnswer) -> UUID:
    assert answer.state.attempt_id is not None
    return answer.state.attempt_id


def paused(registry: Registry) -> UUID:
    attempt_id = started(registry)
    registry.advance(attempt_id, Phase.PARSING)
    registry.stop()
    assert registry.finish_stop(attempt_id, staged_work=True)
    return attempt_id


def put(registry: Registry, status: AttemptStatus) -> UUID:
    """A registry with an attempt that is, or was, in this state."""
    if status is AttemptStatus.PAUSED:
        return paused(registry)
    attempt_id = started(registry)
    if status is AttemptStatus.STOPPING:
        registry.stop()
    elif status is AttemptStatus.COMPLETE:
        registry.complete(attempt_id)
    elif status is AttemptStatus.IDLE:
        registry.stop()
        registry.finish_stop(attempt_id, staged_work=False)
    assert registry.state.status is status
    return attempt_id


def refused(answer: AttemptAnswer, before: AttemptState, registry: Registry) -> bool:
    return not answer and answer.state == before == registry.state


def test_a_new_registry_is_idle_with_no_attempt(registry: Registry) -> None:
    assert registry.state == AttemptState(AttemptStatus.IDLE, Phase.NOT_STARTED, None, False)


@pytest.mark.parametrize("status", [AttemptStatus.IDLE, AttemptStatus.COMPLETE])
def test_starting_makes_an_attempt_with_a_workspace_in_preflight(
    registry: Registry, status: AttemptStatus
) -> None:
    before = put(registry, status)
    attempt_id = started(registry)
    assert attempt_id != before
    assert registry.state == AttemptState(AttemptStatus.RUNNING, Phase.PREFLIGHT, attempt_id, True)
    assert registry.workspaces.find(attempt_id)
    assert not registry.flags.is_raised(attempt_id)


@pytest.mark.parametrize("status", [AttemptStatus.RUNNING, AttemptStatus.STOPPING, AttemptStatus.PAUSED])
def test_starting_while_there_is_an_attempt_is_refused(registry: Registry, status: AttemptStatus) -> None:
    put(registry, status)
    before = registry.state
    assert refused(registry.start(), before, registry)


def test_starting_without_a_workspace_is_an_error_and_changes_nothing(registry: Registry, base: Path) -> None:
    base.write_text("in the way")
    with capture_logs() as lines, pytest.raises(WorkspaceFailed):
        registry.start()
    assert registry.state == IDLE
    assert [(line["event"], line["log_level"]) for line in lines] == [("import_workspace_failed", "error")]


def test_phases_are_those_of_the_running_attempt(registry: Registry) -> None:
    attempt_id = started(registry)
    for phase in PHASES:
        assert registry.advance(attempt_id, phase).state.phase is phase


def test_a_phase_of_another_attempt_is_refused_as_stale(registry: Registry) -> None:
    started(registry)
    before = registry.state
    answer = registry.advance(uuid4(), Phase.SPLITTING)
    assert refused(answer, before, registry)
    assert answer.stale


@pytest.mark.parametrize(
    "status", [AttemptStatus.STOPPING, AttemptStatus.PAUSED, AttemptStatus.COMPLETE, AttemptStatus.IDLE]
)
def test_a_phase_of_an_attempt_that_does_not_run_is_refused(
    registry: Registry, status: AttemptStatus
) -> None:
    attempt_id = put(registry, status)
    before = registry.state
    assert refused(registry.advance(attempt_id, Phase.SPLITTING), before, registry)


def test_stopping_raises_the_flag_first_and_keeps_the_phase(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt_id = started(registry)
    registry.advance(attempt_id, Phase.PARSING)
    seen: list[AttemptStatus] = []
    real = StopFlags.raise_

    def watched(flags: StopFlags, asked: UUID) -> None:
        seen.append(registry.state.status)
        real(flags, asked)

    monkeypatch.setattr(StopFlags, "raise_", watched)
    assert registry.stop().state == AttemptState(AttemptStatus.STOPPING, Phase.PARSING, attempt_id, True)
    assert seen == [AttemptStatus.RUNNING]
    assert registry.flags.is_raised(attempt_id)


def test_stopping_twice_is_the_same_as_once_with_a_warning(registry: Registry) -> None:
    put(registry, AttemptStatus.STOPPING)
    before = registry.state
    with capture_logs() as lines:
        answer = registry.stop()
    assert (answer.verdict, answer.state, registry.state) == (Verdict.SKIP, before, before)
    assert [line["log_level"] for line in lines] == ["warning"]


@pytest.mark.parametrize("status", [AttemptStatus.IDLE, AttemptStatus.PAUSED, AttemptStatus.COMPLETE])
def test_stopping_an_attempt_that_does_not_run_is_refused(registry: Registry, status: AttemptStatus) -> None:
    put(registry, status)
    before = registry.state
    assert refused(registry.stop(), before, registry)


def test_an_attempt_whose_flag_can_not_be_raised_keeps_running(registry: Registry) -> None:
    attempt_id = started(registry)
    before = registry.state
    registry.flags.forget(attempt_id)
    with capture_logs() as lines, pytest.raises(CancellationFailed) as failed:
        registry.stop()
    assert (failed.value.code, failed.value.status) == ("E_CANCELLATION_FAILED", 500)
    assert registry.state == before
    assert [line["log_level"] for line in lines] == ["error"]


def test_a_finished_stop_with_staged_work_pauses_and_keeps_everything(registry: Registry) -> None:
    attempt_id = started(registry)
    registry.advance(attempt_id, Phase.SPLITTING)
    registry.stop()
    with capture_logs() as lines:
        registry.finish_stop(attempt_id, staged_work=True)
    assert registry.state == AttemptState(AttemptStatus.PAUSED, Phase.SPLITTING, attempt_id, True)
    assert registry.workspaces.find(attempt_id)
    assert ("import_stop_finished", "info") in [(line["event"], line["log_level"]) for line in lines]


def test_a_finished_stop_without_staged_work_ends_idle_with_nothing_left(registry: Registry) -> None:
    attempt_id = put(registry, AttemptStatus.IDLE)
    assert registry.state == IDLE
    assert registry.workspaces.find(attempt_id) is None
    assert registry.flags.is_raised(attempt_id)  # threads that still work on it stop


@pytest.mark.parametrize("staged_work", [True, False])
@pytest.mark.parametrize(
    "status", [AttemptStatus.IDLE, AttemptStatus.RUNNING, AttemptStatus.PAUSED, AttemptStatus.COMPLETE]
)
def test_finishing_a_stop_that_was_not_requested_is_refused(
    registry: Registry, status: AttemptStatus, staged_work: bool
) -> None:
    attempt_id = put(registry, status)
    before = registry.state
    assert refused(registry.finish_stop(attempt_id, staged_work=staged_work), before, registry)


def test_finishing_a_stop_of_an_older_attempt_does_not_stop_a_newer_one(registry: Registry) -> None:
    old = put(registry, AttemptStatus.IDLE)
    started(registry)
    registry.stop()
    before = registry.state
    answer = registry.finish_stop(old, staged_work=False)
    assert refused(answer, before, registry)
    assert answer.stale


def test_resuming_keeps_the_attempt_its_phase_and_its_workspace(registry: Registry) -> None:
    attempt_id = paused(registry)
    workspace = registry.workspaces.find(attempt_id)
    assert registry.resume().state == AttemptState(AttemptStatus.RUNNING, Phase.PARSING, attempt_id, True)
    assert registry.workspaces.find(attempt_id) == workspace
    assert not registry.flags.is_raised(attempt_id)


def test_resuming_without_the_workspace_is_refused(registry: Registry) -> None:
    attempt_id = paused(registry)
    registry.workspaces.remove(attempt_id)
    before = registry.state
    assert refused(registry.resume(), before, registry)


@pytest.mark.parametrize(
    "status", [AttemptStatus.IDLE, AttemptStatus.RUNNING, AttemptStatus.STOPPING, AttemptStatus.COMPLETE]
)
def test_resuming_an_attempt_that_is_not_paused_is_refused(registry: Registry, status: AttemptStatus) -> None:
    put(registry, status)
    before = registry.state
    assert refused(registry.resume(), before, registry)


def test_a_completed_attempt_is_not_idle_and_leaves_nothing(registry: Registry) -> None:
    attempt_id = put(registry, AttemptStatus.COMPLETE)
    assert registry.state == AttemptState(AttemptStatus.COMPLETE, Phase.NOT_STARTED, None, False)
    assert registry.state != IDLE
    assert registry.workspaces.find(attempt_id) is None


@pytest.mark.parametrize("status", [AttemptStatus.STOPPING, AttemptStatus.PAUSED])
def test_a_late_completion_deletes_nothing_of_a_cancelled_attempt(
    registry: Registry, status: AttemptStatus
) -> None:
    attempt_id = put(registry, status)
    before = registry.state
    with capture_logs() as lines:
        assert refused(registry.complete(attempt_id), before, registry)
    assert registry.workspaces.find(attempt_id)
    assert registry.flags.is_raised(attempt_id)
    assert [line["log_level"] for line in lines] == ["warning"]


def test_completing_an_older_attempt_does_not_complete_a_newer_one(registry: Registry) -> None:
    old = put(registry, AttemptStatus.IDLE)
    started(registry)
    before = registry.state
    answer = registry.complete(old)
    assert refused(answer, before, registry)
    assert answer.stale


def test_discarding_removes_a_paused_attempt(registry: Registry) -> None:
    attempt_id = paused(registry)
    assert registry.discard().state == IDLE
    assert registry.workspaces.find(attempt_id) is None


@pytest.mark.parametrize(
    "status", [AttemptStatus.IDLE, AttemptStatus.RUNNING, AttemptStatus.STOPPING, AttemptStatus.COMPLETE]
)
def test_discarding_an_attempt_that_is_not_paused_is_refused(
    registry: Registry, status: AttemptStatus
) -> None:
    put(registry, status)
    before = registry.state
    assert refused(registry.discard(), before, registry)


def test_a_running_attempt_may_commit_and_its_text_becomes_durable(registry: Registry) -> None:
    attempt_id = started(registry)
    with registry.committing(attempt_id) as allowed:
        assert allowed
    assert registry.state.phase is Phase.TEXT_COMMITTED


def test_a_stopped_or_older_attempt_may_not_commit(registry: Registry) -> None:
    attempt_id = put(registry, AttemptStatus.STOPPING)
    for asked in (attempt_id, uuid4()):
        with registry.committing(asked) as allowed:
            assert not allowed
    assert registry.state.phase is Phase.PREFLIGHT


def test_a_failed_commit_keeps_the_phase(registry: Registry) -> None:
    attempt_id = started(registry)
    registry.advance(attempt_id, Phase.ATOMIC_TEXT_COMMIT)
    with pytest.raises(OSError, match="disk"), registry.committing(attempt_id):
        raise OSError("disk")
    assert registry.state.phase is Phase.ATOMIC_TEXT_COMMIT


def test_a_stop_during_a_commit_waits_for_its_outcome(registry: Registry) -> None:
    attempt_id = started(registry)
    asked = threading.Event()
    with ThreadPoolExecutor(1) as other:
        with registry.committing(attempt_id):
            stopping = other.submit(lambda: (asked.set(), registry.stop())[1])
            asked.wait(10)
            assert registry.state.status is AttemptStatus.RUNNING  # reading the state does not wait
        assert stopping.result(10).state.phase is Phase.TEXT_COMMITTED
    assert registry.finish_stop(attempt_id, staged_work=False).state == IDLE


@pytest.mark.parametrize("status", [AttemptStatus.RUNNING, AttemptStatus.STOPPING, AttemptStatus.PAUSED])
def test_closing_discards_the_attempt_without_removing_its_folder(
    registry: Registry, base: Path, status: AttemptStatus
) -> None:
    attempt_id = put(registry, status)
    phase = registry.state.phase
    with capture_logs() as lines:
        registry.close()
    assert (registry.state.status, registry.state.phase) == (AttemptStatus.STOPPING, phase)
    assert registry.flags.is_raised(attempt_id)
    assert registry.workspaces.find(attempt_id) is None
    assert list(base.glob(f"*/{attempt_id.hex}"))
    assert [line["log_level"] for line in lines] == ["info"]


def test_a_closed_registry_refuses_every_verb(registry: Registry) -> None:
    attempt_id = started(registry)
    registry.close()
    before = registry.state
    for answer in (
        registry.start(),
        registry.advance(attempt_id, Phase.PARSING),
        registry.stop(),
        registry.finish_stop(attempt_id, staged_work=True),
        registry.finish_stop(attempt_id, staged_work=False),
        registry.resume(),
        registry.discard(),
        registry.complete(attempt_id),
    ):
        assert refused(answer, before, registry)
    with registry.committing(attempt_id) as allowed:
        assert not allowed


@pytest.mark.parametrize("status", [AttemptStatus.IDLE, AttemptStatus.COMPLETE])
def test_closing_an_idle_registry_changes_nothing(registry: Registry, status: AttemptStatus) -> None:
    put(registry, status)
    before = registry.state
    assert registry.close().verdict is Verdict.SKIP
    assert registry.state == before


def commit(registry: Registry, attempt_id: UUID) -> None:
    with registry.committing(attempt_id):
        pass


#: How each verb is called, and a state in which it applies.
VERBS: dict[str, tuple[AttemptStatus, Callable[[Registry, UUID], object]]] = {
    "start": (AttemptStatus.IDLE, lambda registry, _: registry.start()),
    "advance": (AttemptStatus.RUNNING, lambda registry, at: registry.advance(at, Phase.PARSING)),
    "stop": (AttemptStatus.RUNNING, lambda registry, _: registry.stop()),
    "pause": (AttemptStatus.STOPPING, lambda registry, at: registry.finish_stop(at, staged_work=True)),
    "finish": (AttemptStatus.STOPPING, lambda registry, at: registry.finish_stop(at, staged_work=False)),
    "resume": (AttemptStatus.PAUSED, lambda registry, _: registry.resume()),
    "discard": (AttemptStatus.PAUSED, lambda registry, _: registry.discard()),
    "commit": (AttemptStatus.RUNNING, commit),
    "complete": (AttemptStatus.RUNNING, lambda registry, at: registry.complete(at)),
    "close": (AttemptStatus.RUNNING, lambda registry, _: registry.close()),
}
#: What each verb needs of the flags, the workspaces and the disk.
NEEDS = [
    ("start", StopFlags, "lower"),
    ("start", Workspaces, "create"),
    ("stop", StopFlags, "raise_"),
    ("finish", StopFlags, "forget"),
    ("finish", Workspaces, "remove"),
    ("finish", Workspace, "remove"),
    ("resume", StopFlags, "lower"),
    ("resume", Workspaces, "find"),
    ("discard", StopFlags, "forget"),
    ("discard", Workspaces, "remove"),
    ("discard", Workspace, "remove"),
    ("commit", StopFlags, "is_raised"),
    ("complete", StopFlags, "forget"),
    ("complete", Workspaces, "remove"),
    ("complete", Workspace, "remove"),
    ("close", StopFlags, "raise_"),
    ("close", Workspaces, "abandon"),
]


@pytest.mark.parametrize(
    ("verb", "owner", "name"),
    NEEDS,
    ids=[f"{verb}, {owner.__name__}.{name}" for verb, owner, name in NEEDS],
)
def test_a_verb_that_fails_unexpectedly_is_logged_and_changes_no_state(
    registry: Registry, monkeypatch: pytest.MonkeyPatch, verb: str, owner: type, name: str
) -> None:
    status, call = VERBS[verb]
    attempt_id = put(registry, status)
    before = registry.state
    with monkeypatch.context() as broken, capture_logs() as lines:
        broken.setattr(owner, name, Mock(side_effect=MemoryError))
        with pytest.raises((MemoryError, CancellationFailed)):
            call(registry, attempt_id)
    assert registry.state == before
    assert [line["log_level"] for line in lines] == ["error"]
    call(registry, attempt_id)
    assert registry.state != before


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb != "close"])
def test_an_unexpected_failure_of_a_verb_is_logged_wherever_it_happens(
    registry: Registry, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    status, call = VERBS[verb]
    attempt_id = put(registry, status)
    before = registry.state
    monkeypatch.setattr(Registry, "_may", Mock(side_effect=MemoryError))
    with capture_logs() as lines, pytest.raises(MemoryError):
        call(registry, attempt_id)
    assert registry.state == before
    assert [line["log_level"] for line in lines] == ["error"]


def test_a_failed_discard_leaves_an_attempt_that_can_be_resumed(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt_id = paused(registry)
    with monkeypatch.context() as broken:
        broken.setattr(Workspace, "remove", Mock(side_effect=MemoryError))
        with pytest.raises(MemoryError):
            registry.discard()
    assert registry.flags.is_raised(attempt_id)
    assert registry.resume().state == AttemptState(AttemptStatus.RUNNING, Phase.PARSING, attempt_id, True)


def test_a_failed_start_leaves_no_workspace(
    registry: Registry, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StopFlags, "lower", Mock(side_effect=MemoryError))
    with pytest.raises(MemoryError):
        registry.start()
    assert [path.name for path in base.glob("*/*")] == [LOCK]


@pytest.mark.parametrize(("owner", "name"), [(StopFlags, "raise_"), (Workspaces, "abandon")])
def test_a_failed_close_lets_nothing_be_committed_any_more(
    registry: Registry, monkeypatch: pytest.MonkeyPatch, owner: type, name: str
) -> None:
    attempt_id = started(registry)
    monkeypatch.setattr(owner, name, Mock(side_effect=MemoryError))
    with pytest.raises((MemoryError, CancellationFailed)):
        registry.close()
    assert not registry.complete(attempt_id)
    with registry.committing(attempt_id) as allowed:
        assert not allowed


def test_workspaces_hold_pieces_whole_or_not_at_all(workspaces: Workspaces) -> None:
    workspace = workspaces.create(uuid4())
    assert workspace.get("one") is None
    workspace.put("one", b"text")
    assert (workspace.get("one"), workspace.has("one"), workspace.has("two")) == (b"text", True, False)
    workspace.drop("one")
    assert not workspace.has("one")


def test_workspaces_of_a_living_process_are_left_alone(workspaces: Workspaces, base: Path) -> None:
    workspaces.create(uuid4())
    with_other = Workspaces(base)
    assert with_other.clean() == 0
    with_other.create(uuid4())
    assert workspaces.clean() == 0
    with_other.close()


def test_workspaces_of_a_killed_process_are_removed_at_the_next_start(
    workspaces: Workspaces, base: Path
) -> None:
    kept = uuid4()
    workspaces.create(kept).put("one", b"text")
    code = (
        "import os, signal, sys; from pathlib import Path; from uuid import uuid4\n"
        "from nexus.imports.workspaces import Workspaces\n"
        "Workspaces(Path(sys.argv[1])).create(uuid4()).put('one', b'text')\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", code, str(base)], check=False)
    assert len(list(base.iterdir())) == 2
    assert workspaces.clean() == 1
    assert [path.parent.name for path in base.glob(f"*/{kept.hex}")] == [path.name for path in base.iterdir()]


@pytest.mark.parametrize("abandoned", [True, False])
def test_an_ending_process_leaves_only_workspaces_of_abandoned_attempts(base: Path, abandoned: bool) -> None:
    ending = Workspaces(base)
    ending.staging_folder()
    attempt_id = uuid4()
    ending.create(attempt_id)
    (ending.abandon if abandoned else ending.remove)(attempt_id)
    ending.close()
    assert bool(list(base.iterdir())) is abandoned
    assert Workspaces(base).clean() == abandoned


def test_workspaces_without_a_lock_are_removed_only_if_they_are_empty(
    workspaces: Workspaces, base: Path
) -> None:
    (base / "new" / "attempt").mkdir(parents=True)
    (base / "empty").mkdir()
    assert workspaces.clean() == 0
    assert [path.name for path in base.iterdir()] == ["new"]
    (base / "new" / LOCK).touch()
    assert workspaces.clean() == 1
    assert list(base.iterdir()) == []


def test_workspaces_whose_removal_was_interrupted_are_removed_at_the_next_start(
    workspaces: Workspaces, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (base / "left" / "attempt").mkdir(parents=True)
    (base / "left" / LOCK).touch()
    with monkeypatch.context() as cut:
        cut.setattr(shutil, "rmtree", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            workspaces.clean()
    assert workspaces.clean() == 1
    assert list(base.iterdir()) == []


def test_workspaces_that_were_removed_are_made_again_elsewhere(workspaces: Workspaces, base: Path) -> None:
    first = workspaces.create(uuid4())
    for folder in base.iterdir():
        shutil.rmtree(folder)
    assert workspaces.find(first.attempt_id) is None
    second = workspaces.create(uuid4())
    second.put("one", b"text")
    assert workspaces.find(second.attempt_id) is second
    assert Workspaces(base).clean() == 0


def test_attempts_log_only_ids_and_states(registry: Registry, base: Path) -> None:
    with capture_logs() as lines:
        attempt_id = paused(registry)
        registry.start()
        registry.resume()
        registry.complete(uuid4())
        registry.complete(attempt_id)
        registry.close()
    told = {name for line in lines for name in line}
    assert told <= {
        "event", "log_level", "verb", "attempt_id", "before", "after", "phase", "status", "stale", "closed",
        "staged_work",
    }  # fmt: skip
    assert str(base) not in str(lines)


def test_sixteen_threads_never_bring_a_registry_into_an_invalid_state(registry: Registry) -> None:
    structlog_config = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    seen: list[AttemptState] = []

    def walk(seed: int) -> None:
        for turn in range(200):
            attempt_id = registry.state.attempt_id or uuid4()
            verbs = (
                registry.start,
                registry.stop,
                registry.resume,
                registry.discard,
                lambda at=attempt_id: registry.advance(at, Phase.PARSING),
                lambda at=attempt_id: registry.finish_stop(at, staged_work=True),
                lambda at=attempt_id: registry.finish_stop(at, staged_work=False),
                lambda at=attempt_id: registry.complete(at),
            )
            verbs[(seed + turn * 7) % len(verbs)]()
            seen.append(registry.state)

    try:
        with ThreadPoolExecutor(16) as threads:
            for done in [threads.submit(walk, seed) for seed in range(16)]:
                done.result(60)
    finally:
        structlog.configure(**structlog_config)
    for state in seen:
        assert_possible(state)


def assert_possible(state: AttemptState) -> None:
    without = state.status in {AttemptStatus.IDLE, AttemptStatus.COMPLETE}
    assert without == (state.attempt_id is None)
    assert without == (state.phase is Phase.NOT_STARTED)
    assert without != state.has_staged_work


class Walks(RuleBasedStateMachine):
    """Random verbs with current, stale and late ids, across restarts, against the specification."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.attempts: list[UUID] = []
        self.open()

    def open(self) -> None:
        self.workspaces = Workspaces(self.folder)
        self.registry = Registry(self.workspaces)
        self.status, self.phase, self.closed = AttemptStatus.IDLE, Phase.NOT_STARTED, False

    def teardown(self) -> None:
        self.workspaces.close()
        shutil.rmtree(self.folder)

    def expect(
        self, answer: AttemptAnswer, allowed: bool, status: AttemptStatus, phase: Phase | None = None
    ) -> None:
        allowed = allowed and not self.closed
        assert (answer.verdict is Verdict.APPLY) == allowed
        if allowed:
            self.status, self.phase = status, self.phase if phase is None else phase

    @property
    def latest(self) -> UUID:
        return self.attempts[-1]

    @rule()
    def start(self) -> None:
        answer = self.registry.start()
        self.expect(
            answer,
            self.status in {AttemptStatus.IDLE, AttemptStatus.COMPLETE},
            AttemptStatus.RUNNING,
            Phase.PREFLIGHT,
        )
        if answer:
            assert known(answer) not in self.attempts
            self.attempts.append(known(answer))

    @precondition(lambda self: self.attempts)
    @rule(phase=st.sampled_from(PHASES))
    def advance(self, phase: Phase) -> None:
        answer = self.registry.advance(self.latest, phase)
        self.expect(answer, self.status is AttemptStatus.RUNNING, AttemptStatus.RUNNING, phase)

    @rule()
    def stop(self) -> None:
        answer = self.registry.stop()
        self.expect(answer, self.status is AttemptStatus.RUNNING, AttemptStatus.STOPPING)
        assert bool(answer) is (not self.closed and self.status is AttemptStatus.STOPPING)

    @rule()
    def resume(self) -> None:
        self.expect(self.registry.resume(), self.status is AttemptStatus.PAUSED, AttemptStatus.RUNNING)

    @rule()
    def discard(self) -> None:
        answer = self.registry.discard()
        self.expect(answer, self.status is AttemptStatus.PAUSED, AttemptStatus.IDLE, Phase.NOT_STARTED)

    @precondition(lambda self: self.attempts)
    @rule()
    def finish_with_work(self) -> None:
        answer = self.registry.finish_stop(self.latest, staged_work=True)
        self.expect(answer, self.status is AttemptStatus.STOPPING, AttemptStatus.PAUSED)

    @precondition(lambda self: self.attempts)
    @rule()
    def finish_without_work(self) -> None:
        answer = self.registry.finish_stop(self.latest, staged_work=False)
        self.expect(answer, self.status is AttemptStatus.STOPPING, AttemptStatus.IDLE, Phase.NOT_STARTED)

    @precondition(lambda self: self.attempts)
    @rule(fails=st.booleans())
    def commit(self, fails: bool) -> None:
        with suppress(ZeroDivisionError), self.registry.committing(self.latest) as allowed:
            assert allowed == (self.status is AttemptStatus.RUNNING and not self.closed)
            if fails:
                raise ZeroDivisionError
        if allowed and not fails:
            self.phase = Phase.TEXT_COMMITTED

    @precondition(lambda self: self.attempts)
    @rule()
    def complete(self) -> None:
        answer = self.registry.complete(self.latest)
        self.expect(answer, self.status is AttemptStatus.RUNNING, AttemptStatus.COMPLETE, Phase.NOT_STARTED)

    @precondition(lambda self: len(self.attempts) > 1)
    @rule()
    def late_results(self) -> None:
        for late in self.attempts[:-1]:
            assert self.registry.complete(late).stale
            assert self.registry.finish_stop(late, staged_work=True).stale
            assert self.registry.finish_stop(late, staged_work=False).stale
            assert self.registry.advance(late, Phase.SPLITTING).stale
            with self.registry.committing(late) as allowed:
                assert not allowed

    @precondition(lambda self: len(self.attempts) > 1 and not self.closed)
    @rule()
    def close(self) -> None:
        active = self.status in {AttemptStatus.RUNNING, AttemptStatus.STOPPING, AttemptStatus.PAUSED}
        assert (self.registry.close().verdict is Verdict.APPLY) == active
        self.closed = True
        if active:
            self.status = AttemptStatus.STOPPING

    @precondition(lambda self: self.closed)
    @rule()
    def start_the_process_again(self) -> None:
        left = self.status is AttemptStatus.STOPPING
        self.workspaces.close()
        self.open()
        assert self.workspaces.clean() == left
        assert list(self.folder.iterdir()) == []

    @invariant()
    def is_what_it_should_be(self) -> None:
        state = self.registry.state
        assert (state.status, state.phase) == (self.status, self.phase)
        assert_possible(state)

    @invariant()
    def is_asked_to_stop_from_the_stop_to_the_resume(self) -> None:
        for attempt_id in self.attempts:
            runs = self.status is AttemptStatus.RUNNING and attempt_id == self.latest
            assert self.registry.flags.is_raised(attempt_id) is not runs

    @invariant()
    def only_the_present_attempt_has_a_workspace(self) -> None:
        present = None if self.closed else self.registry.state.attempt_id
        for attempt_id in self.attempts:
            assert (self.workspaces.find(attempt_id) is not None) == (attempt_id == present)


TestWalks = Walks.TestCase
TestWalks.settings = settings(max_examples=80, stateful_step_count=40, deadline=None, derandomize=True)
