"""Documents that take over their reader: each ends within its limits, with the right code, and harms no other."""

from __future__ import annotations

import ast
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from nexus.errors import ExtractionFailed, ParserCrashed, ParserMemory, ParserOutput, ParserTimeout
from nexus.extract import Hints
from nexus.extract.child import jail
from nexus.extract.child.handles import ENVIRONMENT, KEPT
from nexus.extract.child.nursery import LINE
from nexus.extract.sandbox import ParserLimits, Sandbox
from tests.kit.parsers import waiting
from tests.kit.sandbox_readers import DEEDS, FATAL_CALLS
from tests.kit.waiting import eventually

MIB = 1024 * 1024
LIMITS = ParserLimits(seconds=30.0, memory_bytes=96 * MIB, output_bytes=MIB)

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux offers it")


@pytest.fixture(scope="module")
def lone_sandbox() -> Iterator[Sandbox]:
    made = Sandbox(LIMITS, processes=1)
    yield made
    made.close()


def texts(sandbox: Sandbox, reader: str, data: bytes = b"", hints: Hints = Hints()) -> list[str]:
    return [one.text for one in sandbox.read(f"tests.kit.sandbox_readers:{reader}", data, hints).fragments]


def check_fails(
    sandbox: Sandbox, reader: str, error: type[ExtractionFailed], limits: ParserLimits = LIMITS
) -> None:
    """Fails with this error and a line in the log; the next document is read as if nothing had happened."""
    with capture_logs() as lines, pytest.raises(ExtractionFailed) as failed:
        sandbox.read(f"tests.kit.sandbox_readers:{reader}", b"", limits=limits)
    assert type(failed.value) is error
    assert {line["reader"] for line in lines} == {f"tests.kit.sandbox_readers:{reader}"}
    assert texts(sandbox, "nothing") == ["text"]


@pytest.mark.parametrize("reader", ["spin", "spin_in_c", "ignores_signals"])
def test_a_reader_that_takes_too_long_is_stopped(lone_sandbox: Sandbox, reader: str) -> None:
    check_fails(lone_sandbox, reader, ParserTimeout, ParserLimits(seconds=0.2))


def test_sending_bytes_that_nobody_reads_ends_with_the_time_limit(lone_sandbox: Sandbox) -> None:
    texts(lone_sandbox, "nothing")
    (spare,) = eventually(lambda: waiting(lone_sandbox, 1), "a spare waits")
    os.kill(spare, signal.SIGSTOP)
    with pytest.raises(ParserTimeout):
        lone_sandbox.read(
            "tests.kit.sandbox_readers:nothing", bytes(8 * MIB), limits=ParserLimits(seconds=0.2)
        )
    assert texts(lone_sandbox, "nothing") == ["text"]


@on_linux
@pytest.mark.parametrize("reader", ["eat", "eat_at_once", "eat_and_deny", "eat_and_crash"])
def test_a_reader_that_takes_too_much_memory_is_stopped(lone_sandbox: Sandbox, reader: str) -> None:
    check_fails(lone_sandbox, reader, ParserMemory)


@on_linux
def test_a_document_counts_towards_the_memory_limit(lone_sandbox: Sandbox) -> None:
    with pytest.raises(ParserMemory):
        lone_sandbox.read(
            "tests.kit.sandbox_readers:nothing", bytes(16 * MIB), limits=ParserLimits(memory_bytes=8 * MIB)
        )
    assert texts(lone_sandbox, "nothing", bytes(16 * MIB)) == ["text"]


@pytest.mark.parametrize("reader", ["crash", "leave_at_once", "garbage", "unfinished", "not_an_extraction"])
def test_a_process_that_breaks_down_is_a_crash(lone_sandbox: Sandbox, reader: str) -> None:
    check_fails(lone_sandbox, reader, ParserCrashed)


@pytest.mark.parametrize("reader", ["much", "many"])
def test_a_result_beyond_the_size_limit_is_not_sent(lone_sandbox: Sandbox, reader: str) -> None:
    with pytest.raises(ParserOutput):
        lone_sandbox.read(f"tests.kit.sandbox_readers:{reader}", b"")
    assert texts(lone_sandbox, "nothing") == ["text"]


def test_a_parser_that_sends_too_much_is_stopped(lone_sandbox: Sandbox) -> None:
    check_fails(lone_sandbox, "endless", ParserOutput)


def test_a_result_with_invalid_text_is_a_crash(lone_sandbox: Sandbox) -> None:
    check_fails(lone_sandbox, "bad_utf8", ParserCrashed)


def test_a_forged_error_of_a_reader_is_a_failed_extraction(lone_sandbox: Sandbox) -> None:
    with capture_logs() as lines, pytest.raises(ExtractionFailed) as failed:
        lone_sandbox.read("tests.kit.sandbox_readers:a_lie_about_the_error", b"")
    assert type(failed.value) is ExtractionFailed
    assert [line["reason"] for line in lines] == ["?"]


def test_a_parser_that_was_taken_over_can_not_answer_for_the_next_document(lone_sandbox: Sandbox) -> None:
    for _ in range(5):
        assert texts(lone_sandbox, "stay") == ["forged"]
        assert texts(lone_sandbox, "nothing") == ["text"]
    eventually(lambda: waiting(lone_sandbox, 1), "those that stayed were ended")


def test_a_parser_that_was_taken_over_can_not_change_what_the_next_document_meets(
    lone_sandbox: Sandbox,
) -> None:
    for _ in range(3):
        with pytest.raises(ParserCrashed):
            texts(lone_sandbox, "leave_a_mark", b"the first reader's secret")
        assert texts(lone_sandbox, "mark") == ["nothing"]


def test_a_parser_inherits_nothing_from_its_worker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NEXUS_JWT_SECRET", "a secret")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
    sandbox = Sandbox(LIMITS)
    with (tmp_path / "open").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        environment, folder, opened, leads_to, gains = texts(sandbox, "belongings")
    sandbox.close()
    assert set(ast.literal_eval(environment)) <= {*ENVIRONMENT, *KEPT, "LC_CTYPE"}
    assert folder == "/"
    assert opened == str([0, 1, 2, LINE])
    assert leads_to == str({Path(os.devnull).stat().st_rdev})
    assert gains == str(sys.platform != "linux")


def test_a_parser_may_write_no_file_and_start_no_process(lone_sandbox: Sandbox) -> None:
    most = jail.OPEN_FILES
    assert texts(lone_sandbox, "limits") == ["(0, 0)", "(0, 0)", "(0, 0)", f"({most}, {most})"]


@on_linux
@pytest.mark.parametrize("deed", DEEDS)
def test_a_parser_is_refused_each_forbidden_deed(lone_sandbox: Sandbox, deed: str, tmp_path: Path) -> None:
    from nexus.extract.child import kernel  # noqa: PLC0415

    if not kernel.landlock_version():
        pytest.skip("this kernel has no Landlock")
    (tmp_path / "secret").write_text("a secret")
    verdict, reason = texts(lone_sandbox, "attempt", deed.encode(), Hints(filename=str(tmp_path)))
    assert (verdict, "a secret" in reason) == ("refused", False)
    assert [found.name for found in tmp_path.iterdir()] == ["secret"]
    assert (tmp_path / "secret").read_text() == "a secret"


@on_linux
@pytest.mark.parametrize("name", FATAL_CALLS)
def test_a_system_call_that_no_reader_needs_ends_the_parser(lone_sandbox: Sandbox, name: str) -> None:
    with capture_logs() as lines, pytest.raises(ParserCrashed):
        texts(lone_sandbox, "call", name.encode())
    assert [line["reason"] for line in lines] == ["SIGSYS"]


@on_linux
def test_each_parser_of_root_is_a_user_of_its_own_in_no_group(lone_sandbox: Sandbox) -> None:
    seen = [texts(lone_sandbox, "identity") for _ in range(2)]
    if os.geteuid() == 0:
        assert [groups for _, groups in seen] == ["[]", "[]"]
        assert len({"{0}", *(users for users, _ in seen)}) == 3
    else:
        assert all(ast.literal_eval(users).isdisjoint({0}) for users, _ in seen)


@on_linux
def test_a_parser_has_a_network_and_processes_of_its_own(lone_sandbox: Sandbox) -> None:
    """On this machine; `nexus doctor --security` says what another has."""
    mine = {name: str(Path(f"/proc/self/ns/{name}").readlink()) for name in ("net", "ipc", "pid", "mnt")}
    theirs = dict(zip(mine, texts(lone_sandbox, "namespaces"), strict=True))
    assert {name for name in mine if mine[name] == theirs[name]} == set()
