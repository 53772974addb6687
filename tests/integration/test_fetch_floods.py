"""Sites that send too much, too slowly, or nonsense: each fetch ends within its limits, with the right code."""

import gzip
import os
import tracemalloc
import zlib
from itertools import count

import brotli
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nexus.errors import FetchBadAnswer, FetchFailed, FetchTimeout, FetchTooLarge, FetchWrongType
from nexus.fetch import Download, Fetcher, FetchLimits, System, parse_host_ports
from tests.kit.servers.hostile_site import PAGE, Act, Hostile, Talk, answer, hostile

#: Bodies of more than this are too large.
MOST = 100_000
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
GZIPPED = HEAD + b"Content-Encoding: gzip\r\n\r\n"
FILLER = b"x" * 4096


@pytest.fixture
def small_fetcher(hostile_site: Hostile) -> Fetcher:
    """With plenty of time: a fetch that fails has another reason."""
    return Fetcher(FetchLimits(allow=parse_host_ports([hostile_site.pair]), delay=0, most_bytes=MOST))


@pytest.fixture
def hasty_small_fetcher(hostile_site: Hostile) -> Fetcher:
    """With hardly any time."""
    return Fetcher(
        FetchLimits(allow=parse_host_ports([hostile_site.pair]), delay=0, most_bytes=MOST, seconds=0.2)
    )


def then_forever(head: bytes, flood: bytes) -> Act:
    def act(talk: Talk) -> None:
        talk.say(head)
        talk.forever(flood)

    return act


def then_drip(head: bytes, drop: bytes) -> Act:
    def act(talk: Talk) -> None:
        talk.say(head)
        talk.drip(drop)

    return act


def then_silence(head: bytes) -> Act:
    def act(talk: Talk) -> None:
        talk.say(head)
        talk.silence()

    return act


def then_reset(head: bytes) -> Act:
    def act(talk: Talk) -> None:
        talk.say(head)
        talk.reset()

    return act


def test_a_fetch_that_fails_leaves_the_next_alone(hostile_site: Hostile, small_fetcher: Fetcher) -> None:
    broken = hostile_site.on(then_reset(b""), "/broken")
    for _ in range(3):
        with pytest.raises(FetchFailed):
            small_fetcher.get(broken)
    good = small_fetcher.get(hostile_site.on(answer()))
    assert isinstance(good, Download)
    assert good.body == PAGE


# too much


def bomb(encoding: str, size: int) -> bytes:
    """A small body that stands for a very large one."""
    blank = bytes(1024 * 1024)
    if encoding == "br":
        packer = brotli.Compressor(quality=5)
        return b"".join(packer.process(blank) for _ in range(size // len(blank))) + packer.finish()
    engine = zlib.compressobj(1, wbits={"gzip": 31, "deflate": 15}[encoding])
    return b"".join(engine.compress(blank) for _ in range(size // len(blank))) + engine.flush()


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br"])
def test_a_decompression_bomb_is_stopped_within_little_memory(hostile_site: Hostile, encoding: str) -> None:
    url = hostile_site.on(answer(bomb(encoding, 100 * 1024 * 1024), f"Content-Encoding: {encoding}"))
    fetcher = Fetcher(FetchLimits(allow=parse_host_ports([hostile_site.pair]), delay=0))
    tracemalloc.start()
    try:
        with pytest.raises(FetchTooLarge):
            fetcher.get(url)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 30 * 1024 * 1024


def test_a_bomb_within_a_bomb_is_refused(hostile_site: Hostile, small_fetcher: Fetcher) -> None:
    twice = gzip.compress(bomb("gzip", 8 * 1024 * 1024))
    for headers in (["Content-Encoding: gzip, gzip"], ["Content-Encoding: gzip", "Content-Encoding: gzip"]):
        with pytest.raises(FetchBadAnswer):
            small_fetcher.get(hostile_site.on(answer(twice, *headers)))


TOO_LARGE: dict[str, Act | bytes] = {
    "endless chunks": then_forever(CHUNKED, b"1000\r\n" + FILLER + b"\r\n"),
    "endless body": then_forever(HEAD + b"\r\n", FILLER),
    "endless packed body that stands for nothing": then_forever(
        GZIPPED + gzip.compress(b"")[:10], b"\0\0\0\xff\xff" * 10_000
    ),
    "length above the limit": answer(b"x" * (MOST + 1)),
    "length far above the limit": HEAD + b"Content-Length: 9999999999999999999\r\n\r\n",
    "one byte above the limit": HEAD + b"\r\n" + b"x" * (MOST + 1),
    "one byte above the limit once unpacked": GZIPPED + gzip.compress(b"x" * (MOST + 1)),
    "noise that packing makes larger": answer(
        gzip.compress(os.urandom(MOST), compresslevel=0), "Content-Encoding: gzip"
    ),
}


@pytest.mark.parametrize("case", TOO_LARGE)
def test_a_page_that_is_too_large_is_not_read_to_its_end(
    hostile_site: Hostile, small_fetcher: Fetcher, case: str
) -> None:
    with pytest.raises(FetchTooLarge):
        small_fetcher.get(hostile_site.on(TOO_LARGE[case]))


@pytest.mark.parametrize(
    "whole",
    [
        answer(b"x" * MOST),
        HEAD + b"\r\n" + b"x" * MOST,
        CHUNKED + b"%x\r\n%b\r\n0\r\n\r\n" % (MOST, b"x" * MOST),
        answer(gzip.compress(b"x" * MOST), "Content-Encoding: gzip"),
    ],
)
def test_a_page_at_the_size_limit_is_read(
    hostile_site: Hostile, small_fetcher: Fetcher, whole: bytes
) -> None:
    found = small_fetcher.get(hostile_site.on(whole))
    assert isinstance(found, Download)
    assert found.body == b"x" * MOST


# wrong types

WRONG = [
    "application/json",
    "application/javascript",
    "application/rss+xml",
    "application/xml",
    "application/zip",
    "audio/mpeg",
    "font/woff2",
    "image/png",
    "image/svg+xml; charset=utf-8",
    "multipart/form-data; boundary=x",
    "text/css",
    "text/xml",
    "video/mp4",
    "APPLICATION/JSON",
]


@pytest.mark.parametrize("content_type", WRONG)
def test_a_wrong_content_type_is_refused_before_the_body_is_read(
    hostile_site: Hostile, small_fetcher: Fetcher, content_type: str
) -> None:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\n\r\n".encode()
    with pytest.raises(FetchWrongType, match=content_type.partition(";")[0].lower().replace("+", r"\+")):
        small_fetcher.get(hostile_site.on(then_silence(head)))


@pytest.mark.parametrize("content_type", ["image/png", "application/octet-stream"])
def test_an_unsupported_body_is_abandoned_after_its_first_bytes(
    hostile_site: Hostile, small_fetcher: Fetcher, content_type: str
) -> None:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\n\r\n".encode()
    with pytest.raises(FetchWrongType):
        small_fetcher.get(hostile_site.on(then_forever(head, b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")))


def test_markup_in_a_content_type_does_not_reach_the_message(
    hostile_site: Hostile, small_fetcher: Fetcher
) -> None:
    found = small_fetcher.get(hostile_site.on(answer(content_type="<b>/<script>")))
    assert isinstance(found, Download)
    assert found.content_type == "text/html"


# too slow

ENDLESS_HEADER = HEAD + b"X-Slow: "
SLOW: dict[str, Act] = {
    "silence": then_silence(b""),
    "silence within the status": then_silence(b"HTTP/1.1 2"),
    "silence within the headers": then_silence(HEAD),
    "silence within the body": then_silence(HEAD + b"Content-Length: 10\r\n\r\n<p>"),
    "silence within a chunk": then_silence(CHUNKED + b"a\r\n<p>"),
    "dripped status": then_drip(b"HTTP/1.1 200 ", b"O"),
    "dripped headers": then_drip(HEAD, b"X-A: b\r\n"),
    "dripped header": then_drip(ENDLESS_HEADER, b"x"),
    "dripped interim answers": then_drip(b"", b"HTTP/1.1 102 Processing\r\n\r\n"),
    "dripped body": then_drip(HEAD + b"\r\n", b"x"),
    "dripped body of a known length": then_drip(HEAD + b"Content-Length: 99999\r\n\r\n", b"x"),
    "dripped chunks": then_drip(CHUNKED, b"1\r\nx\r\n"),
    "dripped chunk size": then_drip(CHUNKED, b"0"),
    "dripped trailers": then_drip(CHUNKED + b"1\r\nx\r\n0\r\n", b"X-A: b\r\n"),
    "dripped packed body": then_drip(GZIPPED + gzip.compress(b"")[:10], b"\0\0\0\xff\xff"),
    "dripped body of no type": then_drip(b"HTTP/1.1 200 OK\r\n\r\n", b"x"),
}


@pytest.mark.parametrize("case", SLOW)
def test_a_slow_answer_ends_with_the_deadline(
    hostile_site: Hostile, hasty_small_fetcher: Fetcher, case: str
) -> None:
    with pytest.raises(FetchTimeout) as failed:
        hasty_small_fetcher.get(hostile_site.on(SLOW[case]))
    assert failed.value.transient


def test_slow_decoding_ends_with_the_deadline(hostile_site: Hostile) -> None:
    """A clock that advances a second per reading, and a small body that takes long to decode."""
    ticks = count()
    limits = FetchLimits(allow=parse_host_ports([hostile_site.pair]), most_bytes=1 << 40, seconds=100)
    url = hostile_site.on(answer(bomb("gzip", 16 * 1024 * 1024), "Content-Encoding: gzip"))
    with pytest.raises(FetchTimeout):
        Fetcher(limits, System(clock=lambda: float(next(ticks)))).get(url)


# nonsense

NONSENSE: dict[str, Act | bytes] = {
    "not HTTP": b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
    "no status": b"HTTP/1.1\r\n\r\n",
    "status of letters": b"HTTP/1.1 abc OK\r\n\r\n",
    "status too long": b"HTTP/1.1 2000 OK\r\n\r\n",
    "status too short": b"HTTP/1.1 20 OK\r\n\r\n",
    "status below all": b"HTTP/1.1 099 OK\r\n\r\n",
    "negative status": b"HTTP/1.1 -200 OK\r\n\r\n",
    "version of letters": b"HTTP/x.y 200 OK\r\n\r\n",
    "old HTTP": b"<html><p>A page as of 1991.\r\n\r\n",
    "TLS where there is none": b"\x15\x03\x01\x00\x02\x02\x28\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "NUL in a header": HEAD + b"X-A: a\0b\r\n\r\n",
    "header without a colon": HEAD + b"just words\r\n\r\n",
    "header without a name": HEAD + b": value\r\n\r\n",
    "space before the colon": HEAD + b"X-A : b\r\n\r\n",
    "folded first header": b"HTTP/1.1 200 OK\r\n X-A: b\r\n\r\n",
    "lengths that differ": HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
    "negative length": HEAD + b"Content-Length: -1\r\n\r\n",
    "length of letters": HEAD + b"Content-Length: ten\r\n\r\n",
    "length of many digits": HEAD + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n",
    "unknown transfer": HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n",
    "unknown framing": HEAD + b"Transfer-Encoding: identity\r\n\r\n",
    "chunk size of letters": CHUNKED + b"zz\r\nxx\r\n",
    "negative chunk size": CHUNKED + b"-1\r\nx\r\n",
    "chunk size with a sign": CHUNKED + b"+1\r\nx\r\n",
    "chunk size with a prefix": CHUNKED + b"0x1\r\nx\r\n",
    "chunk size of many digits": CHUNKED + b"f" * 5000 + b"\r\nx\r\n",
    "chunk longer than it says": CHUNKED + b"1\r\nxyz\r\n",
    "endless chunks of one byte": then_forever(CHUNKED, b"1\r\nx\r\n" * 1000),
    "endless chunk extensions": then_forever(CHUNKED, b"1;" + b"e" * 90_000 + b"\r\nx\r\n"),
    "endless chunk size": then_forever(CHUNKED, b"0" * 1000),
    "endless status": then_forever(b"HTTP/1.1 200 ", FILLER),
    "endless header": then_forever(ENDLESS_HEADER, FILLER),
    "endless headers": then_forever(HEAD, b"X-A: b\r\n" * 1000),
    "endless interim answers": then_forever(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100),
    "endless early hints": then_forever(b"", b"HTTP/1.1 103 Hints\r\n" + b"Link: </a>\r\n" * 500 + b"\r\n"),
    "endless trailers": then_forever(CHUNKED + b"1\r\nx\r\n0\r\n", b"X-A: b\r\n" * 1000),
    "encoding that was not offered": answer(PAGE, "Content-Encoding: zstd"),
    "encoding of old": answer(PAGE, "Content-Encoding: compress"),
    "encoding of nobody": answer(PAGE, "Content-Encoding: \xfc"),
    "endless members of gzip": then_forever(GZIPPED, gzip.compress(b"") * 100),
    "not gzip": answer(PAGE, "Content-Encoding: gzip"),
    "not deflate": answer(b"\xff\xff\xff\xff", "Content-Encoding: deflate"),
    "not brotli": answer(b"\xff" * 100, "Content-Encoding: br"),
    "gzip with a wrong sum": answer(gzip.compress(PAGE)[:-8] + b"\0" * 8, "Content-Encoding: gzip"),
    "noise behind brotli": answer(brotli.compress(PAGE) + b"noise", "Content-Encoding: br"),
}


@pytest.mark.parametrize("case", NONSENSE)
def test_a_malformed_answer_is_a_permanent_failure(
    hostile_site: Hostile, small_fetcher: Fetcher, case: str
) -> None:
    with pytest.raises(FetchBadAnswer) as failed:
        small_fetcher.get(hostile_site.on(NONSENSE[case]))
    assert not failed.value.transient


CUT_SHORT: dict[str, Act | bytes] = {
    "nothing": b"",
    "half a status": b"HTTP/1.1 20",
    "half of the headers": HEAD,
    "less than its length": HEAD + b"Content-Length: 100\r\n\r\n<p>half",
    "nothing of its length": HEAD + b"Content-Length: 100\r\n\r\n",
    "no last chunk": CHUNKED + b"3\r\n<p>\r\n",
    "half a chunk": CHUNKED + b"a\r\n<p>",
    "half a chunk size": CHUNKED + b"a",
    "half of gzip": GZIPPED + gzip.compress(PAGE)[:-20],
    "gzip without its sum": GZIPPED + gzip.compress(PAGE)[:-4],
    "one byte of deflate": answer(b"\x78", "Content-Encoding: deflate"),
    "half of deflate": answer(zlib.compress(PAGE)[:-20], "Content-Encoding: deflate"),
    "half of brotli": answer(brotli.compress(PAGE)[:-20], "Content-Encoding: br"),
    "reset": then_reset(b""),
    "reset within the headers": then_reset(HEAD),
    "reset within the body": then_reset(HEAD + b"Content-Length: 100\r\n\r\n<p>half"),
}


@pytest.mark.parametrize("case", CUT_SHORT)
def test_an_answer_that_breaks_off_is_a_transient_failure(
    hostile_site: Hostile, small_fetcher: Fetcher, case: str
) -> None:
    with pytest.raises(FetchFailed) as failed:
        small_fetcher.get(hostile_site.on(CUT_SHORT[case]))
    assert type(failed.value) is FetchFailed
    assert failed.value.transient


def test_bytes_after_the_stated_length_are_ignored(hostile_site: Hostile, small_fetcher: Fetcher) -> None:
    found = small_fetcher.get(hostile_site.on(HEAD + b"Content-Length: 3\r\n\r\n<p>and much more"))
    assert isinstance(found, Download)
    assert found.body == b"<p>"


def test_a_closed_port_is_a_transient_failure() -> None:
    with hostile() as gone:
        url, allow = gone.url(), parse_host_ports([gone.pair])
    with pytest.raises(FetchFailed) as failed:
        Fetcher(FetchLimits(allow=allow)).get(url)
    assert type(failed.value) is FetchFailed


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_answer_gives_a_page_or_a_fetch_error(
    hostile_site: Hostile, small_fetcher: Fetcher, data: st.DataObject
) -> None:
    """Good answers with a few bytes changed, cut out or put in."""
    good = data.draw(st.sampled_from(SEEDS))
    edits = st.tuples(st.integers(0, len(good)), st.integers(0, 8), st.binary(max_size=8))
    changed = bytearray(good)
    for start, length, new in data.draw(st.lists(edits, max_size=4)):
        changed[start : start + length] = new
    try:
        found = small_fetcher.get(hostile_site.on(bytes(changed), "/fuzz"))
    except FetchFailed:
        return
    assert isinstance(found, Download)


SEEDS = [
    answer(),
    answer(gzip.compress(PAGE), "Content-Encoding: gzip", 'ETag: "one"'),
    answer(brotli.compress(PAGE), "Content-Encoding: br"),
    answer(PAGE, "Retry-After: Thu, 01 Jan 2026 00:05:00 GMT", status="404 Later"),
    answer(b"", "Location: /fuzz?again", status="302 Found"),
    CHUNKED + b"%x\r\n%b\r\n0\r\nX-T: 1\r\n\r\n" % (len(PAGE), PAGE),
    b"HTTP/1.1 103 Hints\r\nLink: </a>\r\n\r\n" + answer(content_type=None),
]
