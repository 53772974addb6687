"""Looks up the addresses of names, within the deadline of a fetch."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future
from ipaddress import ip_address
from typing import Any

from nexus.deadline import Deadline
from nexus.errors import FetchBlockedAddress, FetchFailed, FetchTimeout, FetchUnknownHost
from nexus.fetch.addresses import Address

#: How many lookups run at once, including abandoned ones.
MOST_LOOKUPS = 32

NO_ANSWER = "The site's name can't be looked up at the moment. Retry later."


class Lookups:
    """A lookup can't be stopped, so each runs in a thread of its own and is abandoned when the fetch runs out of time.

    While too many are running, the next one waits, within the deadline of its fetch.
    """

    def __init__(self, resolve: Callable[..., list[Any]], most: int = MOST_LOOKUPS) -> None:
        self._resolve = resolve
        self._places = threading.BoundedSemaphore(most)

    def addresses(self, host: str, port: int, deadline: Deadline) -> list[Address]:
        """Return every address of a name. Raises FetchFailed or a kind of it."""
        if not self._places.acquire(timeout=deadline.left()):
            raise FetchTimeout
        answer: Future[list[Any]] = Future()
        try:
            threading.Thread(target=self._look_up, args=(answer, host, port), daemon=True).start()
        except RuntimeError as error:  # no more threads
            self._places.release()
            raise FetchFailed(NO_ANSWER) from error
        try:
            return _addresses(answer.result(timeout=deadline.left()))
        except TimeoutError as error:
            raise FetchTimeout from error
        except socket.gaierror as error:
            raise FetchFailed(NO_ANSWER) if error.errno == socket.EAI_AGAIN else FetchUnknownHost from error
        except (OSError, UnicodeError) as error:
            raise FetchUnknownHost from error

    def _look_up(self, answer: Future[list[Any]], host: str, port: int) -> None:
        try:
            answer.set_result(self._resolve(host.encode("ascii"), port, type=socket.SOCK_STREAM))
        except BaseException as error:
            answer.set_exception(error)
        finally:
            self._places.release()


def _addresses(answers: list[Any]) -> list[Address]:
    try:
        found = list(dict.fromkeys(ip_address(sockaddr[0]) for *_, sockaddr in answers))
    except ValueError as error:
        raise FetchBlockedAddress from error
    if not found:
        raise FetchUnknownHost
    return found
