"""Answers that are passed on as they arrive: parts of files, and sites that lie about them."""

from __future__ import annotations

import pytest

from nexus.errors import (
    FetchBadAnswer,
    FetchBlockedAddress,
    FetchFailed,
    FetchHttp4xx,
    FetchRedirects,
    FetchTimeout,
    FetchTooLarge,
)
from nexus.fetch import ByteRange, Fetcher, FetchLimits, Stream, parse_host_ports
from nexus.fetch.ranges import Part, parse_part, parse_range
from tests.kit.servers.hostile_site import Hostile, Talk, answer, chunked, redirect

SOUND = bytes(range(256)) * 64
MOST = 1024 * 1024


def partial(body: bytes, content_range: str, *headers: str) -> bytes:
    return answer(
        body,
        f"Content-Range: {content_range}",
        *headers,
        status="206 Partial Content",
        content_type="audio/mpeg",
    )


def heard(
    fetcher: Fetcher, url: str, part: ByteRange | None = None, most: int = MOST
) -> tuple[Stream, bytes]:
    with fetcher.stream(url, "audio/*", most_bytes=most, part=part) as stream:
        return stream, b"".join(stream.chunks)


def sent(site: Hostile) -> str:
    return site.requests[-1].decode("latin-1").lower()


def test_a_whole_file_is_passed_on_as_it_is(hostile_site: Hostile, fetcher: Fetcher) -> None:
    url = hostile_site.on(answer(SOUND, "Accept-Ranges: bytes", content_type="Audio/MPEG; x=y"))
    stream, body = heard(fetcher, url)
    assert body == SOUND
    assert (stream.content_type, stream.part, stream.length) == ("audio/mpeg", None, len(SOUND))
    assert stream.takes_ranges
    assert "range:" not in sent(hostile_site)
    assert "accept-encoding: identity" in sent(hostile_site)


def test_a_part_is_asked_for_and_passed_on(hostile_site: Hostile, fetcher: Fetcher) -> None:
    url = hostile_site.on(partial(SOUND[10:20], f"bytes 10-19/{len(SOUND)}"))
    stream, body = heard(fetcher, url, ByteRange(10, 19))
    assert body == SOUND[10:20]
    assert (stream.part, stream.length, stream.size) == (Part(10, 19, len(SOUND)), 10, len(SOUND))
    assert "range: bytes=10-19\r\n" in sent(hostile_site)


def test_a_site_without_parts_answers_with_all(hostile_site: Hostile, fetcher: Fetcher) -> None:
    stream, body = heard(
        fetcher, hostile_site.on(answer(SOUND, content_type="audio/ogg")), ByteRange(10, None)
    )
    assert (body, stream.part) == (SOUND, None)


def test_a_part_that_does_not_exist_is_said_to_be_out_of_range(
    hostile_site: Hostile, fetcher: Fetcher
) -> None:
    refusal = answer(b"", "Content-Range: bytes */100", status="416 Range Not Satisfiable")
    stream, body = heard(fetcher, hostile_site.on(refusal), ByteRange(500, None))
    assert stream.is_out_of_range
    assert (stream.size, body) == (100, b"")
    with pytest.raises(FetchBadAnswer):
        heard(fetcher, hostile_site.url())


def test_the_end_of_a_file_can_be_asked_for(hostile_site: Hostile, fetcher: Fetcher) -> None:
    url = hostile_site.on(partial(SOUND[-8:], f"bytes {len(SOUND) - 8}-{len(SOUND) - 1}/{len(SOUND)}"))
    assert heard(fetcher, url, ByteRange(None, 8))[1] == SOUND[-8:]
    assert "range: bytes=-8\r\n" in sent(hostile_site)


@pytest.mark.parametrize(
    "said",
    [
        "bytes 0-9/100",
        "bytes 11-20/100",
        "bytes 10-30/100",
        "bytes 10-19/15",
        "bytes 19-10/100",
        "bytes 10-18/100",
        "bytes */100",
        "octets 10-19/100",
        "bytes 10-19",
        "nonsense",
        "",
    ],
)
def test_a_part_that_was_not_asked_for_is_refused(hostile_site: Hostile, fetcher: Fetcher, said: str) -> None:
    url = hostile_site.on(partial(SOUND[10:20], said))
    with pytest.raises(FetchBadAnswer):
        heard(fetcher, url, ByteRange(10, 19))


def test_a_part_is_refused_if_none_was_asked_for(hostile_site: Hostile, fetcher: Fetcher) -> None:
    with pytest.raises(FetchBadAnswer):
        heard(fetcher, hostile_site.on(partial(SOUND, f"bytes 0-{len(SOUND) - 1}/{len(SOUND)}")))


def test_packed_bytes_are_refused(hostile_site: Hostile, fetcher: Fetcher) -> None:
    with pytest.raises(FetchBadAnswer):
        heard(fetcher, hostile_site.on(answer(SOUND, "Content-Encoding: gzip")))


def test_an_answer_that_never_ends_is_cut_off(hostile_site: Hostile, fetcher: Fetcher) -> None:
    def endless(talk: Talk) -> None:
        talk.say(b"HTTP/1.1 200 OK\r\nContent-Type: audio/mpeg\r\n\r\n")
        talk.forever(b"x" * 4096)

    with pytest.raises(FetchTooLarge):
        heard(fetcher, hostile_site.on(endless), most=100_000)


def test_a_file_that_says_it_is_too_large_is_refused_at_once(hostile_site: Hostile, fetcher: Fetcher) -> None:
    url = hostile_site.on(
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\nContent-Type: audio/mpeg\r\n\r\n"
    )
    with pytest.raises(FetchTooLarge):
        heard(fetcher, url)


def test_an_answer_that_ends_before_its_stated_length_fails(hostile_site: Hostile, fetcher: Fetcher) -> None:
    url = hostile_site.on(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\nContent-Type: audio/mpeg\r\n\r\nshort")
    with pytest.raises(FetchFailed):
        heard(fetcher, url)


def test_a_part_in_chunks_holds_no_more_than_it_says(hostile_site: Hostile, fetcher: Fetcher) -> None:
    head = b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-9/100\r\n"
    body = chunked(SOUND, 50).partition(b"\r\n")[2]
    with pytest.raises(FetchBadAnswer):
        heard(fetcher, hostile_site.on(head + body), ByteRange(0, 9))


def test_a_site_that_stops_sending_times_out(hostile_site: Hostile, hasty_fetcher: Fetcher) -> None:
    def stalls(talk: Talk) -> None:
        talk.say(b"HTTP/1.1 200 OK\r\nContent-Type: audio/mpeg\r\n\r\nbeginning")
        talk.silence()

    with pytest.raises(FetchTimeout):
        heard(hasty_fetcher, hostile_site.on(stalls))


def test_redirects_are_followed_and_checked(hostile_site: Hostile, fetcher: Fetcher) -> None:
    hostile_site.on(answer(SOUND, content_type="audio/mpeg"), "/there")
    stream, body = heard(fetcher, hostile_site.on(redirect("/there"), "/here"), ByteRange(0, None))
    assert (stream.url, body) == (hostile_site.url("/there"), SOUND)
    with pytest.raises(FetchBlockedAddress):
        heard(fetcher, hostile_site.on(redirect("http://169.254.169.254/latest/"), "/inside"))
    with pytest.raises(FetchRedirects):
        heard(fetcher, hostile_site.on(redirect("/loop"), "/loop"))


def test_a_refusal_keeps_its_status(hostile_site: Hostile, fetcher: Fetcher) -> None:
    with pytest.raises(FetchHttp4xx) as failed:
        heard(fetcher, hostile_site.on(answer(b"gone", status="410 Gone")))
    assert failed.value.http_status == 410


def test_listening_keeps_no_place_of_the_site(hostile_site: Hostile) -> None:
    one_at_a_time = Fetcher(
        FetchLimits(allow=parse_host_ports([hostile_site.pair]), delay=0, at_once=1, wait_seconds=0)
    )

    def slow(talk: Talk) -> None:
        talk.say(b"HTTP/1.1 200 OK\r\nContent-Type: audio/mpeg\r\n\r\nbeginning")
        talk.silence()

    url = hostile_site.on(slow, "/slow")
    hostile_site.on(answer(), "/page")
    with one_at_a_time.stream(url, "audio/*", most_bytes=MOST) as stream:
        assert next(stream.chunks) == b"beginning"
        one_at_a_time.get(hostile_site.url("/page"))


@pytest.mark.parametrize(
    ("header", "found"),
    [
        ("bytes=0-", (0, None)),
        ("bytes=5-9", (5, 9)),
        ("bytes=-9", (None, 9)),
        (" Bytes = 1 - 2 ", (1, 2)),
        ("bytes=9-5", None),
        ("bytes=-", None),
        ("bytes=0-1,4-5", None),
        ("items=0-1", None),
        ("bytes=0-99999999999999999999", None),
        ("bytes=٠-", None),
        ("", None),
        (None, None),
    ],
)
def test_only_one_sensible_range_counts(header: str | None, found: tuple[int, int] | None) -> None:
    assert parse_range(header) == found


def test_ranges_are_cut_to_the_size_of_a_file() -> None:
    assert ByteRange(0, None).within(10) == (0, 9, 10)
    assert ByteRange(5, 99).within(10) == (5, 9, 10)
    assert ByteRange(None, 4).within(10) == (6, 9, 10)
    assert ByteRange(None, 99).within(10) == (0, 9, 10)
    assert ByteRange(10, None).within(10) is None
    assert ByteRange(None, 0).within(10) is None
    assert ByteRange(0, None).within(0) is None
    assert parse_part("bytes 0-9/*") == (0, 9, None)
