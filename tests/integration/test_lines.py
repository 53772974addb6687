"""Lines do what they promise, tested with an echo server."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

import pytest

from tests.kit.faults.network_lines import BEGIN, COMMIT, Line, Lines, Moment, Trap

PATIENCE = 60.0
SHELF = b"shelf"


class Echo:
    def __init__(self, listening: socket.socket) -> None:
        self._listening = listening
        self.url = f"echo://somebody@127.0.0.1:{listening.getsockname()[1]}/room"
        self.heard: list[bytes] = []

    def talk(self) -> None:
        """Serve one caller after the other, until the socket is closed."""
        while True:
            try:
                sock, _ = self._listening.accept()
            except OSError:
                return
            with closing(sock), suppress(ConnectionError):
                while data := sock.recv(1000):
                    self.heard.append(data)
                    sock.sendall(data)


@contextmanager
def echoing() -> Iterator[Echo]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        echo = Echo(listening)
        talk = threading.Thread(target=echo.talk)
        talk.start()
        try:
            yield echo
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            talk.join()


@pytest.fixture
def echo() -> Iterator[Echo]:
    with echoing() as made:
        yield made


@pytest.fixture
def echo_line(lines: Lines, echo: Echo) -> Line:
    return lines.to(echo.url)


def said(line: Line, *words: bytes) -> list[bytes]:
    """The echo of each word, until the line was cut."""
    found: list[bytes] = []
    with suppress(ConnectionError), calling(line) as sock:
        for word in words:
            sock.sendall(word)
            heard = sock.recv(1000)
            if not heard:
                break
            found.append(heard)
    return found


def calling(line: Line) -> socket.socket:
    return socket.create_connection(("127.0.0.1", line.port), timeout=PATIENCE)


def test_a_line_puts_through_what_is_said(echo_line: Line) -> None:
    assert said(echo_line, BEGIN, COMMIT) == [BEGIN, COMMIT]


def test_a_line_has_the_address_of_its_target_with_a_port_of_its_own(echo_line: Line) -> None:
    assert echo_line.url == f"echo://somebody@127.0.0.1:{echo_line.port}/room"


@pytest.mark.parametrize(("moment", "arrives"), [(Moment.BEFORE, False), (Moment.AFTER, True)])
def test_a_line_is_cut_once_at_the_last_word_of_a_trap(
    echo_line: Line, echo: Echo, moment: Moment, arrives: bool
) -> None:
    armed = echo_line.arm(Trap((SHELF, COMMIT), moment))
    assert said(echo_line, BEGIN, COMMIT) == [BEGIN, COMMIT]
    assert not armed.sprung.is_set()
    echo.heard.clear()
    assert said(echo_line, BEGIN, SHELF, COMMIT) == [BEGIN, SHELF]
    assert armed.sprung.is_set()
    assert said(echo_line, BEGIN, SHELF, COMMIT) == [BEGIN, SHELF, COMMIT]
    assert echo.heard == [BEGIN, SHELF, *([COMMIT] if arrives else []), BEGIN, SHELF, COMMIT]


def test_a_trap_does_not_count_words_of_an_earlier_transaction(echo_line: Line) -> None:
    armed = echo_line.arm(Trap((SHELF, COMMIT), Moment.BEFORE))
    words = [BEGIN, SHELF, BEGIN, COMMIT]
    assert said(echo_line, *words) == words
    assert not armed.sprung.is_set()


def test_traps_spring_one_after_the_other(echo_line: Line) -> None:
    for _ in range(2):
        echo_line.arm(Trap((COMMIT,), Moment.BEFORE))
    assert [said(echo_line, COMMIT) for _ in range(3)] == [[], [], [COMMIT]]
    assert not echo_line.armed


@pytest.mark.parametrize("arrives", [True, False])
def test_a_held_word_arrives_only_if_the_test_decides_so(echo_line: Line, echo: Echo, arrives: bool) -> None:
    armed = echo_line.arm(Trap((COMMIT,), Moment.HELD))
    assert said(echo_line, BEGIN, COMMIT) == [BEGIN]
    assert echo.heard == [BEGIN]
    armed.arrives.set_result(arrives)
    # The server takes the next call when the one before is over.
    assert said(echo_line, b"next") == [b"next"]
    assert echo.heard == [BEGIN, *([COMMIT] if arrives else []), b"next"]


def test_a_line_is_cut_in_the_middle_of_an_answer(echo_line: Line) -> None:
    echo_line.arm(Trap((b"",), Moment.WITHIN))
    # The reset may overtake the half that has gone on.
    assert said(echo_line, b"abcd", b"more") in ([b"ab"], [])


def test_a_line_refuses_until_it_is_restored(echo_line: Line) -> None:
    echo_line.refuse()
    assert said(echo_line, b"hello") == []
    echo_line.restore()
    assert said(echo_line, b"hello") == [b"hello"]


def test_a_trap_may_take_the_whole_line_away(echo_line: Line) -> None:
    echo_line.arm(Trap((COMMIT,), Moment.BEFORE), lambda _: echo_line.refuse())
    with calling(echo_line) as other:
        assert said(echo_line, COMMIT) == []
        with suppress(ConnectionError):
            assert other.recv(1000) == b""
    assert said(echo_line, b"hello") == []


def test_a_line_that_is_held_loses_nothing(echo_line: Line) -> None:
    with calling(echo_line) as sock:
        echo_line.hold()
        sock.sendall(b"hello")
        echo_line.restore()
        assert sock.recv(1000) == b"hello"
