"""Compressed bodies: every encoding that is offered, and what servers get wrong."""

import gzip
import zlib
from collections.abc import Callable
from random import Random

import brotli
import pytest

from nexus.fetch import Download, Fetcher, FetchLimits, parse_host_ports
from tests.kit.servers.hostile_site import PAGE, Hostile, answer, chunked

LONG = b"<!doctype html><p>" + b"Some text that can be packed. " * 20_000


@pytest.fixture
def fetch_body(hostile_site: Hostile) -> Callable[[str], bytes]:
    """The body at an address."""
    fetcher = Fetcher(FetchLimits(allow=parse_host_ports([hostile_site.pair]), delay=0))

    def get(url: str) -> bytes:
        found = fetcher.get(url)
        assert isinstance(found, Download)
        return found.body

    return get


def raw_deflate(data: bytes) -> bytes:
    engine = zlib.compressobj(wbits=-15)
    return engine.compress(data) + engine.flush()


PACKED = {
    "identity": LONG,
    "gzip": gzip.compress(LONG),
    "GZip": gzip.compress(LONG),
    "x-gzip": gzip.compress(LONG),
    "deflate": zlib.compress(LONG),
    "br": brotli.compress(LONG),
}


@pytest.mark.parametrize("encoding", PACKED)
def test_a_compressed_body_is_decoded(
    hostile_site: Hostile, fetch_body: Callable[[str], bytes], encoding: str
) -> None:
    url = hostile_site.on(answer(PACKED[encoding], f"Content-Encoding: {encoding}"))
    assert fetch_body(url) == LONG


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("deflate", raw_deflate(LONG)),
        ("gzip", gzip.compress(LONG[:50_000]) + gzip.compress(LONG[50_000:])),
        ("gzip", gzip.compress(LONG) + b"\0" * 100),
        ("gzip", gzip.compress(LONG) + b"trailing noise"),
        ("deflate", zlib.compress(LONG) + b"trailing noise"),
    ],
)
def test_common_mistakes_in_encodings_are_tolerated(
    hostile_site: Hostile, fetch_body: Callable[[str], bytes], encoding: str, packed: bytes
) -> None:
    assert fetch_body(hostile_site.on(answer(packed, f"Content-Encoding: {encoding}"))) == LONG


def pack_brotli(data: bytes) -> bytes:
    packed: bytes = brotli.compress(data, quality=5, lgwin=16)
    return packed


PACKERS = [
    ("gzip", gzip.compress),
    ("deflate", zlib.compress),
    ("deflate", raw_deflate),
    ("br", pack_brotli),
]


@pytest.mark.parametrize(("encoding", "pack"), PACKERS)
def test_a_large_compressed_body_is_decoded_in_many_steps(
    hostile_site: Hostile, fetch_body: Callable[[str], bytes], encoding: str, pack: Callable[[bytes], bytes]
) -> None:
    body = bytes(3_000_000) + Random(1).randbytes(300_000)
    assert fetch_body(hostile_site.on(answer(pack(body), f"Content-Encoding: {encoding}"))) == body


@pytest.mark.parametrize(("encoding", "pack"), PACKERS)
@pytest.mark.parametrize("size", [65_535, 65_536, 65_537, 65_560, 131_072, 98_272, 1, 0])
def test_decoding_in_steps_loses_no_byte(
    hostile_site: Hostile,
    fetch_body: Callable[[str], bytes],
    encoding: str,
    pack: Callable[[bytes], bytes],
    size: int,
) -> None:
    body = b"\n" * size
    assert fetch_body(hostile_site.on(answer(pack(body), f"Content-Encoding: {encoding}"))) == body


@pytest.mark.parametrize(("encoding", "pack"), PACKERS)
@pytest.mark.parametrize("body", [PAGE, bytes(4 * 1024 * 1024)], ids=["short", "long"])
def test_a_body_that_arrives_byte_by_byte_is_decoded(
    hostile_site: Hostile,
    fetch_body: Callable[[str], bytes],
    encoding: str,
    pack: Callable[[bytes], bytes],
    body: bytes,
) -> None:
    assert fetch_body(hostile_site.on(chunked(pack(body), 1, f"Content-Encoding: {encoding}"))) == body


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br"])
def test_an_empty_body_needs_no_decoding(
    hostile_site: Hostile, fetch_body: Callable[[str], bytes], encoding: str
) -> None:
    assert fetch_body(hostile_site.on(answer(b"", f"Content-Encoding: {encoding}"))) == b""
