"""What a parser may send: anything. What is made of it: an extraction or an error, and no more memory than agreed."""

from __future__ import annotations

import socket
import struct
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nexus.extract import Asset, Extraction, Facts, Fragment, Heading, Hints
from nexus.extract.child import wire
from nexus.extract.child.wire import BadFrame, Request, TooLarge

MOST = 100_000
TAG = b"the tag!"

words = st.text(st.characters(exclude_categories=["Cs"]))
maybe = st.none() | words
extractions = st.builds(
    Extraction,
    maybe,
    st.lists(st.builds(Fragment, words, maybe)).map(tuple),
    st.builds(Facts, maybe, maybe, maybe, maybe, maybe, maybe),
    st.lists(st.builds(Heading, words, st.integers(0, 100), words)).map(tuple),
    st.lists(st.builds(Asset, words, words, st.binary())).map(tuple),
)


def received(data: bytes, tag: bytes | None = TAG) -> list[bytes | None]:
    """What is understood of these bytes when nothing follows them."""
    mine, theirs = socket.socketpair()
    with mine, theirs:
        theirs.sendall(data)
        theirs.close()
        return list(wire.receive(mine, MOST, tag=tag)[1])


@settings(max_examples=50, deadline=None, derandomize=True)
@given(extractions)
def test_an_extraction_comes_out_as_it_went_in(found: Extraction) -> None:
    values = received(wire.frame(wire.extraction_values(found), TAG))
    assert wire.extraction_of(iter(values)) == found


@settings(deadline=None, derandomize=True)
@given(maybe, maybe, st.floats(0, 1e6))
def test_a_request_comes_out_as_it_went_in(url: str | None, filename: str | None, seconds: float) -> None:
    request = Request("a.b:c", 7, seconds, 2**40, 5, Hints(url, None, "utf-8", filename))
    values = received(wire.frame(wire.request_values(request), TAG))
    assert wire.request_of(iter(values)) == request


@settings(deadline=None, derandomize=True)
@given(st.lists(st.none() | st.sampled_from([b"0", b"1", b"2", b"999999999", b"-1"]) | st.binary()))
def test_values_that_are_no_extraction_are_refused(values: list[bytes | None]) -> None:
    with suppress(BadFrame):
        assert isinstance(wire.extraction_of(iter(values)), Extraction)


@settings(deadline=None, derandomize=True)
@given(st.binary())
def test_bytes_that_are_no_frame_are_refused(data: bytes) -> None:
    with pytest.raises((BadFrame, EOFError)):
        received(data)


@settings(deadline=None, derandomize=True)
@given(st.binary(), st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_lengths_that_lie_are_refused(rest: bytes, count: int, size: int) -> None:
    with suppress(BadFrame, EOFError):
        received(wire.HEAD.pack(TAG, count, size) + rest)


@pytest.mark.parametrize("lengths", [(4,), (2, 2), (wire.NOTHING - 1, 4), (wire.NOTHING,)])
def test_values_that_do_not_add_up_are_refused(lengths: tuple[int, ...]) -> None:
    listed = struct.pack(f"!{len(lengths)}Q", *lengths)
    with pytest.raises(BadFrame):
        received(wire.HEAD.pack(TAG, len(lengths), 3) + listed + b"abc")


@pytest.mark.parametrize(("count", "size"), [(1, MOST), (MOST // 8, 0), (wire.MOST_VALUES + 1, 0)])
def test_more_than_was_agreed_is_refused_before_it_is_read(count: int, size: int) -> None:
    with pytest.raises(TooLarge):
        received(wire.HEAD.pack(TAG, count, size))


def test_the_answer_to_another_request_is_refused() -> None:
    answer = wire.frame(["text"], b"another!")
    assert received(answer, tag=None) == [b"text"]
    with pytest.raises(BadFrame):
        received(answer)


def test_an_extraction_with_something_after_it_is_refused() -> None:
    values = received(wire.frame([*wire.extraction_values(Extraction.plain(None, "text")), b""], TAG))
    with pytest.raises(BadFrame):
        wire.extraction_of(iter(values))
