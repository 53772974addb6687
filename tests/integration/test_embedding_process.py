"""The process that runs a model: killed, hanging, out of memory, closed, orphaned. The next text gets a new one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from nexus.embed import process as process_module
from nexus.embed.process import ModelProcess
from nexus.errors import EmbeddingCrashed, EmbeddingFailed, EmbeddingMemory, EmbeddingSlow, EmbeddingStopped
from nexus.inference.host import UnfitModel
from tests.kit.models import MIB, made_model, model_process
from tests.kit.parsers import gone, state
from tests.kit.processes import ROOT
from tests.kit.waiting import eventually

TEXT = "The council voted to close the old bridge over the river."
#: Long enough for a text on a loaded machine, short enough to wait for.
SHORT = 3.0

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it looks at processes as Linux shows them")


@contextmanager
def held(made: ModelProcess) -> Iterator[ModelProcess]:
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def model() -> Iterator[ModelProcess]:
    with held(model_process()) as made:
        yield made


def pid_of(model: ModelProcess) -> int:
    found = model.host.process_id
    assert found is not None
    return found


def send(pid: int, sign: signal.Signals) -> None:
    os.kill(pid, sign)
    if sign is signal.SIGSTOP:
        eventually(lambda: state(pid) == "T", "the process stops")


def test_no_process_runs_before_the_first_text(model: ModelProcess) -> None:
    assert model.host.process_id is None
    model.vector(TEXT)
    assert not gone(pid_of(model))


def test_one_process_serves_every_text(model: ModelProcess) -> None:
    model.vector(TEXT)
    first = pid_of(model)
    model.vector("x")
    assert pid_of(model) == first


def test_a_process_that_is_killed_while_it_waits_costs_nothing(model: ModelProcess) -> None:
    before = model.vector(TEXT)
    first = pid_of(model)
    send(first, signal.SIGKILL)
    assert model.vector(TEXT) == before
    assert pid_of(model) != first


def test_a_text_whose_process_is_killed_gets_another(model: ModelProcess) -> None:
    before = model.vector(TEXT)
    first = pid_of(model)
    send(first, signal.SIGSTOP)
    with ThreadPoolExecutor(1) as thread:
        found = thread.submit(model.vector, TEXT)
        eventually(lambda: model.host._turns._busy, "the text is asked for")
        send(first, signal.SIGKILL)
        assert found.result() == before
    assert pid_of(model) != first


def test_a_process_that_never_stays_alive_is_a_failure_that_may_pass(
    model: ModelProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(process_module, "START", "import os; os.kill(os.getpid(), 9)")
        with pytest.raises(EmbeddingCrashed) as raised:
            model.vector(TEXT)
        assert raised.value.transient
        assert model.host.process_id is None
    assert model.vector(TEXT).tokens > 0


def test_a_process_that_can_not_be_started_is_a_failure_that_may_pass(
    model: ModelProcess, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", str(tmp_path / "no-python"))
        with pytest.raises(EmbeddingCrashed):
            model.vector(TEXT)
    assert model.vector(TEXT).tokens > 0


def test_a_process_that_hangs_is_ended_and_the_next_text_gets_another() -> None:
    with held(model_process(seconds=SHORT)) as model:
        model.vector(TEXT)
        first = pid_of(model)
        send(first, signal.SIGSTOP)
        with pytest.raises(EmbeddingSlow) as raised:
            model.vector(TEXT)
        assert raised.value.transient
        assert gone(first)
        assert model.vector(TEXT).tokens > 0


def test_a_process_without_memory_is_a_failure_that_may_pass() -> None:
    with held(model_process(working_bytes=-60 * MIB)) as model:
        with pytest.raises(EmbeddingMemory) as raised:
            model.vector(TEXT)
        assert raised.value.transient
        assert model.host.process_id is None


def test_nonsense_from_the_process_is_a_failure_that_may_pass(
    model: ModelProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    nonsense = "import os, sys; os.write(int(sys.argv[1]), b'\\xff' * 64); os._exit(0)"
    monkeypatch.setattr(process_module, "START", nonsense)
    with pytest.raises(EmbeddingCrashed):
        model.vector(TEXT)


def test_closing_wakes_who_waits_and_ends_the_process(model: ModelProcess) -> None:
    model.vector(TEXT)
    first = pid_of(model)
    send(first, signal.SIGSTOP)
    with ThreadPoolExecutor(2) as threads:
        waiting = [threads.submit(model.vector, TEXT) for _ in range(2)]
        eventually(lambda: model.host._turns._waiting, "one text waits for the other")
        model.close()
        for one in waiting:
            with pytest.raises(EmbeddingStopped) as raised:
                one.result()
            assert not raised.value.counted
    assert gone(first)
    model.close()


def test_a_process_ends_when_nobody_asks_for_a_while_and_the_next_text_gets_another() -> None:
    with held(model_process(idle=0.1)) as model:
        before = model.vector(TEXT)
        eventually(lambda: model.host.process_id is None or gone(pid_of(model)), "the process ends")
        assert model.vector(TEXT) == before


def test_ctrl_c_is_for_nexus_alone(model: ModelProcess) -> None:
    model.vector(TEXT)
    first = pid_of(model)
    for sign in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        send(first, sign)
    model.vector(TEXT)
    assert pid_of(model) == first


PARENT = """
import os, signal
from tests.kit.models import model_process
model = model_process()
model.vector("x")
print(model.host.process_id, flush=True)
signal.pause()
"""


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGTERM])
def test_no_process_outlives_nexus(sign: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert not gone(child)
        parent.send_signal(sign)
        parent.wait()
    eventually(lambda: gone(child), "the model's process ends")


def test_a_process_has_low_priority_little_memory_and_nothing_of_the_environment(
    model: ModelProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEXUS_JWT_SECRET", "a-secret")
    model.vector("two words " * 100_000)
    about = Path("/proc", str(pid_of(model)))
    assert os.getpriority(os.PRIO_PROCESS, pid_of(model)) >= 10
    assert b"NEXUS_JWT_SECRET" not in about.joinpath("environ").read_bytes()
    status = dict(line.split(":", 1) for line in about.joinpath("status").read_text().splitlines())
    assert int(status["VmHWM"].split()[0]) < 600 * 1024
    limits = about.joinpath("limits").read_text()
    limit = next(line for line in limits.splitlines() if line.startswith("Max address space"))
    assert int(limit.split()[3]) < 1024 * MIB


def test_a_model_whose_files_have_changed_is_not_used() -> None:
    made = model_process()
    order = made.order._replace(digests={**made_model().digests, "model.onnx": "0" * 64})
    with (
        held(ModelProcess(order)) as model,
        pytest.raises(UnfitModel, match=r"model\.onnx is not what it was"),
    ):
        model.vector(TEXT)


def test_a_text_that_the_model_fails_at_harms_no_other(
    model: ModelProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = (
        "import sys; sys.path[:] = sys.argv[2:]; from nexus.embed import child; embed = child.OnnxModel.embed\n"
        "def fails(self, text):\n"
        "    if text == 'bad': raise RuntimeError\n"
        "    return embed(self, text)\n"
        "child.OnnxModel.embed = fails; child.run_child()"
    )
    monkeypatch.setattr(process_module, "START", answer)
    model.vector(TEXT)
    first = pid_of(model)
    with pytest.raises(EmbeddingFailed) as raised:
        model.vector("bad")
    assert not raised.value.transient
    assert model.vector(TEXT).tokens > 0
    assert pid_of(model) == first
