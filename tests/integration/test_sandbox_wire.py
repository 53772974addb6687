"""Whatever a parser sends becomes an extraction or an error, within the agreed memory."""

from __future__ import annotations

import socket
import struct
from contextlib import suppress
from typing import Annotated

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nexus.extract import Asset, Extraction, Facts, Fragment, Heading, Hints
from nexus.extract.child import frames, messages
from nexus.extract.child.frames import BadFrame, FrameTooLarge
from nexus.extract.child.messages import ReadDone, ReadRefused, ReadRequest
from nexus.extract.results import MANY, MOST_ITEMS, ParserResult

MOST = 100_000

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
#: Anything that MessagePack can say, most of it in the shape of an answer.
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | words | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(words, inner),
    max_leaves=20,
)
answers = st.tuples(st.sampled_from(["ReadDone", "ReadRefused"]), values, values, values, values) | values


def received(data: bytes) -> bytes:
    """What these bytes decode to if nothing follows them."""
    mine, theirs = socket.socketpair()
    with mine, theirs:
        theirs.sendall(data)
        theirs.close()
        return bytes(frames.receive_frame(mine, MOST))


def array(size: int) -> bytes:
    """The beginning of an array as MessagePack writes it."""
    return b"\xdd" + struct.pack("!I", size)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(extractions)
def test_an_extraction_survives_encoding_unchanged(found: Extraction) -> None:
    body = received(frames.frame(messages.encode_done(7, found, MOST)))
    answer = messages.decode_answer(bytearray(body))
    assert isinstance(answer, ReadDone)
    assert (answer.grown, answer.extraction()) == (7, found)
    assert messages.unpack_extraction(messages.pack_extraction(found)) == found


@settings(deadline=None, derandomize=True)
@given(maybe, maybe, st.floats(0, 1e6))
def test_a_request_survives_encoding_unchanged(url: str | None, filename: str | None, seconds: float) -> None:
    request = ReadRequest("a.b:c", 7, seconds, 2**40, 5, Hints(url, None, "utf-8", filename))
    assert messages.decode(ReadRequest, received(frames.frame(messages.encode(request)))) == request


@settings(deadline=None, derandomize=True)
@given(answers)
def test_messages_that_are_not_an_answer_are_refused(value: object) -> None:
    with suppress(BadFrame):
        answer = messages.decode_answer(bytearray(messages.encode(value)))
        assert isinstance(answer, ReadDone | ReadRefused)


@settings(deadline=None, derandomize=True)
@given(st.binary())
def test_bytes_that_are_not_an_answer_are_refused(data: bytes) -> None:
    with pytest.raises(BadFrame):
        messages.decode_answer(bytearray(data))


@settings(deadline=None, derandomize=True)
@given(st.binary())
def test_bytes_that_are_no_frame_are_refused(data: bytes) -> None:
    assume(len(data) < frames.HEAD.size or data[0])
    with pytest.raises((BadFrame, EOFError)):
        received(data)


@settings(deadline=None, derandomize=True)
@given(st.binary(), st.integers(1, 2**64 - 1))
def test_frames_with_wrong_lengths_are_refused(rest: bytes, excess: int) -> None:
    with pytest.raises((BadFrame, EOFError)):
        received(frames.HEAD.pack(min(len(rest) + excess, 2**64 - 1)) + rest)


def test_a_frame_beyond_the_size_limit_is_refused_before_it_is_read() -> None:
    with pytest.raises(FrameTooLarge):
        received(frames.HEAD.pack(MOST + 1))


def packed(fragments: bytes = b"\x90", outline: bytes = b"\x90") -> bytes:
    """An extraction on the wire that has nothing else."""
    return b"\x96\xc0" + fragments + b"\x97" + b"\xc0" * 7 + outline + b"\x90\xc0"


@pytest.mark.parametrize(
    "data",
    [
        packed(array(MOST_ITEMS + 1) + b"\x93\xa0\xc0\x90" * (MOST_ITEMS + 1)),
        packed(array(2**32 - 1)),
        packed(outline=b"\x91\x93\xa0\xff\xa0"),
        packed(outline=b"\x91\x93\xa0\xcf" + b"\xff" * 8 + b"\xa0"),
        b"\x96\xdb\xff\xff\xff\xff",
        b"\x96" + b"\x91" * 10_000,
    ],
    ids=[
        "too many fragments",
        "fragments that are not there",
        "a level below zero",
        "a level no database holds",
        "a string that is not there",
        "an abyss",
    ],
)
def test_a_list_or_number_out_of_bounds_is_refused(data: bytes) -> None:
    with pytest.raises(BadFrame):
        messages.unpack_extraction(data)


def test_lists_and_numbers_within_bounds_are_read() -> None:
    fragments = array(MOST_ITEMS) + b"\x93\xa0\xc0\x90" * MOST_ITEMS
    found = messages.unpack_extraction(packed(fragments, b"\x91\x93\xa0\x01\xa0"))
    assert (len(found.fragments), len(found.outline)) == (MOST_ITEMS, 1)


class Listed(ParserResult, frozen=True):
    words: Annotated[tuple[str, ...], MANY]


def test_a_result_that_is_no_text_survives_encoding_unchanged() -> None:
    words = Listed(("one", "half \ufffd"))
    answer = messages.decode_answer(bytearray(messages.encode_done(7, Listed(("one", "half \ud800")), MOST)))
    assert isinstance(answer, ReadDone)
    assert (answer.grown, answer.result(Listed)) == (7, words)


@pytest.mark.parametrize(
    "data",
    [
        b"\x91" + array(MOST_ITEMS + 1) + b"\xa0" * (MOST_ITEMS + 1),
        b"\x92\x90\x90",
        b"\x90",
        b"\x91\x91\x01",
        b"\x81\xa5words\x90",
    ],
    ids=["too many", "a field too many", "a field missing", "a number for a word", "fields by name"],
)
def test_a_result_of_another_shape_is_refused(data: bytes) -> None:
    with pytest.raises(BadFrame):
        ReadDone(0, msgspec.Raw(data)).result(Listed)


def test_more_items_than_the_worker_takes_are_not_sent() -> None:
    with pytest.raises(FrameTooLarge):
        messages.encode_done(0, Extraction.plain(None, *[""] * (MOST_ITEMS + 1)), 2**40)


@pytest.mark.parametrize("extra", [b"\xc0", b"\x00", b"x"])
def test_an_extraction_with_trailing_bytes_is_refused(extra: bytes) -> None:
    packed = messages.pack_extraction(Extraction.plain(None, "text"))
    with pytest.raises(BadFrame):
        messages.unpack_extraction(packed + extra)
    assert packed[0] == 0x96, "an array of six"
    with pytest.raises(BadFrame):
        messages.unpack_extraction(b"\x97" + packed[1:] + extra)
