"""Questions to the APIs of sites: what is sent, to whom, and what no answer can make Nexus do."""

from collections.abc import Iterator

import pytest

from nexus.errors import FetchBadAnswer, FetchBlockedAddress, FetchRateLimited, FetchTooLarge
from nexus.fetch import MOST_POSTED, Download, Fetcher, FetchLimits, parse_host_ports
from tests.kit.servers.hostile_site import Hostile, Talk, answer, hostile, redirect

JSON = "application/json"
COOKIE = {"Cookie": "CONSENT=YES", "Accept-Language": "en-US"}


@pytest.fixture
def other_site() -> Iterator[Hostile]:
    with hostile() as server:
        yield server


def fetcher_for(*sites: Hostile, **limits: int) -> Fetcher:
    allow = parse_host_ports([site.pair for site in sites])
    return Fetcher(FetchLimits(allow=allow, delay=0, **limits))  # type: ignore[arg-type]


def hear_body(heard: list[bytes]) -> object:
    """Read the whole body before answering."""

    def act(talk: Talk) -> None:
        head, _, body = talk.request.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        while len(body) < length:
            body += talk.sock.recv(65536)
        heard.append(body)
        talk.say(answer(b'{"heard": true}', content_type=JSON))

    return act


def test_a_question_is_posted_whole_and_its_answer_may_be_of_any_type(
    hostile_site: Hostile, fetcher: Fetcher
) -> None:
    heard: list[bytes] = []
    url = hostile_site.on(hear_body(heard), "/api?key=k")  # type: ignore[arg-type]
    question = b'{"videoId": "x"}' + b" " * 50_000
    found = fetcher.post_data(url, question, JSON, headers={"Content-Type": JSON})
    assert (found.status, found.content_type_header, found.body) == (200, JSON, b'{"heard": true}')
    assert heard == [question]
    request = hostile_site.requests[0].lower()
    assert request.startswith(b"post /api?key=k http/1.1\r\n")
    assert request.count(b"\r\ncontent-length: 50016\r\n") == 1
    assert b"\r\ncontent-type: application/json\r\n" in request


def test_no_redirect_of_a_question_is_followed(hostile_site: Hostile, fetcher: Fetcher) -> None:
    for status in ("301 Moved", "303 See Other", "307 Temporary Redirect", "308 Permanent Redirect"):
        url = hostile_site.on(redirect("/there", status))
        with pytest.raises(FetchBadAnswer):
            fetcher.post_data(url, b"{}", JSON)
    assert set(hostile_site.asked()) == {"/"}


def test_a_question_goes_to_public_addresses_only(hostile_site: Hostile) -> None:
    hostile_site.on(answer())
    with pytest.raises(FetchBlockedAddress):
        Fetcher(FetchLimits(delay=0)).post_data(hostile_site.url(), b"{}", JSON)
    assert hostile_site.requests == []


def test_a_long_question_is_not_asked(hostile_site: Hostile, fetcher: Fetcher) -> None:
    with pytest.raises(ValueError, match="too many"):
        fetcher.post_data(hostile_site.on(answer()), b" " * (MOST_POSTED + 1), JSON)
    assert hostile_site.requests == []


def test_the_answer_to_a_question_is_limited_like_any_other(hostile_site: Hostile) -> None:
    url = hostile_site.on(answer(b"x" * 1001, content_type=JSON))
    with pytest.raises(FetchTooLarge):
        fetcher_for(hostile_site, most_bytes=1000).post_data(url, b"{}", JSON)


def test_a_site_that_gets_too_many_questions_is_left_alone(hostile_site: Hostile, fetcher: Fetcher) -> None:
    url = hostile_site.on(answer(b"", "Retry-After: 7", status="429 Too Many Requests"))
    with pytest.raises(FetchRateLimited) as failed:
        fetcher.post_data(url, b"{}", JSON)
    assert failed.value.retry_after == 7


def test_more_headers_are_sent_to_the_site_that_is_asked(hostile_site: Hostile, fetcher: Fetcher) -> None:
    hostile_site.on(redirect("/there"))
    hostile_site.on(answer(), "/there")
    found = fetcher.get_data(hostile_site.url(), "*/*", headers=COOKIE)
    assert isinstance(found, Download)
    assert found.url == hostile_site.url("/there")
    for request in hostile_site.requests:
        assert b"\r\nCookie: CONSENT=YES\r\n" in request
        assert b"\r\nAccept-Language: en-US\r\n" in request


def test_no_cookie_is_sent_to_another_site_not_even_on_the_way_back(
    hostile_site: Hostile, other_site: Hostile
) -> None:
    hostile_site.on(redirect(other_site.url("/consent")))
    other_site.on(redirect(hostile_site.url("/back")), "/consent")
    hostile_site.on(answer(), "/back")
    fetcher_for(hostile_site, other_site).get_data(hostile_site.url(), "*/*", headers=COOKIE)
    sent = [b"Cookie" in request for request in (*hostile_site.requests, *other_site.requests)]
    assert sent == [True, False, False]


@pytest.mark.parametrize("value", ["a\r\nHost: evil.example", "a\nb", "ä\u2028", "", " ", "x" * 600])
def test_a_header_that_cant_be_sent_is_left_out(hostile_site: Hostile, fetcher: Fetcher, value: str) -> None:
    fetcher.get_data(hostile_site.on(answer()), "*/*", headers={"Cookie": value})
    assert b"Cookie" not in hostile_site.requests[0]
