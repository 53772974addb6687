"""The parser processes: killed, replaced, closed. None is left over, and no document affects another."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from nexus.app import sandbox as parser_pool
from nexus.errors import ExtractionFailed, ParserCrashed, ParserMemory, ParserTimeout
from nexus.extract import Extraction, Hints
from nexus.extract.builtin import ARTICLE, TEXT
from nexus.extract.child import frames, handles, messages
from nexus.extract.child.handles import NurseryHandle
from nexus.extract.child.messages import ReadRequest
from nexus.extract.sandbox import ParserLimits, Sandbox, SandboxClosed
from tests.kit.parsers import OLDER, children, gone, nursery_of, parsers_of, state, waiting
from tests.kit.processes import ROOT
from tests.kit.settings import make_settings
from tests.kit.waiting import eventually

MIB = 1024 * 1024
LIMITS = ParserLimits(seconds=30.0, memory_bytes=256 * MIB)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it looks at processes as Linux shows them")


def new_sandbox(processes: int = 1) -> Sandbox:
    return Sandbox(LIMITS, processes)


@pytest.fixture
def own_sandbox() -> Iterator[Sandbox]:
    made = new_sandbox()
    yield made
    made.close()


def text(sandbox: Sandbox, reader: str, data: bytes = b"") -> str:
    return sandbox.read(f"tests.kit.sandbox_readers:{reader}", data).fragments[0].text


@contextmanager
def reading(sandbox: Sandbox, gate: Path) -> Iterator[tuple[Future[Extraction], int]]:
    """A running read of a file, which ends when the gate opens, and its process."""
    gate.with_name("document").write_bytes(bytes(gate))
    with gate.with_name("document").open("rb") as document, ThreadPoolExecutor(1) as thread:
        try:
            found = thread.submit(sandbox.read, "tests.kit.sandbox_readers:gate", document)
            yield found, eventually(lambda: busy(sandbox), "the read begins")
        finally:
            gate.touch()


def busy(sandbox: Sandbox) -> int | None:
    """The process that reads now: the oldest, since spares are taken in order."""
    if sandbox._turns.free or sandbox._nursery is None:
        return None
    found = parsers_of(nursery_of(sandbox))
    return found[0] if len(found) == 2 and [state(pid) for pid in found] == ["R", "S"] else None


def test_a_parser_that_is_killed_costs_its_document_alone(own_sandbox: Sandbox, tmp_path: Path) -> None:
    with reading(own_sandbox, tmp_path / "gate") as (found, parser):
        os.kill(parser, signal.SIGKILL)
        with pytest.raises(ParserCrashed):
            found.result()
    assert text(own_sandbox, "nothing") == "text"


def test_a_parser_that_is_killed_while_it_waits_costs_nothing(own_sandbox: Sandbox) -> None:
    text(own_sandbox, "nothing")
    (spare,) = eventually(lambda: waiting(own_sandbox, 1), "a spare waits")
    os.kill(spare, signal.SIGKILL)
    eventually(lambda: gone(spare), "it has ended")
    assert text(own_sandbox, "nothing") == "text"


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
    sandbox = new_sandbox()
    text(sandbox, "nothing")
    first = nursery_of(sandbox)
    for pid in (first, *children(first)):
        os.kill(pid, signal.SIGSTOP)
    with monkeypatch.context() as impatient:
        impatient.setattr(handles, "LAST_SECONDS", 0.01)
        impatient.setattr(handles, "PATIENCE", 0.1)
        assert sandbox._nursery is not None
        parser = sandbox._nursery.fork()
        with pytest.raises(handles.NurseryGone):
            parser.is_ready()
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


def test_each_document_is_read_by_a_process_of_its_own(own_sandbox: Sandbox) -> None:
    seen = [text(own_sandbox, "process") for _ in range(20)]
    assert len(set(seen)) == len(seen)


def test_a_process_waits_for_the_next_document_before_it_comes(own_sandbox: Sandbox) -> None:
    text(own_sandbox, "nothing")
    (spare,) = eventually(lambda: waiting(own_sandbox, 1), "a spare waits")
    text(own_sandbox, "nothing")
    assert eventually(lambda: waiting(own_sandbox, 1), "another one waits") != [spare]


def test_a_process_imports_only_readers_that_were_used(tmp_path: Path) -> None:
    """A command that imports books does not load what articles need."""
    sandbox = parser_pool(make_settings("sqlite://", tmp_path))
    sandbox.read(TEXT, b"The ferry left the harbour at noon.")
    assert text(sandbox, "readers") == "text"
    sandbox.close()


def test_a_process_has_what_a_page_without_marks_needs(own_sandbox: Sandbox) -> None:
    """Whatever it still had to import or compile, the process of every page would."""
    page = f"""<html><head><title>Slack water</title><script type="application/ld+json">{{"@type": "NewsArticle",
    "datePublished": "2025-12-24T06:00:00Z"}}</script></head><body>{"<div>The tide turned at noon, late.</div>" * 30}"""
    own_sandbox.read(ARTICLE, page.encode())
    found = own_sandbox.read(
        "tests.kit.sandbox_readers:late_work", page.encode(), Hints("https://a.example/")
    )
    assert [one.text for one in found.fragments] == []


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
sandbox = Sandbox(ParserLimits(seconds=600), 2)
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
        parsers = eventually(lambda: running(nursery), "both documents are being read")
        worker.kill()
        eventually(lambda: all(map(gone, [nursery, *parsers])), "its processes end")


def running(nursery: int) -> list[int]:
    """The parsers, once two of them read a document and the others wait."""
    found = parsers_of(nursery)
    return found if sorted(map(state, found)) in (["R", "R", "S"], ["R", "R", "S", "S"]) else []


def test_no_descriptor_or_process_is_left_after_many_documents() -> None:
    sandbox = new_sandbox(processes=2)
    text(sandbox, "nothing")
    before = open_files()
    readers = [*["nothing"] * 7, "breaks", "crash", "leave_at_once"] * 20
    with ThreadPoolExecutor(4) as threads:
        outcomes = list(threads.map(lambda reader: outcome(lambda: text(sandbox, reader)), readers))
    expected = {"nothing": "text", "breaks": "ExtractionFailed"}
    assert outcomes == [expected.get(reader, "ParserCrashed") for reader in readers]
    spares = len(sandbox._spares)
    assert spares <= 2
    eventually(lambda: waiting(sandbox, spares), "all others have ended and were reaped")
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
    text(own_sandbox, "nothing")

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as during:
        during.setattr(messages, "decode_answer", interrupted)
        with pytest.raises(KeyboardInterrupt):
            text(own_sandbox, "nothing")
    eventually(lambda: waiting(own_sandbox, 1), "only the spare is left")
    assert text(own_sandbox, "nothing") == "text"


def test_processor_time_is_limited_even_if_nobody_watches_the_clock() -> None:
    nursery = NurseryHandle()
    nursery.learn("tests.kit.sandbox_readers:spin")
    parser = nursery.fork()
    assert parser.is_ready()
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
