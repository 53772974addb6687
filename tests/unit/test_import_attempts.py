"""The one import attempt of a user: every promise of its states, in the words of who relies on them."""

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

from nexus.errors import CancellationFailed
from nexus.imports.attempts import IDLE, Answer, Registry, State
from nexus.imports.flags import Flags
from nexus.imports.workspaces import LOCK, Workspace, WorkspaceFailed, Workspaces
from nexus.states.attempt import Phase, Status
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


def known(answer: Answer) -> UUID:
    assert answer.state.attempt_id is not None
    return answer.state.attempt_id


def paused(registry: Registry) -> UUID:
    attempt_id = started(registry)
    registry.advance(attempt_id, Phase.PARSING)
    registry.stop()
    assert registry.finish_stop(attempt_id, staged_work=True)
    return attempt_id


def put(registry: Registry, status: Status) -> UUID:
    """A registry with an attempt that is, or was, in this state."""
    if status is Status.PAUSED:
        return paused(registry)
    attempt_id = started(registry)
    if status is Status.STOPPING:
        registry.stop()
    elif status is Status.COMPLETE:
        registry.complete(attempt_id)
    elif status is Status.IDLE:
        registry.stop()
        registry.finish_stop(attempt_id, staged_work=False)
    assert registry.state.status is status
    return attempt_id


def refused(answer: Answer, before: State, registry: Registry) -> bool:
    return not answer and answer.state == before == registry.state


def test_the_initial_state_is_idle_with_no_attempt(registry: Registry) -> None:
    assert registry.state == State(Status.IDLE, Phase.NOT_STARTED, None, False)


class TestStart:
    @pytest.mark.parametrize("status", [Status.IDLE, Status.COMPLETE])
    def test_makes_a_new_attempt_with_a_workspace_that_begins_with_preflight(
        self, registry: Registry, status: Status
    ) -> None:
        before = put(registry, status)
        attempt_id = started(registry)
        assert attempt_id != before
        assert registry.state == State(Status.RUNNING, Phase.PREFLIGHT, attempt_id, True)
        assert registry.workspaces.find(attempt_id)
        assert not registry.flags.is_raised(attempt_id)

    @pytest.mark.parametrize("status", [Status.RUNNING, Status.STOPPING, Status.PAUSED])
    def test_while_there_is_an_attempt_is_refused(self, registry: Registry, status: Status) -> None:
        put(registry, status)
        before = registry.state
        assert refused(registry.start(), before, registry)

    def test_without_a_workspace_changes_nothing_and_is_an_error(
        self, registry: Registry, base: Path
    ) -> None:
        base.write_text("in the way")
        with capture_logs() as lines, pytest.raises(WorkspaceFailed):
            registry.start()
        assert registry.state == IDLE
        assert [(line["event"], line["log_level"]) for line in lines] == [
            ("import_workspace_failed", "error")
        ]


class TestPhases:
    def test_are_of_the_running_attempt(self, registry: Registry) -> None:
        attempt_id = started(registry)
        for phase in PHASES:
            assert registry.advance(attempt_id, phase).state.phase is phase

    def test_of_another_attempt_are_refused_as_stale(self, registry: Registry) -> None:
        started(registry)
        before = registry.state
        answer = registry.advance(uuid4(), Phase.SPLITTING)
        assert refused(answer, before, registry)
        assert answer.stale

    @pytest.mark.parametrize("status", [Status.STOPPING, Status.PAUSED, Status.COMPLETE, Status.IDLE])
    def test_of_one_that_does_not_run_are_refused(self, registry: Registry, status: Status) -> None:
        attempt_id = put(registry, status)
        before = registry.state
        assert refused(registry.advance(attempt_id, Phase.SPLITTING), before, registry)


class TestStop:
    def test_raises_the_flag_before_it_says_so_and_keeps_the_phase(
        self, registry: Registry, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        attempt_id = started(registry)
        registry.advance(attempt_id, Phase.PARSING)
        seen: list[Status] = []
        real = Flags.raise_

        def watched(flags: Flags, asked: UUID) -> None:
            seen.append(registry.state.status)
            real(flags, asked)

        monkeypatch.setattr(Flags, "raise_", watched)
        assert registry.stop().state == State(Status.STOPPING, Phase.PARSING, attempt_id, True)
        assert seen == [Status.RUNNING]
        assert registry.flags.is_raised(attempt_id)

    def test_again_is_the_same_as_once_and_a_warning(self, registry: Registry) -> None:
        put(registry, Status.STOPPING)
        before = registry.state
        with capture_logs() as lines:
            answer = registry.stop()
        assert (answer.verdict, answer.state, registry.state) == (Verdict.SKIP, before, before)
        assert [line["log_level"] for line in lines] == ["warning"]

    @pytest.mark.parametrize("status", [Status.IDLE, Status.PAUSED, Status.COMPLETE])
    def test_of_what_does_not_run_is_refused(self, registry: Registry, status: Status) -> None:
        put(registry, status)
        before = registry.state
        assert refused(registry.stop(), before, registry)

    def test_whose_flag_can_not_be_raised_is_an_error_of_its_own_and_leaves_it_running(
        self, registry: Registry
    ) -> None:
        attempt_id = started(registry)
        before = registry.state
        registry.flags.forget(attempt_id)
        with capture_logs() as lines, pytest.raises(CancellationFailed) as failed:
            registry.stop()
        assert (failed.value.code, failed.value.status) == ("E_CANCELLATION_FAILED", 500)
        assert registry.state == before
        assert [line["log_level"] for line in lines] == ["error"]


class TestFinishingAStop:
    def test_with_staged_work_pauses_and_keeps_everything(self, registry: Registry) -> None:
        attempt_id = started(registry)
        registry.advance(attempt_id, Phase.SPLITTING)
        registry.stop()
        with capture_logs() as lines:
            registry.finish_stop(attempt_id, staged_work=True)
        assert registry.state == State(Status.PAUSED, Phase.SPLITTING, attempt_id, True)
        assert registry.workspaces.find(attempt_id)
        assert ("import_stop_finished", "info") in [(line["event"], line["log_level"]) for line in lines]

    def test_without_ends_idle_with_nothing_left(self, registry: Registry) -> None:
        attempt_id = put(registry, Status.IDLE)
        assert registry.state == IDLE
        assert registry.workspaces.find(attempt_id) is None
        assert registry.flags.is_raised(attempt_id)  # whoever still works on it stops

    @pytest.mark.parametrize("staged_work", [True, False])
    @pytest.mark.parametrize("status", [Status.IDLE, Status.RUNNING, Status.PAUSED, Status.COMPLETE])
    def test_that_was_not_asked_for_is_refused(
        self, registry: Registry, status: Status, staged_work: bool
    ) -> None:
        attempt_id = put(registry, status)
        before = registry.state
        assert refused(registry.finish_stop(attempt_id, staged_work=staged_work), before, registry)

    def test_of_an_older_attempt_does_not_stop_a_newer_one(self, registry: Registry) -> None:
        old = put(registry, Status.IDLE)
        started(registry)
        registry.stop()
        before = registry.state
        answer = registry.finish_stop(old, staged_work=False)
        assert refused(answer, before, registry)
        assert answer.stale


class TestResume:
    def test_goes_on_with_the_same_attempt_phase_and_workspace(self, registry: Registry) -> None:
        attempt_id = paused(registry)
        workspace = registry.workspaces.find(attempt_id)
        assert registry.resume().state == State(Status.RUNNING, Phase.PARSING, attempt_id, True)
        assert registry.workspaces.find(attempt_id) == workspace
        assert not registry.flags.is_raised(attempt_id)

    def test_without_its_workspace_is_refused(self, registry: Registry) -> None:
        attempt_id = paused(registry)
        registry.workspaces.remove(attempt_id)
        before = registry.state
        assert refused(registry.resume(), before, registry)

    @pytest.mark.parametrize("status", [Status.IDLE, Status.RUNNING, Status.STOPPING, Status.COMPLETE])
    def test_of_what_is_not_paused_is_refused(self, registry: Registry, status: Status) -> None:
        put(registry, status)
        before = registry.state
        assert refused(registry.resume(), before, registry)


class TestComplete:
    def test_is_not_idle_and_leaves_nothing(self, registry: Registry) -> None:
        attempt_id = put(registry, Status.COMPLETE)
        assert registry.state == State(Status.COMPLETE, Phase.NOT_STARTED, None, False)
        assert registry.state != IDLE
        assert registry.workspaces.find(attempt_id) is None

    @pytest.mark.parametrize("status", [Status.STOPPING, Status.PAUSED])
    def test_that_comes_late_deletes_nothing_of_a_cancelled_attempt(
        self, registry: Registry, status: Status
    ) -> None:
        attempt_id = put(registry, status)
        before = registry.state
        with capture_logs() as lines:
            assert refused(registry.complete(attempt_id), before, registry)
        assert registry.workspaces.find(attempt_id)
        assert registry.flags.is_raised(attempt_id)
        assert [line["log_level"] for line in lines] == ["warning"]

    def test_of_an_older_attempt_does_not_complete_a_newer_one(self, registry: Registry) -> None:
        old = put(registry, Status.IDLE)
        started(registry)
        before = registry.state
        answer = registry.complete(old)
        assert refused(answer, before, registry)
        assert answer.stale


class TestDiscard:
    def test_throws_a_paused_attempt_away(self, registry: Registry) -> None:
        attempt_id = paused(registry)
        assert registry.discard().state == IDLE
        assert registry.workspaces.find(attempt_id) is None

    @pytest.mark.parametrize("status", [Status.IDLE, Status.RUNNING, Status.STOPPING, Status.COMPLETE])
    def test_of_what_is_not_paused_is_refused(self, registry: Registry, status: Status) -> None:
        put(registry, status)
        before = registry.state
        assert refused(registry.discard(), before, registry)


class TestCommitting:
    def test_is_allowed_to_who_runs_and_makes_the_text_durable(self, registry: Registry) -> None:
        attempt_id = started(registry)
        with registry.committing(attempt_id) as allowed:
            assert allowed
        assert registry.state.phase is Phase.TEXT_COMMITTED

    def test_is_not_after_a_stop_and_not_for_an_older_attempt(self, registry: Registry) -> None:
        attempt_id = put(registry, Status.STOPPING)
        for asked in (attempt_id, uuid4()):
            with registry.committing(asked) as allowed:
                assert not allowed
        assert registry.state.phase is Phase.PREFLIGHT

    def test_that_fails_leaves_the_phase(self, registry: Registry) -> None:
        attempt_id = started(registry)
        registry.advance(attempt_id, Phase.ATOMIC_TEXT_COMMIT)
        with pytest.raises(OSError, match="disk"), registry.committing(attempt_id):
            raise OSError("disk")
        assert registry.state.phase is Phase.ATOMIC_TEXT_COMMIT

    def test_makes_a_stop_wait_for_the_outcome(self, registry: Registry) -> None:
        attempt_id = started(registry)
        asked = threading.Event()
        with ThreadPoolExecutor(1) as other:
            with registry.committing(attempt_id):
                stopping = other.submit(lambda: (asked.set(), registry.stop())[1])
                asked.wait(10)
                assert registry.state.status is Status.RUNNING  # a look does not wait
            assert stopping.result(10).state.phase is Phase.TEXT_COMMITTED
        assert registry.finish_stop(attempt_id, staged_work=False).state == IDLE


class TestAppClose:
    @pytest.mark.parametrize("status", [Status.RUNNING, Status.STOPPING, Status.PAUSED])
    def test_discards_what_there_is_without_removing_its_folder(
        self, registry: Registry, base: Path, status: Status
    ) -> None:
        attempt_id = put(registry, status)
        phase = registry.state.phase
        with capture_logs() as lines:
            registry.close()
        assert (registry.state.status, registry.state.phase) == (Status.STOPPING, phase)
        assert registry.flags.is_raised(attempt_id)
        assert registry.workspaces.find(attempt_id) is None
        assert list(base.glob(f"*/{attempt_id.hex}"))
        assert [line["log_level"] for line in lines] == ["info"]

    def test_then_refuses_every_verb(self, registry: Registry) -> None:
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

    @pytest.mark.parametrize("status", [Status.IDLE, Status.COMPLETE])
    def test_of_nothing_is_nothing(self, registry: Registry, status: Status) -> None:
        put(registry, status)
        before = registry.state
        assert registry.close().verdict is Verdict.SKIP
        assert registry.state == before


def commit(registry: Registry, attempt_id: UUID) -> None:
    with registry.committing(attempt_id):
        pass


#: How each verb is called, and a state in which it applies.
VERBS: dict[str, tuple[Status, Callable[[Registry, UUID], object]]] = {
    "start": (Status.IDLE, lambda registry, _: registry.start()),
    "advance": (Status.RUNNING, lambda registry, at: registry.advance(at, Phase.PARSING)),
    "stop": (Status.RUNNING, lambda registry, _: registry.stop()),
    "pause": (Status.STOPPING, lambda registry, at: registry.finish_stop(at, staged_work=True)),
    "finish": (Status.STOPPING, lambda registry, at: registry.finish_stop(at, staged_work=False)),
    "resume": (Status.PAUSED, lambda registry, _: registry.resume()),
    "discard": (Status.PAUSED, lambda registry, _: registry.discard()),
    "commit": (Status.RUNNING, commit),
    "complete": (Status.RUNNING, lambda registry, at: registry.complete(at)),
    "close": (Status.RUNNING, lambda registry, _: registry.close()),
}
#: What each verb needs of the flags, the workspaces and the disk.
NEEDS = [
    ("start", Flags, "lower"),
    ("start", Workspaces, "create"),
    ("stop", Flags, "raise_"),
    ("finish", Flags, "forget"),
    ("finish", Workspaces, "remove"),
    ("finish", Workspace, "remove"),
    ("resume", Flags, "lower"),
    ("resume", Workspaces, "find"),
    ("discard", Flags, "forget"),
    ("discard", Workspaces, "remove"),
    ("discard", Workspace, "remove"),
    ("commit", Flags, "is_raised"),
    ("complete", Flags, "forget"),
    ("complete", Workspaces, "remove"),
    ("complete", Workspace, "remove"),
    ("close", Flags, "raise_"),
    ("close", Workspaces, "abandon"),
]


class TestAVerbThatFailsUnexpectedly:
    @pytest.mark.parametrize(
        ("verb", "owner", "name"),
        NEEDS,
        ids=[f"{verb}, {owner.__name__}.{name}" for verb, owner, name in NEEDS],
    )
    def test_is_logged_as_an_error_raises_and_changes_no_state(
        self, registry: Registry, monkeypatch: pytest.MonkeyPatch, verb: str, owner: type, name: str
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
    def test_is_logged_whatever_fails_in_it(
        self, registry: Registry, monkeypatch: pytest.MonkeyPatch, verb: str
    ) -> None:
        status, call = VERBS[verb]
        attempt_id = put(registry, status)
        before = registry.state
        monkeypatch.setattr(Registry, "_may", Mock(side_effect=MemoryError))
        with capture_logs() as lines, pytest.raises(MemoryError):
            call(registry, attempt_id)
        assert registry.state == before
        assert [line["log_level"] for line in lines] == ["error"]

    def test_while_it_discards_leaves_an_attempt_that_can_be_resumed(
        self, registry: Registry, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        attempt_id = paused(registry)
        with monkeypatch.context() as broken:
            broken.setattr(Workspace, "remove", Mock(side_effect=MemoryError))
            with pytest.raises(MemoryError):
                registry.discard()
        assert registry.flags.is_raised(attempt_id)
        assert registry.resume().state == State(Status.RUNNING, Phase.PARSING, attempt_id, True)

    def test_while_it_starts_leaves_no_workspace(
        self, registry: Registry, base: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(Flags, "lower", Mock(side_effect=MemoryError))
        with pytest.raises(MemoryError):
            registry.start()
        assert [path.name for path in base.glob("*/*")] == [LOCK]

    @pytest.mark.parametrize(("owner", "name"), [(Flags, "raise_"), (Workspaces, "abandon")])
    def test_while_it_closes_lets_nothing_be_committed_any_more(
        self, registry: Registry, monkeypatch: pytest.MonkeyPatch, owner: type, name: str
    ) -> None:
        attempt_id = started(registry)
        monkeypatch.setattr(owner, name, Mock(side_effect=MemoryError))
        with pytest.raises((MemoryError, CancellationFailed)):
            registry.close()
        assert not registry.complete(attempt_id)
        with registry.committing(attempt_id) as allowed:
            assert not allowed


class TestWorkspaces:
    def test_hold_pieces_whole_or_not_at_all(self, workspaces: Workspaces) -> None:
        workspace = workspaces.create(uuid4())
        assert workspace.get("one") is None
        workspace.put("one", b"text")
        assert (workspace.get("one"), workspace.has("one"), workspace.has("two")) == (b"text", True, False)
        workspace.drop("one")
        assert not workspace.has("one")

    def test_of_a_process_that_lives_are_left_alone(self, workspaces: Workspaces, base: Path) -> None:
        workspaces.create(uuid4())
        with_other = Workspaces(base)
        assert with_other.clean() == 0
        with_other.create(uuid4())
        assert workspaces.clean() == 0
        with_other.close()

    def test_of_a_process_that_was_killed_are_removed_at_the_next_start(
        self, workspaces: Workspaces, base: Path
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
        assert [path.parent.name for path in base.glob(f"*/{kept.hex}")] == [
            path.name for path in base.iterdir()
        ]

    @pytest.mark.parametrize("abandoned", [True, False])
    def test_of_a_process_that_ends_are_left_only_where_an_attempt_was_abandoned(
        self, base: Path, abandoned: bool
    ) -> None:
        ending = Workspaces(base)
        ending.room()
        attempt_id = uuid4()
        ending.create(attempt_id)
        (ending.abandon if abandoned else ending.remove)(attempt_id)
        ending.close()
        assert bool(list(base.iterdir())) is abandoned
        assert Workspaces(base).clean() == abandoned

    def test_without_a_lock_are_just_being_made_and_go_only_where_they_are_empty(
        self, workspaces: Workspaces, base: Path
    ) -> None:
        (base / "new" / "attempt").mkdir(parents=True)
        (base / "empty").mkdir()
        assert workspaces.clean() == 0
        assert [path.name for path in base.iterdir()] == ["new"]
        (base / "new" / LOCK).touch()
        assert workspaces.clean() == 1
        assert list(base.iterdir()) == []

    def test_whose_removal_was_cut_off_are_found_by_the_next_start(
        self, workspaces: Workspaces, base: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (base / "left" / "attempt").mkdir(parents=True)
        (base / "left" / LOCK).touch()
        with monkeypatch.context() as cut:
            cut.setattr(shutil, "rmtree", Mock(side_effect=KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                workspaces.clean()
        assert workspaces.clean() == 1
        assert list(base.iterdir()) == []

    def test_that_were_taken_away_are_made_again_elsewhere(self, workspaces: Workspaces, base: Path) -> None:
        first = workspaces.create(uuid4())
        for folder in base.iterdir():
            shutil.rmtree(folder)
        assert workspaces.find(first.attempt_id) is None
        second = workspaces.create(uuid4())
        second.put("one", b"text")
        assert workspaces.find(second.attempt_id) is second
        assert Workspaces(base).clean() == 0


def test_nothing_is_logged_but_ids_and_states(registry: Registry, base: Path) -> None:
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


def test_sixteen_threads_on_one_registry_never_make_a_state_that_can_not_be(registry: Registry) -> None:
    structlog_config = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    seen: list[State] = []

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


def assert_possible(state: State) -> None:
    without = state.status in {Status.IDLE, Status.COMPLETE}
    assert without == (state.attempt_id is None)
    assert without == (state.phase is Phase.NOT_STARTED)
    assert without != state.has_staged_work


class Walks(RuleBasedStateMachine):
    """Random verbs with present, stale and late ids, through ends of the process, against what the seed says."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.attempts: list[UUID] = []
        self.open()

    def open(self) -> None:
        self.workspaces = Workspaces(self.folder)
        self.registry = Registry(self.workspaces)
        self.status, self.phase, self.closed = Status.IDLE, Phase.NOT_STARTED, False

    def teardown(self) -> None:
        self.workspaces.close()
        shutil.rmtree(self.folder)

    def expect(self, answer: Answer, allowed: bool, status: Status, phase: Phase | None = None) -> None:
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
        self.expect(answer, self.status in {Status.IDLE, Status.COMPLETE}, Status.RUNNING, Phase.PREFLIGHT)
        if answer:
            assert known(answer) not in self.attempts
            self.attempts.append(known(answer))

    @precondition(lambda self: self.attempts)
    @rule(phase=st.sampled_from(PHASES))
    def advance(self, phase: Phase) -> None:
        answer = self.registry.advance(self.latest, phase)
        self.expect(answer, self.status is Status.RUNNING, Status.RUNNING, phase)

    @rule()
    def stop(self) -> None:
        answer = self.registry.stop()
        self.expect(answer, self.status is Status.RUNNING, Status.STOPPING)
        assert bool(answer) is (not self.closed and self.status is Status.STOPPING)

    @rule()
    def resume(self) -> None:
        self.expect(self.registry.resume(), self.status is Status.PAUSED, Status.RUNNING)

    @rule()
    def discard(self) -> None:
        answer = self.registry.discard()
        self.expect(answer, self.status is Status.PAUSED, Status.IDLE, Phase.NOT_STARTED)

    @precondition(lambda self: self.attempts)
    @rule()
    def finish_with_work(self) -> None:
        answer = self.registry.finish_stop(self.latest, staged_work=True)
        self.expect(answer, self.status is Status.STOPPING, Status.PAUSED)

    @precondition(lambda self: self.attempts)
    @rule()
    def finish_without_work(self) -> None:
        answer = self.registry.finish_stop(self.latest, staged_work=False)
        self.expect(answer, self.status is Status.STOPPING, Status.IDLE, Phase.NOT_STARTED)

    @precondition(lambda self: self.attempts)
    @rule(fails=st.booleans())
    def commit(self, fails: bool) -> None:
        with suppress(ZeroDivisionError), self.registry.committing(self.latest) as allowed:
            assert allowed == (self.status is Status.RUNNING and not self.closed)
            if fails:
                raise ZeroDivisionError
        if allowed and not fails:
            self.phase = Phase.TEXT_COMMITTED

    @precondition(lambda self: self.attempts)
    @rule()
    def complete(self) -> None:
        answer = self.registry.complete(self.latest)
        self.expect(answer, self.status is Status.RUNNING, Status.COMPLETE, Phase.NOT_STARTED)

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
        active = self.status in {Status.RUNNING, Status.STOPPING, Status.PAUSED}
        assert (self.registry.close().verdict is Verdict.APPLY) == active
        self.closed = True
        if active:
            self.status = Status.STOPPING

    @precondition(lambda self: self.closed)
    @rule()
    def start_the_process_again(self) -> None:
        left = self.status is Status.STOPPING
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
            runs = self.status is Status.RUNNING and attempt_id == self.latest
            assert self.registry.flags.is_raised(attempt_id) is not runs

    @invariant()
    def only_the_present_attempt_has_a_workspace(self) -> None:
        present = None if self.closed else self.registry.state.attempt_id
        for attempt_id in self.attempts:
            assert (self.workspaces.find(attempt_id) is not None) == (attempt_id == present)


TestWalks = Walks.TestCase
TestWalks.settings = settings(max_examples=80, stateful_step_count=40, deadline=None, derandomize=True)
