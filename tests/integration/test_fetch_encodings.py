"""What comes packed: every encoding that is offered, and what servers do to it."""

import gzip
import zlib
from collections.abc import Callable, Iterator
from random import Random

import brotli
import pytest

from nexus.fetch import Fetcher, Limits, Response, pairs
from tests.hostile_server import PAGE, Hostile, answer, chunked, hostile

LONG = b"<!doctype html><p>" + b"Some text that can be packed. " * 20_000


@pytest.fixture(scope="module")
def site() -> Iterator[Hostile]:
    with hostile() as server:
        yield server


@pytest.fixture
def fetch(site: Hostile) -> Callable[[str], bytes]:
    """The body at an address."""
    fetcher = Fetcher(Limits(allow=pairs([site.pair]), delay=0))

    def get(url: str) -> bytes:
        found = fetcher.get(url)
        assert isinstance(found, Response)
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
def test_what_was_packed_is_unpacked(site: Hostile, fetch: Callable[[str], bytes], encoding: str) -> None:
    url = site.on(answer(PACKED[encoding], f"Content-Encoding: {encoding}"))
    assert fetch(url) == LONG


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
def test_what_servers_do_to_encodings_is_borne(
    site: Hostile, fetch: Callable[[str], bytes], encoding: str, packed: bytes
) -> None:
    assert fetch(site.on(answer(packed, f"Content-Encoding: {encoding}"))) == LONG


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
def test_a_body_of_many_reads_and_many_steps_is_unpacked(
    site: Hostile, fetch: Callable[[str], bytes], encoding: str, pack: Callable[[bytes], bytes]
) -> None:
    body = bytes(3_000_000) + Random(1).randbytes(300_000)
    assert fetch(site.on(answer(pack(body), f"Content-Encoding: {encoding}"))) == body


@pytest.mark.parametrize(("encoding", "pack"), PACKERS)
@pytest.mark.parametrize("size", [65_535, 65_536, 65_537, 65_560, 131_072, 98_272, 1, 0])
def test_no_byte_is_lost_where_a_step_ends(
    site: Hostile,
    fetch: Callable[[str], bytes],
    encoding: str,
    pack: Callable[[bytes], bytes],
    size: int,
) -> None:
    body = b"\n" * size
    assert fetch(site.on(answer(pack(body), f"Content-Encoding: {encoding}"))) == body


@pytest.mark.parametrize(("encoding", "pack"), PACKERS)
@pytest.mark.parametrize("body", [PAGE, bytes(4 * 1024 * 1024)], ids=["short", "long"])
def test_an_encoding_that_comes_byte_by_byte_is_decoded(
    site: Hostile,
    fetch: Callable[[str], bytes],
    encoding: str,
    pack: Callable[[bytes], bytes],
    body: bytes,
) -> None:
    assert fetch(site.on(chunked(pack(body), 1, f"Content-Encoding: {encoding}"))) == body


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br"])
def test_an_empty_body_needs_no_decoding(site: Hostile, fetch: Callable[[str], bytes], encoding: str) -> None:
    assert fetch(site.on(answer(b"", f"Content-Encoding: {encoding}"))) == b""
