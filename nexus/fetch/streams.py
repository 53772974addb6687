"""Answers that are passed on as they arrive, because they are too large to hold: the sound of a recording."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from nexus.errors import FetchBadAnswer, FetchFailed, FetchTooLarge
from nexus.fetch.answers import PARTIAL, ResponseHead
from nexus.fetch.limits import BROKE_OFF, FetchDeadline
from nexus.fetch.ranges import ByteRange, Part, parse_part, size_said

UNSATISFIABLE = 416
PLAIN = frozenset({"", "identity"})


@dataclass(frozen=True)
class Stream:
    """What an address begins to answer. Its bytes come as they are read, and none after its block has ended."""

    #: Where the redirects ended.
    url: str
    #: Without parameters, in small letters; empty if the site sent none.
    content_type: str
    #: Which part of the file this is; None if it is all of it.
    part: Part | None
    #: How many bytes follow, if the site said so.
    length: int | None
    #: The size of the whole, if the site said it.
    size: int | None
    #: Whether the file is too short to have the part that was asked for; then no bytes follow.
    is_out_of_range: bool
    #: Whether the site would answer with a part.
    takes_ranges: bool
    #: Raises FetchFailed or a kind of it if the rest does not come.
    chunks: Iterator[bytes]


class StreamDeadline(FetchDeadline):
    """The time for the head of an answer, and then again for each of its pieces, but for all of it no more than
    `most_seconds`. The time that a reader takes between two pieces does not count for a piece."""

    def __init__(
        self, seconds: float, wait_seconds: float, clock: Callable[[], float], most_seconds: float | None
    ) -> None:
        super().__init__(seconds, wait_seconds, clock)
        self._seconds = seconds
        self._last = None if most_seconds is None else clock() + most_seconds

    def go_on(self) -> None:
        end = self._clock() + self._seconds
        self._end = end if self._last is None else min(end, self._last)


def begin_stream(
    url: str,
    head: ResponseHead,
    asked: ByteRange | None,
    chunks: Iterator[bytes],
    most_bytes: int,
    deadline: StreamDeadline,
) -> Stream:
    """Check the head of an answer. Raises FetchFailed or a kind of it unless it is what was asked for."""
    if head.status == UNSATISFIABLE:
        return _out_of_range(url, head, asked)
    if head.encoding().lower() not in PLAIN:
        raise FetchBadAnswer  # compressed bytes are not a part of the file
    part = _part(head, asked)
    length = _length(head, part)
    size = length if part is None else part.size
    if max(length or 0, size or 0) > most_bytes:
        raise FetchTooLarge
    return Stream(
        url=url,
        content_type=head.value("content-type").partition(";")[0].strip().lower(),
        part=part,
        length=length,
        size=size,
        is_out_of_range=False,
        takes_ranges=part is not None or head.value("accept-ranges").lower() == "bytes",
        chunks=_passed_on(chunks, length, most_bytes, deadline),
    )


def _out_of_range(url: str, head: ResponseHead, asked: ByteRange | None) -> Stream:
    if asked is None:
        raise FetchBadAnswer
    return Stream(url, "", None, 0, size_said(head.value("content-range")), True, True, iter(()))


def _part(head: ResponseHead, asked: ByteRange | None) -> Part | None:
    if head.status != PARTIAL:
        return None
    part = parse_part(head.value("content-range"))
    if part is None or asked is None or not part.answers(asked):
        raise FetchBadAnswer
    return part


def _length(head: ResponseHead, part: Part | None) -> int | None:
    """Raises FetchBadAnswer if the headers contradict each other."""
    said = head.value("content-length")
    length = int(said) if said.isdecimal() and len(said) < 16 else None
    if part is None:
        return length
    if length not in {None, part.length}:
        raise FetchBadAnswer
    return part.length


def _passed_on(
    chunks: Iterator[bytes], length: int | None, most_bytes: int, deadline: StreamDeadline
) -> Iterator[bytes]:
    """Yield the body, and no more and no less of it than was announced."""
    left = most_bytes if length is None else length
    deadline.go_on()
    for chunk in chunks:
        left -= len(chunk)
        if left < 0:
            raise FetchTooLarge if length is None else FetchBadAnswer
        yield chunk
        deadline.go_on()
    if length is not None and left:
        raise FetchFailed(BROKE_OFF)
