"""Sites that lead astray: by redirects, and by names that answer one thing and mean another."""

import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from nexus.errors import (
    FetchBadAnswer,
    FetchBlockedAddress,
    FetchFailed,
    FetchRedirects,
    FetchTimeout,
    FetchUnknownHost,
)
from nexus.fetch import Fetcher, Limits, Response, System, pairs
from nexus.fetch.addresses import Address
from nexus.fetch.deadline import Deadline
from nexus.fetch.limits import connect
from nexus.fetch.names import Lookups
from tests.hostile_server import PAGE, Hostile, Talk, answer, hostile, redirect


@pytest.fixture(scope="module")
def site() -> Iterator[Hostile]:
    with hostile() as server:
        yield server


@pytest.fixture
def fetcher(site: Hostile) -> Fetcher:
    """With time enough: what ends here ends for another reason."""
    return Fetcher(Limits(allow=pairs([site.pair]), delay=0))


@pytest.fixture
def hasty(site: Hostile) -> Fetcher:
    """With hardly any time."""
    return Fetcher(Limits(allow=pairs([site.pair]), delay=0, seconds=0.2))


# redirects

PRIVATE = [
    "http://127.0.0.1/",
    "http://127.0.0.1:{other}/",
    "http://localhost:{port}/",
    "http://0.0.0.0:{port}/",
    "http://0:{port}/",
    "http://0x7f000001/",
    "http://2130706433:8080/",
    "http://10.0.0.1/",
    "http://172.16.0.1:8080/",
    "http://192.168.1.1/",
    "http://169.254.169.254/latest/meta-data/",
    "http://[::1]/",
    "http://[::1]:{port}/",
    "http://[::ffff:127.0.0.1]:{port}/",
    "http://[fd00:ec2::254]/",
    "http://[64:ff9b::7f00:1]/",
    "https://127.0.0.1/",
    "//10.0.0.1/",
    "\\\\10.0.0.1\\",
    "http://user@{pair}/",
    "http://user:password@{pair}/",
    "http://8.8.8.8:22/",
    "file:///etc/passwd",
    "ftp://8.8.8.8/",
    "gopher://8.8.8.8/",
    "data:text/html,hello",
    "javascript:alert(1)",
    "about:blank",
]


@pytest.mark.parametrize("location", PRIVATE)
def test_a_redirect_into_private_space_is_not_followed(
    site: Hostile, fetcher: Fetcher, location: str
) -> None:
    there = location.format(port=site.port, other=site.port ^ 1, pair=site.pair)
    site.on(redirect("/second"), "/first")
    site.on(redirect(there), "/second")
    before = len(site.requests)
    with pytest.raises(FetchBlockedAddress):
        fetcher.get(site.url("/first"))
    assert site.asked()[before:] == ["/first", "/second"]


@pytest.mark.parametrize(
    "location",
    [
        "http://",
        "http://[::1",
        "http://a b/",
        "https://:443/",
        "http://1.2.3.4.5/",
        "http://a:99999/",
        "/" + "x" * 9000,
    ],
)
def test_a_redirect_to_nowhere_makes_no_sense(site: Hostile, fetcher: Fetcher, location: str) -> None:
    with pytest.raises(FetchBadAnswer):
        fetcher.get(site.on(redirect(location)))


@pytest.mark.parametrize(
    "head",
    [
        answer(b"", status="302 Found"),
        answer(b"", "Location: /a", "Location: /b", status="302 Found"),
        answer(b"", status="304 Not Modified"),
        answer(b"", status="300 Multiple Choices"),
        answer(b"", status="305 Use Proxy"),
        answer(PAGE, "Content-Range: bytes 0-1/2", status="206 Partial Content"),
        answer(PAGE, status="600 What"),
        answer(PAGE, status="999 What"),
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n",
    ],
)
def test_a_status_that_was_not_asked_for_makes_no_sense(site: Hostile, fetcher: Fetcher, head: bytes) -> None:
    with pytest.raises(FetchBadAnswer):
        fetcher.get(site.on(head))


def test_a_redirect_loop_ends_after_five(site: Hostile, fetcher: Fetcher) -> None:
    site.on(redirect("/there"), "/here")
    site.on(redirect("/here"), "/there")
    before = len(site.requests)
    with pytest.raises(FetchRedirects):
        fetcher.get(site.url("/here"))
    assert len(site.requests) - before == 6


def test_a_redirect_to_itself_ends(site: Hostile, fetcher: Fetcher) -> None:
    with pytest.raises(FetchRedirects):
        fetcher.get(site.on(redirect("")))


def test_slow_redirects_share_one_deadline(site: Hostile, hasty: Fetcher) -> None:
    def slow(talk: Talk) -> None:
        talk.over.wait(0.1)
        talk.say(redirect("/"))

    with pytest.raises(FetchTimeout):
        hasty.get(site.on(slow))


def test_the_body_of_a_redirect_is_not_read(site: Hostile, fetcher: Fetcher) -> None:
    def endless(talk: Talk) -> None:
        talk.say(b"HTTP/1.1 302 Found\r\nLocation: /end\r\n\r\n")
        talk.forever(b"x" * 65536)

    site.on(answer(), "/end")
    assert isinstance(fetcher.get(site.on(endless)), Response)


# names


def resolving(*answers: list[str]) -> Callable[..., list[object]]:
    """A name that answers otherwise each time it is asked; the last answer stays."""
    left = list(answers)

    def resolve(host: bytes, port: int, **_: object) -> list[object]:
        addresses = left.pop(0) if len(left) > 1 else left[0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses]

    return resolve


def to_site(site: Hostile, dialled: list[str]) -> Callable[[Address, int, float], socket.socket]:
    """Whatever is dialled, the site answers."""

    def dial(address: Address, port: int, seconds: float) -> socket.socket:
        dialled.append(str(address))
        return socket.create_connection(("127.0.0.1", site.port), seconds)

    return dial


def test_a_peer_that_is_not_the_checked_address_gets_no_request(site: Hostile) -> None:
    dialled: list[str] = []
    system = System(resolve=resolving(["93.184.215.14"]), connect=to_site(site, dialled))
    before = len(site.requests)
    with pytest.raises(FetchBlockedAddress):
        Fetcher(system=system).get("http://site.test/")
    assert dialled == ["93.184.215.14"]
    assert len(site.requests) == before


def test_a_peer_at_another_port_gets_no_request(site: Hostile) -> None:
    dialled: list[str] = []
    system = System(resolve=resolving(["127.0.0.1"]), connect=to_site(site, dialled))
    with pytest.raises(FetchBlockedAddress):
        Fetcher(Limits(allow=pairs(["site.test:80"])), system).get("http://site.test/")
    assert dialled == ["127.0.0.1"]


def test_a_name_that_turns_private_between_hops_is_refused(site: Hostile) -> None:
    """Allowed on the port of the first hop, and on no other."""
    site.on(redirect("http://site.test:8080/"))
    system = System(resolve=resolving(["127.0.0.1"]))
    with pytest.raises(FetchBlockedAddress):
        Fetcher(Limits(allow=pairs([f"site.test:{site.port}"]), delay=0), system).get(
            f"http://site.test:{site.port}/"
        )


def test_a_name_is_asked_anew_at_each_hop_and_once_at_each(site: Hostile) -> None:
    asked: list[bytes] = []

    def resolve(host: bytes, port: int, **_: object) -> list[object]:
        asked.append(host)
        return resolving(["127.0.0.1"])(host, port)

    site.on(redirect("/b"), "/a")
    site.on(answer(), "/b")
    limits = Limits(allow=pairs([f"site.test:{site.port}"]), delay=0)
    Fetcher(limits, System(resolve=resolve)).get(f"http://site.test:{site.port}/a")
    assert asked == [b"site.test", b"site.test"]


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), FetchUnknownHost),
        (socket.gaierror(socket.EAI_FAIL, "Non-recoverable failure"), FetchUnknownHost),
        (socket.gaierror(socket.EAI_AGAIN, "Temporary failure"), FetchFailed),
        (UnicodeError("label too long"), FetchUnknownHost),
        (OSError("no sockets left"), FetchUnknownHost),
        (TimeoutError("too slow"), FetchTimeout),
    ],
)
def test_a_lookup_that_fails_has_its_code(failure: Exception, error: type[FetchFailed]) -> None:
    def resolve(*_: object, **__: object) -> list[object]:
        raise failure

    with pytest.raises(FetchFailed) as failed:
        Fetcher(system=System(resolve=resolve)).get("http://site.test/")
    assert type(failed.value) is error
    assert failed.value.transient


def test_a_name_that_no_dns_can_hold_is_unknown() -> None:
    for host in ("a" * 64 + ".test", "a..test", ".test"):
        with pytest.raises(FetchUnknownHost):
            Fetcher().get(f"http://{host}/")


def test_a_lookup_that_hangs_does_not_hold_the_fetch() -> None:
    over = threading.Event()

    def hang(*_: object, **__: object) -> list[object]:
        over.wait()
        return []

    try:
        with pytest.raises(FetchTimeout):
            Fetcher(Limits(seconds=0.2), System(resolve=hang)).get("http://site.test/")
    finally:
        over.set()


def test_lookups_that_hang_are_bounded_in_number() -> None:
    over, begun, asked = threading.Event(), threading.Semaphore(0), []

    def hang(host: bytes, *_: object, **__: object) -> list[object]:
        asked.append(host)
        begun.release()
        over.wait()
        return [(2, 1, 6, "", ("93.184.215.14", 80))]

    lookups = Lookups(hang, most=2)
    try:
        for number in range(5):
            with pytest.raises(FetchTimeout):
                lookups.addresses(f"{number}.test", 80, Deadline(0.05, 0, time.monotonic))
        assert begun.acquire(timeout=30)
        assert begun.acquire(timeout=30)
    finally:
        over.set()
    # Those that were left behind give their places back.
    assert lookups.addresses("5.test", 80, Deadline(30, 0, time.monotonic))
    assert sorted(asked) == [b"0.test", b"1.test", b"5.test"]


def test_an_address_that_hangs_leaves_time_for_the_next(site: Hostile) -> None:
    shares: list[float] = []

    def dial(address: Address, port: int, seconds: float) -> socket.socket:
        shares.append(seconds)
        if len(shares) < 3:
            raise TimeoutError
        return connect(address, port, seconds)

    system = System(
        resolve=resolving(["127.0.0.3", "127.0.0.2", "127.0.0.1"]), connect=dial, clock=lambda: 0.0
    )
    limits = Limits(allow=pairs([f"site.test:{site.port}"]), seconds=12)
    site.on(answer())
    Fetcher(limits, system).get(f"http://site.test:{site.port}/")
    assert shares == [4.0, 5.0, 12.0]
