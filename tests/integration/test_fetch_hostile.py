"""Sites that mislead: by redirects, and by names that resolve to other addresses than they should."""

import socket
import threading
import time
from collections.abc import Callable

import pytest

from nexus.errors import (
    FetchBadAnswer,
    FetchBlockedAddress,
    FetchFailed,
    FetchRedirects,
    FetchTimeout,
    FetchUnknownHost,
)
from nexus.fetch import Download, Fetcher, FetchLimits, System, parse_host_ports
from nexus.fetch.addresses import Address
from nexus.fetch.limits import FetchDeadline, open_socket
from nexus.fetch.lookups import Lookups
from tests.kit.servers.hostile_site import PAGE, Hostile, Talk, answer, redirect

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
    hostile_site: Hostile, fetcher: Fetcher, location: str
) -> None:
    there = location.format(port=hostile_site.port, other=hostile_site.port ^ 1, pair=hostile_site.pair)
    hostile_site.on(redirect("/second"), "/first")
    hostile_site.on(redirect(there), "/second")
    before = len(hostile_site.requests)
    with pytest.raises(FetchBlockedAddress):
        fetcher.get(hostile_site.url("/first"))
    assert hostile_site.asked()[before:] == ["/first", "/second"]


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
def test_a_redirect_without_a_target_is_a_bad_answer(
    hostile_site: Hostile, fetcher: Fetcher, location: str
) -> None:
    with pytest.raises(FetchBadAnswer):
        fetcher.get(hostile_site.on(redirect(location)))


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
def test_a_status_that_was_not_asked_for_is_a_bad_answer(
    hostile_site: Hostile, fetcher: Fetcher, head: bytes
) -> None:
    with pytest.raises(FetchBadAnswer):
        fetcher.get(hostile_site.on(head))


def test_a_redirect_loop_ends_after_five(hostile_site: Hostile, fetcher: Fetcher) -> None:
    hostile_site.on(redirect("/there"), "/here")
    hostile_site.on(redirect("/here"), "/there")
    before = len(hostile_site.requests)
    with pytest.raises(FetchRedirects):
        fetcher.get(hostile_site.url("/here"))
    assert len(hostile_site.requests) - before == 6


def test_a_redirect_to_itself_ends(hostile_site: Hostile, fetcher: Fetcher) -> None:
    with pytest.raises(FetchRedirects):
        fetcher.get(hostile_site.on(redirect("")))


def test_slow_redirects_share_one_deadline(hostile_site: Hostile, hasty_fetcher: Fetcher) -> None:
    def slow(talk: Talk) -> None:
        talk.over.wait(0.1)
        talk.say(redirect("/"))

    with pytest.raises(FetchTimeout):
        hasty_fetcher.get(hostile_site.on(slow))


def test_the_body_of_a_redirect_is_not_read(hostile_site: Hostile, fetcher: Fetcher) -> None:
    def endless(talk: Talk) -> None:
        talk.say(b"HTTP/1.1 302 Found\r\nLocation: /end\r\n\r\n")
        talk.forever(b"x" * 65536)

    hostile_site.on(answer(), "/end")
    assert isinstance(fetcher.get(hostile_site.on(endless)), Download)


# names


def resolving(*answers: list[str]) -> Callable[..., list[object]]:
    """A name that resolves differently each time; the last answer stays."""
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


def test_a_peer_that_is_not_the_checked_address_gets_no_request(hostile_site: Hostile) -> None:
    dialled: list[str] = []
    system = System(resolve=resolving(["93.184.215.14"]), connect=to_site(hostile_site, dialled))
    before = len(hostile_site.requests)
    with pytest.raises(FetchBlockedAddress):
        Fetcher(system=system).get("http://site.test/")
    assert dialled == ["93.184.215.14"]
    assert len(hostile_site.requests) == before


def test_a_peer_at_another_port_gets_no_request(hostile_site: Hostile) -> None:
    dialled: list[str] = []
    system = System(resolve=resolving(["127.0.0.1"]), connect=to_site(hostile_site, dialled))
    with pytest.raises(FetchBlockedAddress):
        Fetcher(FetchLimits(allow=parse_host_ports(["site.test:80"])), system).get("http://site.test/")
    assert dialled == ["127.0.0.1"]


def test_a_name_that_turns_private_between_hops_is_refused(hostile_site: Hostile) -> None:
    """Allowed on the port of the first hop, and on no other."""
    hostile_site.on(redirect("http://site.test:8080/"))
    system = System(resolve=resolving(["127.0.0.1"]))
    with pytest.raises(FetchBlockedAddress):
        Fetcher(FetchLimits(allow=parse_host_ports([f"site.test:{hostile_site.port}"]), delay=0), system).get(
            f"http://site.test:{hostile_site.port}/"
        )


def test_a_name_is_looked_up_exactly_once_per_hop(hostile_site: Hostile) -> None:
    asked: list[bytes] = []

    def resolve(host: bytes, port: int, **_: object) -> list[object]:
        asked.append(host)
        return resolving(["127.0.0.1"])(host, port)

    hostile_site.on(redirect("/b"), "/a")
    hostile_site.on(answer(), "/b")
    limits = FetchLimits(allow=parse_host_ports([f"site.test:{hostile_site.port}"]), delay=0)
    Fetcher(limits, System(resolve=resolve)).get(f"http://site.test:{hostile_site.port}/a")
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
def test_a_failed_lookup_has_its_own_code(failure: Exception, error: type[FetchFailed]) -> None:
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


def test_a_lookup_that_hangs_does_not_delay_the_fetch() -> None:
    over = threading.Event()

    def hang(*_: object, **__: object) -> list[object]:
        over.wait()
        return []

    try:
        with pytest.raises(FetchTimeout):
            Fetcher(FetchLimits(seconds=0.2), System(resolve=hang)).get("http://site.test/")
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
                lookups.addresses(f"{number}.test", 80, FetchDeadline(0.05, 0, time.monotonic))
        assert begun.acquire(timeout=30)
        assert begun.acquire(timeout=30)
    finally:
        over.set()
    # Those that were left behind give their places back.
    assert lookups.addresses("5.test", 80, FetchDeadline(30, 0, time.monotonic))
    assert sorted(asked) == [b"0.test", b"1.test", b"5.test"]


def test_an_unresponsive_address_leaves_time_for_the_next(hostile_site: Hostile) -> None:
    shares: list[float] = []

    def dial(address: Address, port: int, seconds: float) -> socket.socket:
        shares.append(seconds)
        if len(shares) < 3:
            raise TimeoutError
        return open_socket(address, port, seconds)

    system = System(
        resolve=resolving(["127.0.0.3", "127.0.0.2", "127.0.0.1"]), connect=dial, clock=lambda: 0.0
    )
    limits = FetchLimits(allow=parse_host_ports([f"site.test:{hostile_site.port}"]), seconds=12)
    hostile_site.on(answer())
    Fetcher(limits, system).get(f"http://site.test:{hostile_site.port}/")
    assert shares == [4.0, 5.0, 12.0]
