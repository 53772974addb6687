"""What comes back from a parser process: the reader's result, exactly, or the error that it meant."""

from __future__ import annotations

import hashlib
import os
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as StillWaiting
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from structlog.testing import capture_logs

from nexus.errors import EmptyContent, ExtractionFailed, ParserCrashed, PdfDamaged, describe
from nexus.extract import Extraction, Fragment, Hints
from nexus.extract.child.handles import PIECE
from nexus.extract.sandbox import LONGEST_MESSAGE, CancelToken, ParserLimits, ReadCancelled, Sandbox
from tests.kit.sandbox_readers import RICH
from tests.kit.waiting import eventually

LIMITS = ParserLimits(seconds=30.0, memory_bytes=256 * 1024 * 1024, output_bytes=4 * 1024 * 1024)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    made = Sandbox(LIMITS, processes=2)
    yield made
    made.close()


def test_an_extraction_comes_back_from_the_sandbox_exactly(sandbox: Sandbox) -> None:
    assert sandbox.read("tests.kit.sandbox_readers:rich", b"") == RICH


def test_bytes_and_hints_reach_a_reader_exactly(sandbox: Sandbox) -> None:
    data = os.urandom(3_000_001)
    hints = Hints("https://example.com/ä", "text/html", None, "")
    digest, seen = sandbox.read("tests.kit.sandbox_readers:echo", data, hints).fragments
    assert (digest.text, seen.text) == (hashlib.sha256(data).hexdigest(), repr(hints))


def test_an_open_file_arrives_exactly_and_is_never_in_memory_as_a_whole(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    data = os.urandom(PIECE) * 32
    (tmp_path / "file").write_bytes(data)
    with (tmp_path / "file").open("rb") as file:
        tracemalloc.start()
        found = sandbox.read("tests.kit.sandbox_readers:echo", file)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert found.fragments[0].text == hashlib.sha256(data).hexdigest()
    assert most < 4 * PIECE


def test_an_empty_file_arrives_empty(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (tmp_path / "file").open("rb") as file:
        found = sandbox.read("tests.kit.sandbox_readers:echo", file)
    assert found.fragments[0].text == hashlib.sha256(b"").hexdigest()


def test_half_a_surrogate_pair_is_replaced_and_offsets_stay(sandbox: Sandbox) -> None:
    found = sandbox.read("tests.kit.sandbox_readers:surrogates", b"")
    marks = "\ufffd\ufffd\ufffdx"
    assert found == Extraction("a\ufffdb", (Fragment(marks, f"<p>{marks}</p>"),))


def test_many_threads_each_get_their_own_result(sandbox: Sandbox) -> None:
    documents = [str(n).encode() * 5000 for n in range(200)]
    with ThreadPoolExecutor(8) as threads:
        found = list(
            threads.map(lambda data: sandbox.read("tests.kit.sandbox_readers:echo", data), documents)
        )
    assert [one.fragments[0].text for one in found] == [
        hashlib.sha256(data).hexdigest() for data in documents
    ]


def test_waiting_for_a_free_parser_does_not_use_up_the_time_limit(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    sandbox = Sandbox(LIMITS, processes=1)
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(sandbox.read, "tests.kit.sandbox_readers:gate", bytes(gate))
        wait_until_busy(sandbox)
        second = threads.submit(
            sandbox.read, "tests.kit.sandbox_readers:nothing", b"", limits=ParserLimits(seconds=4.0)
        )
        with pytest.raises(StillWaiting):
            second.result(4.1)
        gate.touch()
        assert first.result().fragments[0].text == "through the gate"
        assert second.result().fragments[0].text == "text"
    sandbox.close()


def test_users_are_read_in_turn_however_many_documents_one_of_them_has(tmp_path: Path) -> None:
    gate, order = tmp_path / "gate", list[str]()
    sandbox = Sandbox(LIMITS, processes=1)

    def read(name: str, user: UUID) -> None:
        sandbox.read("tests.kit.sandbox_readers:nothing", b"", user=user)
        order.append(name)

    many, few = uuid4(), uuid4()
    with ThreadPoolExecutor(8) as threads:
        first = threads.submit(sandbox.read, "tests.kit.sandbox_readers:gate", bytes(gate), user=many)
        wait_until_busy(sandbox)
        for number in range(4):
            threads.submit(read, f"many {number}", many)
            eventually(lambda number=number: waiting_for(sandbox, many) == number + 1, "it is in line")
        threads.submit(read, "few", few)
        eventually(lambda: waiting_for(sandbox, few) == 1, "it is in line")
        gate.touch()
        first.result()
    assert order == ["many 0", "few", "many 1", "many 2", "many 3"]
    sandbox.close()


def test_a_cancelled_read_leaves_the_line(tmp_path: Path) -> None:
    gate, cancel, user = tmp_path / "gate", CancelToken(), uuid4()
    sandbox = Sandbox(LIMITS, processes=1)
    with ThreadPoolExecutor(3) as threads:
        first = threads.submit(sandbox.read, "tests.kit.sandbox_readers:gate", bytes(gate))
        wait_until_busy(sandbox)
        second = threads.submit(
            sandbox.read, "tests.kit.sandbox_readers:nothing", b"", cancel=cancel, user=user
        )
        eventually(lambda: waiting_for(sandbox, user) == 1, "it is in line")
        cancel.cancel()
        with pytest.raises(ReadCancelled):
            second.result()
        gate.touch()
        first.result()
        assert sandbox.read("tests.kit.sandbox_readers:nothing", b"", user=user).fragments[0].text == "text"
    sandbox.close()


def waiting_for(sandbox: Sandbox, user: UUID) -> int:
    return len(sandbox._turns._waiting.get(user, ()))


def wait_until_busy(sandbox: Sandbox) -> None:
    eventually(lambda: not sandbox._turns.free, "every parser is busy")


def test_an_error_of_a_reader_reaches_the_caller(sandbox: Sandbox) -> None:
    with pytest.raises(EmptyContent) as empty:
        sandbox.read("tests.kit.sandbox_readers:no_text", b"")
    assert empty.value.message == describe(EmptyContent)
    with pytest.raises(PdfDamaged, match="page 7") as damaged:
        sandbox.read("tests.kit.sandbox_readers:damaged", b"")
    assert len(damaged.value.message) == LONGEST_MESSAGE


@pytest.mark.parametrize(
    ("reader", "reason"),
    [
        ("not_ours", "FetchTimeout"),
        ("breaks", "KeyError"),
        ("recursion", "RecursionError"),
        ("leaves", "SystemExit"),
        ("gives_nothing", "AttributeError"),
        ("gives_something_else", "ValidationError"),
    ],
)
def test_other_exceptions_of_a_reader_are_logged_by_name_only(
    sandbox: Sandbox, reader: str, reason: str
) -> None:
    name = f"tests.kit.sandbox_readers:{reader}"
    with capture_logs() as lines, pytest.raises(ExtractionFailed) as failed:
        sandbox.read(name, b"")
    assert type(failed.value) is ExtractionFailed
    assert failed.value.message == describe(ExtractionFailed)
    assert lines == [{"event": "reader_failed", "log_level": "warning", "reader": name, "reason": reason}]


@pytest.mark.parametrize(
    ("reader", "reason"),
    [
        ("tests.no_such_module:read", "ModuleNotFoundError"),
        ("tests.kit.sandbox_readers:no_such_function", "AttributeError"),
    ],
)
def test_a_reader_that_does_not_exist_is_a_crash_with_a_line_in_the_log(
    sandbox: Sandbox, reader: str, reason: str
) -> None:
    with capture_logs() as lines, pytest.raises(ParserCrashed):
        sandbox.read(reader, b"")
    assert lines == [{"event": "reader_unknown", "log_level": "error", "reader": reader, "reason": reason}]
    assert sandbox.read("tests.kit.sandbox_readers:rich", b"") == RICH


def test_a_reader_is_found_wherever_this_process_imports_from(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even in a folder added to the path later, relative to the working directory."""
    sandbox.read("tests.kit.sandbox_readers:nothing", b"")
    package = tmp_path / "plugins" / "a_package_of_readers"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "late.py").write_text("WORDS = 'a late import'")
    (package / "reader.py").write_text(
        "from nexus.extract import Extraction\n"
        "def read(data, hints):\n"
        "    from a_package_of_readers.late import WORDS\n"
        "    return Extraction.plain(None, WORDS)\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("plugins")
    found = sandbox.read("a_package_of_readers.reader:read", b"")
    assert found == Extraction.plain(None, "a late import")


def test_readers_may_import_installed_modules_late(sandbox: Sandbox) -> None:
    found = sandbox.read("tests.kit.sandbox_readers:late_import", b"")
    assert [one.text for one in found.fragments] == ["wsgiref.util", "can_ada", "nexus.urls"]
