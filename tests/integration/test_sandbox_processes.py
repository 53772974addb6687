"""The parser processes: killed, replaced, closed. None is left over, and no document affects another."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from nexus.errors import ExtractionFailed, ParserCrashed, ParserMemory, ParserTimeout
from nexus.extract import Extraction, Hints
from nexus.extract.child import frames, handles, messages
from nexus.extract.child.handles import NurseryHandle
from nexus.extract.child.messages import ReadRequest
from nexus.extract.sandbox import ParserLimits, Sandbox, SandboxClosed
from tests.kit.processes import ROOT
from tests.kit.waiting import eventually

MIB = 1024 * 1024
LIMITS = ParserLimits(seconds=30.0, memory_bytes=256 * MIB)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it looks at processes as Linux shows them")


def new_sandbox(processes: int = 1, documents: int = 200) -> Sandbox:
    return Sandbox(LIMITS, processes, ("tests.kit.sandbox_readers",), documents)


@pytest.fixture
def own_sandbox() -> Iterator[Sandbox]:
    made = new_sandbox()
    yield made
    made.close()


def text(sandbox: Sandbox, reader: str, data: bytes = b"") -> str:
    return sandbox.read(f"tests.kit.sandbox_readers:{reader}", data).fragments[0].text


def nursery_of(sandbox: Sandbox) -> int:
    assert sandbox._nursery is not None
    return sandbox._nursery._process.pid


def children(pid: int) -> list[int]:
    """Including zombies."""
    with suppress(FileNotFoundError, ProcessLookupError):
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def gone(pid: int) -> bool:
    """Also true of a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


@contextmanager
def reading(sandbox: Sandbox, gate: Path) -> Iterator[tuple[Future[Extraction], int]]:
    """A running read that ends when the gate opens, and its process."""
    before = set(children(nursery_of(sandbox))) if sandbox._nursery else set()
    with ThreadPoolExecutor(1) as thread:
        try:
            found = thread.submit(sandbox.read, "tests.kit.sandbox_readers:gate", bytes(gate))
            yield found, eventually(lambda: busy(sandbox, before), "the read begins")
        finally:
            gate.touch()


def busy(sandbox: Sandbox, before: set[int]) -> int | None:
    """The process that reads now."""
    if sandbox._turn._value or sandbox._idle or sandbox._nursery is None:
        return None
    found = children(nursery_of(sandbox))
    return found[0] if found else None


def test_a_parser_that_is_killed_costs_its_document_alone(own_sandbox: Sandbox, tmp_path: Path) -> None:
    with reading(own_sandbox, tmp_path / "gate") as (found, parser):
        os.kill(parser, signal.SIGKILL)
        with pytest.raises(ParserCrashed):
            found.result()
    assert text(own_sandbox, "nothing") == "text"


def test_a_document_whose_process_read_others_before_is_read_again(
    own_sandbox: Sandbox, tmp_path: Path
) -> None:
    text(own_sandbox, "gate", b"/")
    with reading(own_sandbox, tmp_path / "gate") as (found, parser):
        os.kill(parser, signal.SIGKILL)
        eventually(lambda: children(nursery_of(own_sandbox)) not in ([], [parser]), "another reads it")
        (tmp_path / "gate").touch()
        assert found.result().fragments[0].text == "through the gate"


def test_a_parser_that_is_killed_while_it_waits_costs_nothing(own_sandbox: Sandbox) -> None:
    first = int(text(own_sandbox, "process"))
    os.kill(first, signal.SIGKILL)
    eventually(lambda: gone(first), "it has ended")
    assert int(text(own_sandbox, "process")) != first


def test_a_nursery_that_is_killed_costs_nothing(own_sandbox: Sandbox, tmp_path: Path) -> None:
    text(own_sandbox, "nothing")
    first = nursery_of(own_sandbox)
    with reading(own_sandbox, tmp_path / "gate") as (found, parser):
        os.kill(first, signal.SIGKILL)
        eventually(lambda: gone(parser), "its parser ends with it")
        (tmp_path / "gate").touch()
        assert found.result().fragments[0].text == "through the gate"
    second = nursery_of(own_sandbox)
    os.kill(second, signal.SIGKILL)
    eventually(lambda: gone(second), "the next one ends, too")
    assert text(own_sandbox, "nothing") == "text"
    assert len({first, second, nursery_of(own_sandbox)}) == 3


def test_a_nursery_that_does_not_answer_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox = new_sandbox(documents=1)
    text(sandbox, "nothing")
    first = nursery_of(sandbox)
    os.kill(first, signal.SIGSTOP)
    with monkeypatch.context() as impatient:
        impatient.setattr(handles, "LAST_SECONDS", 0.01)
        impatient.setattr(handles, "PATIENCE", 0.1)
        assert sandbox._nursery is not None
        with pytest.raises(handles.NurseryGone):
            sandbox._nursery.fork()
    assert gone(first)
    assert text(sandbox, "nothing") == "text"
    sandbox.close()


def test_a_nursery_that_never_starts_is_a_crash(
    own_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handles, "START", "raise SystemExit(1)")
    with pytest.raises(ParserCrashed):
        text(own_sandbox, "nothing")
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with pytest.raises(ParserCrashed):
        text(own_sandbox, "nothing")


#: As if the kernel had neither: unknown system calls, and an unknown architecture.
OLDER = """
import sys; sys.path[:] = sys.argv[2:]
from nexus.extract.child import kernel, nursery
kernel._CREATE_RULESET = 9999
kernel._MACHINES = {}
nursery.main()
"""


def test_limits_hold_on_a_kernel_without_sandbox_features(
    own_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handles, "START", OLDER)
    assert (
        Path("/etc/passwd").read_text()
        in own_sandbox.read("tests.kit.sandbox_readers:attempt", b"read the users").fragments[1].text
    )
    with pytest.raises(ParserTimeout):
        own_sandbox.read("tests.kit.sandbox_readers:spin", b"", limits=ParserLimits(seconds=0.1))
    with pytest.raises(ParserMemory):
        own_sandbox.read("tests.kit.sandbox_readers:eat", b"", limits=ParserLimits(memory_bytes=64 * MIB))


def test_two_sandboxes_read_a_document_identically() -> None:
    sandboxes = [new_sandbox(), new_sandbox()]
    assert len({text(sandbox, "order") for sandbox in sandboxes}) == 1
    for sandbox in sandboxes:
        sandbox.close()


def test_a_process_is_replaced_after_so_many_documents() -> None:
    sandbox = new_sandbox(documents=3)
    seen = [text(sandbox, "process") for _ in range(7)]
    sandbox.close()
    assert [seen.count(pid) for pid in dict.fromkeys(seen)] == [3, 3, 1]


def test_a_process_that_has_grown_is_replaced(own_sandbox: Sandbox) -> None:
    small = [text(own_sandbox, "grow", b"1000") for _ in range(2)]
    large = text(own_sandbox, "grow", str(100 * MIB).encode())
    after = text(own_sandbox, "grow", b"1000")
    assert small == [large] * 2
    assert after != large


def test_closing_a_sandbox_ends_everything_at_once(tmp_path: Path) -> None:
    sandbox = new_sandbox()
    with reading(sandbox, tmp_path / "gate") as (found, parser):
        nursery = nursery_of(sandbox)
        sandbox.close()
        with pytest.raises(SandboxClosed):
            found.result()
        eventually(lambda: gone(parser) and gone(nursery), "its processes end")
    with pytest.raises(SandboxClosed):
        text(sandbox, "nothing")
    sandbox.close()


def test_a_sandbox_that_was_never_used_starts_nothing() -> None:
    before = children(os.getpid())
    Sandbox(LIMITS).close()
    assert children(os.getpid()) == before


ABANDONED = """
import sys, threading
from nexus.extract.sandbox import ParserLimits, Sandbox
sandbox = Sandbox(ParserLimits(seconds=600), 2, ("tests.kit.sandbox_readers",))
sandbox.read("tests.kit.sandbox_readers:nothing", b"")
print(sandbox._nursery._process.pid, flush=True)
for reader in ("spin", "ignores_signals"):
    threading.Thread(target=sandbox.read, args=("tests.kit.sandbox_readers:" + reader, b"")).start()
"""


def test_a_worker_that_is_killed_leaves_no_process_behind() -> None:
    with ExitStack() as stack:
        worker = stack.enter_context(
            subprocess.Popen([sys.executable, "-c", ABANDONED], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        )
        stack.callback(worker.kill)
        assert worker.stdout is not None
        nursery = int(worker.stdout.readline())
        parsers = eventually(lambda: two(children(nursery)), "both documents are being read")
        worker.kill()
        eventually(lambda: all(map(gone, [nursery, *parsers])), "its processes end")


def two(pids: list[int]) -> list[int]:
    return pids if len(pids) == 2 else []


def test_no_descriptor_or_process_is_left_after_many_documents() -> None:
    sandbox = new_sandbox(processes=2, documents=20)
    text(sandbox, "nothing")
    before = open_files()
    readers = [*["nothing"] * 7, "breaks", "crash", "leave_at_once"] * 20
    with ThreadPoolExecutor(4) as threads:
        outcomes = list(threads.map(lambda reader: outcome(lambda: text(sandbox, reader)), readers))
    expected = {"nothing": "text", "breaks": "ExtractionFailed"}
    assert outcomes == [expected.get(reader, "ParserCrashed") for reader in readers]
    waiting = children(nursery_of(sandbox))
    assert len(waiting) == len(sandbox._idle) <= 2
    assert not any(map(gone, waiting)), "one has ended and was not reaped"
    assert open_files() - before <= 1
    sandbox.close()


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def outcome(act: Callable[[], str]) -> str:
    try:
        return act()
    except ExtractionFailed as error:
        return type(error).__name__


def test_an_interrupted_read_ends_its_process(own_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer still arrives, and would be mistaken for that of the next document."""
    first = text(own_sandbox, "process")

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as during:
        during.setattr(frames, "receive_frame", interrupted)
        during.setattr(NurseryHandle, "end", lambda *_: None)
        with pytest.raises(KeyboardInterrupt):
            text(own_sandbox, "process")
    assert text(own_sandbox, "process") != first


def test_processor_time_is_limited_even_if_nobody_watches_the_clock() -> None:
    nursery = NurseryHandle()
    nursery.learn("tests.kit.sandbox_readers:spin")
    parser = nursery.fork()
    request = ReadRequest("tests.kit.sandbox_readers:spin", 0, 0.0, 64 * MIB, MIB, Hints())
    parser.line.sendall(frames.frame(messages.encode(request)))
    with pytest.raises(EOFError):
        frames.receive_frame(parser.line)
    assert parser.end().out_of_time
    nursery.close()


def test_simultaneous_threads_share_one_nursery() -> None:
    sandbox = new_sandbox(processes=4)
    together = threading.Barrier(4)

    def read(_: int) -> int:
        together.wait()
        text(sandbox, "nothing")
        return nursery_of(sandbox)

    with ThreadPoolExecutor(4) as threads:
        assert len(set(threads.map(read, range(4)))) == 1
    sandbox.close()
