"""What worker, nursery and parsers say to each other, as MessagePack.

A parser may have been taken over by its document, so what it sends is decoded into these types and nothing else: by
position, with no unknown, missing or repeated field, and with a bound on every list that is checked before its items
are read. The length of a frame bounds the rest.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, TypeVar

import msgspec

from nexus.extract import Asset, Extraction, Facts, Fragment, Heading, Hints, TimeSpan
from nexus.extract.child.frames import BadFrame, FrameTooLarge
from nexus.extract.results import MANY, MOST_ITEMS, P, ParserResult

Size = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
_Line = str | None
_Times = Annotated[tuple[tuple[Size, Size, Size, Size], ...], MANY]
_SURROGATES = re.compile("[\ud800-\udfff]")
T = TypeVar("T")


class _Message(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    pass


# ── Worker to nursery ──


class Learn(_Message, tag=True):
    """Import a module, or a reader's module, from these folders. The answer is Learned."""

    name: str
    path: tuple[bytes, ...]


class Fork(_Message, tag=True):
    """Make a parser with this number; a socket to it follows. There is no answer: the parser itself says `READY`."""

    number: int


class Forget(_Message, tag=True):
    """Kill a parser that is no longer needed, if it is still alive. There is no answer."""

    number: int


class End(_Message, tag=True):
    """Kill a parser and say how it ended. The answer is Ended."""

    number: int


Order = Learn | Fork | Forget | End


class Learned(_Message):
    #: The name of the exception, if the import failed.
    error: str | None


class ParserEnded(_Message):
    #: As in subprocess: a signal if below zero.
    code: int
    #: The most memory it took for its document, in bytes.
    grown: Size


# ── Worker to parser ──

#: The body of a parser's first frame: it has entered its jail.
READY = b"ready"


class ReadRequest(_Message):
    """A document to read. Its bytes follow the frame, so that they need not be copied into it."""

    reader: str
    size: Size
    seconds: float
    memory_bytes: Size
    output_bytes: Size
    hints: Hints


class _Extraction(_Message):
    """An Extraction by position. The types that extractors use would be decoded by name, which allows repetitions."""

    title: _Line
    fragments: Annotated[tuple[tuple[str, _Line, _Times], ...], MANY]
    facts: tuple[_Line, _Line, _Line, _Line, _Line, _Line, _Line]
    outline: Annotated[tuple[tuple[str, Size, str], ...], MANY]
    assets: Annotated[tuple[tuple[str, str, bytes], ...], MANY]
    canonical_url: _Line


class ReadDone(_Message, tag=True):
    grown: Size
    #: Not decoded yet: that takes knowing what was asked for.
    found: msgspec.Raw

    def extraction(self) -> Extraction:
        """Raises BadFrame."""
        return _unpacked(_decoded(_extractions, self.found))

    def result(self, kind: type[P]) -> P:
        """Raises BadFrame."""
        return decode(kind, self.found)


class ReadRefused(_Message, tag=True):
    """What the reader raised: the code and message of a WorkError, or empty ones, and the name of the class."""

    grown: Size
    code: str
    message: str
    kind: str


_encoder = msgspec.msgpack.Encoder()
_orders: msgspec.msgpack.Decoder[Order] = msgspec.msgpack.Decoder(Order)
_answers: msgspec.msgpack.Decoder[ReadDone | ReadRefused] = msgspec.msgpack.Decoder(ReadDone | ReadRefused)
_extractions = msgspec.msgpack.Decoder(_Extraction)


def encode(message: object) -> bytes:
    """Half of a surrogate pair can't be written as UTF-8; each becomes one U+FFFD, so that offsets stay."""
    try:
        return _encoder.encode(message)
    except UnicodeEncodeError:
        return _encoder.encode(_writable(msgspec.to_builtins(message, builtin_types=(bytes,))))


def decode(kind: type[T], data: bytes | bytearray | msgspec.Raw) -> T:
    """Raises BadFrame if the bytes are anything but one message of this kind."""
    return _decoded(msgspec.msgpack.Decoder(kind), data)


def decode_order(data: bytearray) -> Order:
    return _decoded(_orders, data)


def decode_answer(data: bytearray) -> ReadDone | ReadRefused:
    return _decoded(_answers, data)


def encode_done(grown: int, found: Extraction | ParserResult, most: int) -> bytes:
    """Encode a reader's result. Raises FrameTooLarge, or ValidationError if it holds values of the wrong types."""
    if isinstance(found, ParserResult):
        packed = encode(found)
    else:
        _require_fit(found, most)
        packed = encode(msgspec.convert(_packed(found), _Extraction))
    data = encode(ReadDone(grown, msgspec.Raw(packed)))
    if len(data) > most:
        raise FrameTooLarge
    return data


def pack_extraction(found: Extraction) -> bytes:
    """Turn an extraction into bytes that `unpack_extraction` understands."""
    return encode(_packed(found))


def unpack_extraction(data: bytes) -> Extraction:
    """Raises BadFrame."""
    return _unpacked(_decoded(_extractions, data))


def _packed(found: Extraction) -> tuple[object, ...]:
    """The fields of `_Extraction`, not yet checked."""
    facts = found.facts
    return (
        found.title,
        tuple([(one.text, one.html, one.times) for one in found.fragments]),
        (
            facts.byline,
            facts.site,
            facts.published,
            facts.language,
            facts.lead_image,
            facts.excerpt,
            facts.source,
        ),
        tuple([(one.title, one.level, one.anchor) for one in found.outline]),
        tuple([(one.name, one.content_type, one.data) for one in found.assets]),
        found.canonical_url,
    )


def _unpacked(found: _Extraction) -> Extraction:
    return Extraction(
        found.title,
        tuple([_fragment(*one) for one in found.fragments]),
        Facts(*found.facts),
        tuple([Heading(*one) for one in found.outline]),
        tuple([Asset(*one) for one in found.assets]),
        found.canonical_url,
    )


def _fragment(text: str, html: str | None, times: tuple[tuple[int, int, int, int], ...]) -> Fragment:
    return Fragment(text, html, tuple([TimeSpan(*one) for one in times]))


def _require_fit(found: Extraction, most: int) -> None:
    """Before anything is encoded: a character takes at least one byte."""
    times = max((len(one.times) for one in found.fragments), default=0)
    if max(len(found.fragments), len(found.outline), len(found.assets), times) > MOST_ITEMS:
        raise FrameTooLarge
    texts = sum(len(one.text) + len(one.html or "") for one in found.fragments)
    if texts + sum(len(one.data) for one in found.assets) > most:
        raise FrameTooLarge


def _decoded(decoder: msgspec.msgpack.Decoder[T], data: bytes | bytearray | msgspec.Raw) -> T:
    try:
        return decoder.decode(data)
    except (ValueError, RecursionError) as error:  # ValueError: msgspec's own, and bytes that are not UTF-8
        raise BadFrame from error


def _writable(value: Any) -> Any:
    if isinstance(value, str):
        return _SURROGATES.sub("\ufffd", value)
    if isinstance(value, dict):
        return {key: _writable(one) for key, one in value.items()}
    return [_writable(one) for one in value] if isinstance(value, list | tuple) else value
