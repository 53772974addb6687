"""How bytes arrive: what a well-behaved site sees of Nexus, and what comes back from it."""

import logging
import threading
from collections.abc import Callable
from urllib.parse import quote

import pytest

from nexus import __version__
from nexus.errors import FetchHttp4xx, FetchWrongType
from nexus.fetch import Download, Fetcher, FetchLimits, NotModified, System, exchange, parse_host_ports
from nexus.fetch.guard import Guard
from tests.kit.servers.hostile_site import PAGE, Hostile, Talk, answer, chunked, redirect

LONG = b"<!doctype html><p>" + b"Some text that can be packed. " * 20_000


def got(found: Download | NotModified) -> Download:
    assert isinstance(found, Download)
    return found


def headers_of(request: bytes) -> dict[str, str]:
    lines = request.decode("latin-1").split("\r\n")[1:]
    return {name.lower(): value for name, _, value in (line.partition(": ") for line in lines if line)}


# the request


def test_the_request_names_nexus_and_nothing_else(
    hostile_site: Hostile, fetch: Callable[..., Download]
) -> None:
    fetch(hostile_site.on(answer()))
    sent = headers_of(hostile_site.requests[0])
    assert hostile_site.requests[0].startswith(b"GET / HTTP/1.1\r\n")
    assert sent["user-agent"] == f"Nexus/{__version__}"
    assert sent["host"] == hostile_site.pair
    assert sent["accept-encoding"] == "gzip, deflate, br"
    assert set(sent) == {"host", "user-agent", "accept", "accept-encoding", "connection"}


def test_path_and_query_are_sent_as_parsed_and_the_fragment_is_not(
    hostile_site: Hostile, fetch: Callable[..., Download]
) -> None:
    hostile_site.on(answer(), "/a%20b/%C3%A9?q=%7Bx%7D&q=%22y%22")
    found = got(fetch(hostile_site.url('/x/../a b/é?q=%7Bx%7D&q="y"#part')))
    assert found.url == hostile_site.url("/a%20b/%C3%A9?q=%7Bx%7D&q=%22y%22")


def test_the_environment_sets_neither_proxy_nor_login(
    hostile_site: Hostile, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    netrc = tmp_path_factory.mktemp("home") / ".netrc"
    netrc.write_text("default login user password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("HOME", str(netrc.parent))
    Fetcher(FetchLimits(allow=parse_host_ports([hostile_site.pair]))).get(hostile_site.on(answer()))
    assert "authorization" not in headers_of(hostile_site.requests[0])


def test_each_request_has_a_connection_of_its_own(
    hostile_site: Hostile, fetch: Callable[..., Download]
) -> None:
    def stay(talk: Talk) -> None:
        talk.say(answer(PAGE, "Connection: keep-alive"))
        talk.silence()

    url = hostile_site.on(stay)
    assert [got(fetch(url)).body for _ in range(3)] == [PAGE] * 3
    assert len(hostile_site.requests) == 3


def test_a_name_reaches_the_site_in_the_host_header(hostile_site: Hostile) -> None:
    def resolve(host: bytes, port: int, **_: object) -> list[object]:
        return [(2, 1, 6, "", ("127.0.0.1", port))] if host == b"site.test" else []

    fetcher = Fetcher(
        FetchLimits(allow=parse_host_ports([f"site.test:{hostile_site.port}"])), System(resolve=resolve)
    )
    hostile_site.on(answer())
    assert (
        got(fetcher.get(f"http://SITE.test:{hostile_site.port}/")).url
        == f"http://site.test:{hostile_site.port}/"
    )
    assert headers_of(hostile_site.requests[0])["host"] == f"site.test:{hostile_site.port}"


def test_an_ipv6_address_has_brackets_in_the_host_header() -> None:
    target = Guard(FetchLimits().ports, frozenset()).target("https://[2606:4700::1111]:8443/page")
    request = exchange._request(target, Fetcher()._headers(target))
    assert (b"Host", b"[2606:4700::1111]:8443") in request.headers
    assert request.url.host == b"2606:4700::1111"
    assert request.extensions == {"sni_hostname": "2606:4700::1111"}


def test_the_next_address_is_tried_when_one_is_dead(hostile_site: Hostile) -> None:
    answers = [(2, 1, 6, "", ("127.0.0.2", 0)), (2, 1, 6, "", ("127.0.0.1", 0))]
    system = System(resolve=lambda *_, **__: answers)
    fetcher = Fetcher(FetchLimits(allow=parse_host_ports([f"site.test:{hostile_site.port}"])), system)
    hostile_site.on(answer())
    assert got(fetcher.get(f"http://site.test:{hostile_site.port}/")).body == PAGE


def test_logs_hold_nothing_of_an_address(
    hostile_site: Hostile, fetch: Callable[..., Download], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    hostile_site.on(redirect("/b?token=secret"), "/a?token=secret")
    hostile_site.on(answer(b"", status="404 Not Found"), "/b?token=secret")
    with pytest.raises(FetchHttp4xx) as refused:
        fetch(hostile_site.url("/a?token=secret"))
    assert "secret" not in caplog.text + str(refused.value)


# the answer


def test_an_answer_comes_back_whole(hostile_site: Hostile, fetch: Callable[..., Download]) -> None:
    page = "<!doctype html><p>é".encode("latin-1")
    url = hostile_site.on(
        answer(
            page,
            'ETag: W/"one"',
            "Last-Modified: Wed, 21 Oct 2015 07:28:00 GMT",
            content_type="Text/HTML; Charset=ISO-8859-1",
        )
    )
    assert fetch(url) == Download(
        url=url,
        status=200,
        content_type="text/html",
        charset="iso-8859-1",
        body=page,
        etag='W/"one"',
        last_modified="Wed, 21 Oct 2015 07:28:00 GMT",
        content_type_header="Text/HTML; Charset=ISO-8859-1",
    )


@pytest.mark.parametrize(
    ("header", "content_type", "charset"),
    [
        ("text/html", "text/html", None),
        ("text/html;charset=utf-8", "text/html", "utf-8"),
        ('text/html; charset="UTF-8"', "text/html", "utf-8"),
        ("text/html; charset='utf-8'", "text/html", "utf-8"),
        ("text/html; boundary=x; charset=windows-1251", "text/html", "windows-1251"),
        ("text/html; charset=", "text/html", None),
        ("text/html; charset=<script>", "text/html", None),
        ("application/xhtml+xml; charset=utf-8", "application/xhtml+xml", "utf-8"),
        ("text/plain", "text/plain", None),
    ],
)
def test_type_and_charset_are_read_from_the_header(
    hostile_site: Hostile, fetch: Callable[..., Download], header: str, content_type: str, charset: str | None
) -> None:
    found = got(fetch(hostile_site.on(answer(content_type=header))))
    assert (found.content_type, found.charset) == (content_type, charset)


PDF = b"%PDF-1.7\n\x00\x01\x02" + bytes(2000)
UNTOLD = [None, "", "nonsense", "application/octet-stream", "*/*", "text/html text/html", "/;charset=utf-8"]


@pytest.mark.parametrize("said", UNTOLD)
@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (PDF, "application/pdf"),
        (b"\r\n" * 100 + PDF, "application/pdf"),
        (PAGE, "text/html"),
        (b"\xef\xbb\xbf  \n<HTML>", "text/html"),
        ("<html>".encode("utf-16"), "text/html"),
        (b"<!-- a remark --><p>x", "text/html"),
        (b"Just some words.", "text/plain"),
        (b"<pre", "text/plain"),
        ("Wörter".encode("latin-1") * 500, "text/plain"),
        ("Wörter".encode("utf-16"), "text/plain"),
    ],
)
def test_a_missing_content_type_is_detected_from_the_bytes(
    hostile_site: Hostile, fetch: Callable[..., Download], said: str | None, body: bytes, content_type: str
) -> None:
    found = got(fetch(hostile_site.on(answer(body, content_type=said))))
    assert (found.content_type, found.body) == (content_type, body)


@pytest.mark.parametrize("said", ["text/html", "text/plain", "application/pdf"])
def test_a_pdf_is_recognized_whatever_its_content_type(
    hostile_site: Hostile, fetch: Callable[..., Download], said: str
) -> None:
    assert got(fetch(hostile_site.on(answer(PDF, content_type=said)))).content_type == "application/pdf"


@pytest.mark.parametrize("said", UNTOLD)
@pytest.mark.parametrize("body", [b"", b"\x89PNG\r\n\x1a\n\0\0", b"PK\x03\x04", b"text\0text", b"\x7fELF\2"])
def test_bytes_of_an_unsupported_type_are_refused(
    hostile_site: Hostile, fetch: Callable[..., Download], said: str | None, body: bytes
) -> None:
    with pytest.raises(FetchWrongType):
        fetch(hostile_site.on(answer(body, content_type=said)))


def test_a_page_without_a_length_is_read_until_the_connection_closes(
    hostile_site: Hostile, fetch: Callable[..., Download]
) -> None:
    url = hostile_site.on(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + LONG)
    assert got(fetch(url)).body == LONG


def test_a_page_in_chunks_comes_back_whole(hostile_site: Hostile, fetch: Callable[..., Download]) -> None:
    url = hostile_site.on(chunked(LONG, 1000))
    assert got(fetch(url)).body == LONG


def test_interim_answers_are_ignored(hostile_site: Hostile, fetch: Callable[..., Download]) -> None:
    hints = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n"
    assert got(fetch(hostile_site.on(hints + answer()))).body == PAGE


# redirects


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(
    "location", ["/b/c", "b/c", "./b/c#part", "{site}/b/c", "//{pair}/b/c", "x/../b/c", "\\b\\c"]
)
def test_redirects_are_followed(
    hostile_site: Hostile, fetch: Callable[..., Download], status: int, location: str
) -> None:
    there = location.format(site=hostile_site.url("").rstrip("/"), pair=hostile_site.pair)
    hostile_site.on(answer(), "/b/c")
    found = got(fetch(hostile_site.on(redirect(there, f"{status} Moved"))))
    assert found.url == hostile_site.url("/b/c")
    assert hostile_site.asked() == ["/", "/b/c"]


@pytest.mark.parametrize("letter", ["é", "à", "Ѕ"])
def test_a_redirect_may_hold_letters_beyond_ascii(
    hostile_site: Hostile, fetch: Callable[..., Download], letter: str
) -> None:
    path = f"/{quote(letter)}?{quote(letter)}"
    hostile_site.on(answer(), path)
    location = f"/{letter}?{letter}".encode().decode("latin-1")
    assert got(fetch(hostile_site.on(redirect(location)))).url == hostile_site.url(path)


def test_a_redirect_may_be_encoded_in_latin_1(hostile_site: Hostile, fetch: Callable[..., Download]) -> None:
    hostile_site.on(answer(), "/%C3%A9")
    assert got(fetch(hostile_site.on(redirect("/é")))).url == hostile_site.url("/%C3%A9")


def test_five_redirects_are_followed(hostile_site: Hostile, fetch: Callable[..., Download]) -> None:
    for hop in range(5):
        hostile_site.on(redirect(f"/{hop + 1}"), f"/{hop}")
    hostile_site.on(answer(), "/5")
    assert got(fetch(hostile_site.url("/0"))).url == hostile_site.url("/5")


# conditional requests


def test_a_page_that_has_not_changed_is_not_sent_again(
    hostile_site: Hostile, fetch: Callable[..., Download | NotModified]
) -> None:
    url = hostile_site.on(answer(b"", status="304 Not Modified"), "/there")
    hostile_site.on(redirect("/there"))
    found = fetch(hostile_site.url(), etag='"one"', last_modified="Wed, 21 Oct 2015 07:28:00 GMT")
    assert found == NotModified(url)
    sent = headers_of(hostile_site.requests[-1])
    assert sent["if-none-match"] == '"one"'
    assert sent["if-modified-since"] == "Wed, 21 Oct 2015 07:28:00 GMT"


def test_a_page_that_has_changed_is_sent_again(hostile_site: Hostile, fetch: Callable[..., Download]) -> None:
    assert got(fetch(hostile_site.on(answer()), etag='"one"')).body == PAGE


@pytest.mark.parametrize(
    "validator", ["", " ", "a\r\nX-Evil: 1", "a\nb", "a\x00", "x" * 1000, "\u20ac", "a\x7f"]
)
def test_a_validator_that_can_not_be_sent_is_left_out(
    hostile_site: Hostile, fetch: Callable[..., Download], validator: str
) -> None:
    fetch(hostile_site.on(answer()), etag=validator, last_modified=validator)
    assert {"if-none-match", "if-modified-since", "x-evil"}.isdisjoint(headers_of(hostile_site.requests[0]))


def test_a_validator_is_sent_back_unchanged(hostile_site: Hostile, fetch: Callable[..., Download]) -> None:
    etag = got(fetch(hostile_site.on(answer(PAGE, 'ETag: "é"')))).etag
    fetch(hostile_site.url(), etag=etag)
    assert headers_of(hostile_site.requests[-1])["if-none-match"] == '"é"'


# threads


def test_many_threads_share_one_fetcher(hostile_site: Hostile) -> None:
    fetcher = Fetcher(FetchLimits(allow=parse_host_ports([hostile_site.pair]), delay=0))
    urls = [hostile_site.on(answer(b"<p>%d" % number), f"/{number}") for number in range(40)]
    bodies: dict[str, bytes] = {}

    def work(mine: list[str]) -> None:
        for url in mine:
            bodies[url] = got(fetcher.get(url)).body

    threads = [threading.Thread(target=work, args=(urls[start::8],)) for start in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert bodies == {url: b"<p>%d" % number for number, url in enumerate(urls)}
