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
from nexus.extract.child.nursery import LINE
from nexus.extract.child.outside import ENVIRONMENT, KEPT
from nexus.extract.sandbox import Limits, Sandbox
from tests.processes import eventually
from tests.readers import DEEDS

MIB = 1024 * 1024
LIMITS = Limits(seconds=30.0, memory_bytes=96 * MIB, output_bytes=MIB)

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux offers it")


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    made = Sandbox(LIMITS, processes=1, preload=("tests.readers",))
    yield made
    made.close()


def texts(sandbox: Sandbox, reader: str, data: bytes = b"", hints: Hints = Hints()) -> list[str]:
    return [one.text for one in sandbox.read(f"tests.readers:{reader}", data, hints).fragments]


def check_fails(
    sandbox: Sandbox, reader: str, error: type[ExtractionFailed], limits: Limits = LIMITS
) -> None:
    """With this very error and a line in the log; the next document is read as if nothing had been."""
    with capture_logs() as lines, pytest.raises(ExtractionFailed) as failed:
        sandbox.read(f"tests.readers:{reader}", b"", limits=limits)
    assert type(failed.value) is error
    assert {line["reader"] for line in lines} == {f"tests.readers:{reader}"}
    assert texts(sandbox, "nothing") == ["text"]


@pytest.mark.parametrize("reader", ["spin", "spin_in_c", "ignores_signals"])
def test_what_takes_too_long_is_stopped(sandbox: Sandbox, reader: str) -> None:
    check_fails(sandbox, reader, ParserTimeout, Limits(seconds=0.2))


def test_bytes_that_are_never_taken_are_a_matter_of_time(sandbox: Sandbox) -> None:
    (pid,) = texts(sandbox, "process")
    os.kill(int(pid), signal.SIGSTOP)
    with pytest.raises(ParserTimeout):
        sandbox.read("tests.readers:nothing", bytes(8 * MIB), limits=Limits(seconds=0.2))
    assert texts(sandbox, "nothing") == ["text"]


@on_linux
@pytest.mark.parametrize("reader", ["eat", "eat_at_once", "eat_and_deny", "eat_and_crash"])
def test_what_takes_too_much_memory_is_stopped(sandbox: Sandbox, reader: str) -> None:
    check_fails(sandbox, reader, ParserMemory)


@on_linux
def test_a_document_counts_as_memory(sandbox: Sandbox) -> None:
    with pytest.raises(ParserMemory):
        sandbox.read("tests.readers:nothing", bytes(16 * MIB), limits=Limits(memory_bytes=8 * MIB))
    assert texts(sandbox, "nothing", bytes(16 * MIB)) == ["text"]


@pytest.mark.parametrize("reader", ["crash", "leave_at_once", "garbage", "unfinished", "not_an_extraction"])
def test_a_process_that_breaks_down_is_a_crash(sandbox: Sandbox, reader: str) -> None:
    check_fails(sandbox, reader, ParserCrashed)


@pytest.mark.parametrize("reader", ["much", "many"])
def test_more_than_may_be_said_is_not_said(sandbox: Sandbox, reader: str) -> None:
    with pytest.raises(ParserOutput):
        sandbox.read(f"tests.readers:{reader}", b"")
    assert texts(sandbox, "nothing") == ["text"]


def test_what_says_more_all_the_same_is_stopped(sandbox: Sandbox) -> None:
    check_fails(sandbox, "endless", ParserOutput)


def test_text_that_is_not_text_is_a_crash(sandbox: Sandbox) -> None:
    check_fails(sandbox, "bad_utf8", ParserCrashed)


def test_an_error_that_no_reader_may_raise_is_a_failed_extraction(sandbox: Sandbox) -> None:
    with capture_logs() as lines, pytest.raises(ExtractionFailed) as failed:
        sandbox.read("tests.readers:a_lie_about_the_error", b"")
    assert type(failed.value) is ExtractionFailed
    assert [line["reason"] for line in lines] == ["?"]


def test_what_a_document_leaves_on_the_line_does_not_reach_the_next(sandbox: Sandbox) -> None:
    (first,) = texts(sandbox, "afterthought")
    (parser,) = sandbox._idle
    eventually(lambda: not parser.fits("tests.readers:process"), "the parser says more")
    (second,) = texts(sandbox, "process")
    assert first != second


def test_a_document_is_not_blamed_for_the_state_that_another_left(sandbox: Sandbox) -> None:
    (broken,) = texts(sandbox, "poison")
    with capture_logs() as lines:
        whole, _ = texts(sandbox, "delicate")
    assert broken != whole
    assert [line["event"] for line in lines] == ["parser_lost"]


def test_a_parser_has_nothing_of_its_worker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NEXUS_JWT_SECRET", "a secret")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
    sandbox = Sandbox(LIMITS, preload=("tests.readers",))
    with (tmp_path / "open").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        environment, folder, opened, leads_to, gains = texts(sandbox, "belongings")
    sandbox.close()
    assert set(ast.literal_eval(environment)) <= {*ENVIRONMENT, *KEPT, "LC_CTYPE"}
    assert folder == "/"
    assert opened == str([0, 1, 2, LINE])
    assert leads_to == str({Path(os.devnull).stat().st_rdev})
    assert gains == str(sys.platform != "linux")


def test_a_parser_may_write_no_file_and_start_no_process(sandbox: Sandbox) -> None:
    most = jail.OPEN_FILES
    assert texts(sandbox, "limits") == ["(0, 0)", "(0, 0)", "(0, 0)", f"({most}, {most})"]


@on_linux
@pytest.mark.parametrize("deed", DEEDS)
def test_a_parser_may_not(sandbox: Sandbox, deed: str, tmp_path: Path) -> None:
    from nexus.extract.child import kernel  # noqa: PLC0415

    if not kernel.landlock_version():
        pytest.skip("this kernel has no Landlock")
    (tmp_path / "secret").write_text("a secret")
    verdict, reason = texts(sandbox, "attempt", deed.encode(), Hints(filename=str(tmp_path)))
    assert (verdict, "a secret" in reason) == ("refused", False)
    assert [found.name for found in tmp_path.iterdir()] == ["secret"]
    assert (tmp_path / "secret").read_text() == "a secret"
