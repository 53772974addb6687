"""Which addresses are public, and every way to spell one that is not."""

import socket
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from traceback import walk_tb

import can_ada
import pytest

from nexus.errors import FetchBlockedAddress, FetchUnknownHost
from nexus.fetch import Fetcher, FetchLimits, System, parse_host_ports
from nexus.fetch.addresses import CLOSED_V4, CLOSED_V6, OPEN_V6, Address, is_public
from nexus.fetch.guard import Guard


def listed(words: str) -> list[str]:
    return words.split()


# the tables

PUBLIC = listed("""
1.0.0.0 1.1.1.1 8.8.8.8 9.9.9.9 11.0.0.1 93.184.215.14 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0
168.63.129.15 168.63.129.17 169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 191.255.255.255 192.0.1.0
192.0.3.0 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 198.51.99.255 198.51.101.0 203.0.112.255
203.0.114.0 223.255.255.255
2000:: 2001:200::1 2001:4860:4860::8888 2001:db7:ffff::1 2001:db9::1 2003::1 2400:cb00::1 2606:4700::1111
2620:4f:7fff::1 2620:4f:8001::1 2620:fe::fe 2a00:1450:4001::1 3ffe:ffff::1 3fff:1000::1
""")

PRIVATE = listed("""
0.0.0.0 0.0.0.1 0.255.255.255 10.0.0.0 10.1.2.3 10.255.255.255 100.64.0.0 100.100.100.200 100.127.255.255 127.0.0.0
127.0.0.1 127.1.2.3 127.255.255.255 168.63.129.16 169.254.0.0 169.254.169.254 169.254.170.2 169.254.255.255
172.16.0.0 172.17.0.1 172.31.255.255 192.0.0.0 192.0.0.8 192.0.0.9 192.0.0.10 192.0.0.170 192.0.0.192 192.0.0.255
192.0.2.1 192.31.196.1 192.52.193.1 192.88.99.1 192.168.0.1 192.168.255.255 192.175.48.1 198.18.0.1 198.19.255.255
198.51.100.1 203.0.113.1 224.0.0.1 224.0.0.251 239.255.255.250 240.0.0.1 255.255.255.254 255.255.255.255
:: ::1 ::2 ::127.0.0.1 ::8.8.8.8 ::ffff:0:0 ::ffff:127.0.0.1 ::ffff:8.8.8.8 ::ffff:169.254.169.254
::ffff:0:127.0.0.1 64:ff9b:: 64:ff9b::7f00:1 64:ff9b::8.8.8.8 64:ff9b:1::a00:1 100:: 100::1 100:0:0:1::1
1fff:ffff::1 2001:: 2001::1 2001:0:7f00:1:: 2001:0:53aa:64c:: 2001:1::1 2001:1::2 2001:2::1 2001:3::1 2001:4:112::1
2001:5::1 2001:10::1 2001:20::1 2001:30::1 2001:1ff:ffff::1 2001:db8::1 2001:db8:ffff::1 2002:: 2002:7f00:1::
2002:7f00:1::7f00:1 2002:0a00:0001::1 2002:c0a8:101::1 2002:a9fe:a9fe::1 2002:808:808::1 2002:ffff:ffff::1
2620:4f:8000::1 3fff:: 3fff:fff:ffff::1 4000:: 5f00::1 8000::1 e000::1 fc00::1 fd00::1 fd00:ec2::254
fdff:ffff::1 fe00::1 fe7f::1 fe80:: fe80::1 fe80::a9fe:a9fe fe80::1%eth0 2606:4700::1111%eth0 febf::1 fec0::1
feff::1 ff00:: ff01::1 ff02::1 ff02::fb ff05::2 ff0e::1 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff
""")


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_public(address: str) -> None:
    assert is_public(ip_address(address))


@pytest.mark.parametrize("address", PRIVATE)
def test_a_special_address_is_not_public(address: str) -> None:
    assert not is_public(ip_address(address))


def last_before(address: Address) -> Address:
    return type(address)(int(address) - 1)


def first_after(address: Address) -> Address:
    return type(address)(int(address) + 1)


@pytest.mark.parametrize("block", [*CLOSED_V4, *CLOSED_V6], ids=str)
def test_a_special_block_is_closed_from_its_first_address_to_its_last(
    block: IPv4Network | IPv6Network,
) -> None:
    assert not is_public(block.network_address)
    assert not is_public(block.broadcast_address)


#: Blocks whose next address belongs to another special block, or does not exist.
CLOSED_ON_BOTH_SIDES = {
    IPv4Address("223.255.255.255"): True,
    IPv4Address("240.0.0.0"): False,
    IPv4Address("239.255.255.255"): False,
    IPv6Address("2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff"): True,
}


@pytest.mark.parametrize("block", [*CLOSED_V4, *CLOSED_V6], ids=str)
def test_the_neighbours_of_a_special_block_are_public(block: IPv4Network | IPv6Network) -> None:
    first, last = block.network_address, block.broadcast_address
    if int(first) > 0:
        before = last_before(first)
        assert is_public(before) is CLOSED_ON_BOTH_SIDES.get(before, True)
    if int(last) < 2**32 - 1 or block.version == 6:
        after = first_after(last)
        assert is_public(after) is CLOSED_ON_BOTH_SIDES.get(after, True)


def test_ipv6_is_open_only_in_the_global_unicast_space() -> None:
    first, last = OPEN_V6.network_address, OPEN_V6.broadcast_address
    assert is_public(first)
    assert is_public(last)
    assert not is_public(last_before(first))
    assert not is_public(first_after(last))


# spellings

#: Hosts that lead to this machine, to its network, or nowhere; each in a URL of its own.
HOSTS = listed("""
127.0.0.1 127.0.0.1. 127.1 127.1. 127.0.1 127.000.000.001 127.0.0.01 0177.0.0.1 0177.0.0.01 0177.0.1 0177.1
00000177.1 0x7f.0.0.1 0x7f.0x0.0x0.0x1 0X7F.0X0.0X0.0X1 0x7f.1 0x7F.0x1 0x7f000001 0x7F000001 0X7f000001
0x000000007f000001 017700000001 0000000000017700000001 2130706433 2130706434 2130706433. 0x7f.0.1 0x7f.0x000001
127.0x1 127.0.0x1 127.0.01 127.00.00.01 0x7f.00.0x0.1 127.0.0.0x1 127.255.255.254 127.16777214 127.8.9.10 127.65535
0 0. 00 0x0 0x 0.0 0.0.0 0.0.0.0 0x00000000 00000000000 0.0.0.1 0.1 1 0x1 255 0.255 0x0.0x0.0x0.0x0
10.0.0.1 10.1 10.0.1 012.0.0.1 012.1 0xa.0.0.1 0xa.1 0x0a000001 167772161 01200000001 10.0.0.255 10.255.255.255
10.16777215 0xa000001
100.64.0.1 100.100.100.200 0144.0100.0.1 1681915905 0x64.0x40.0.1 100.127.255.254 100.4194305
169.254.169.254 169.254.43518 169.16689662 0251.0376.0251.0376 0xa9.0xfe.0xa9.0xfe 0xa9fea9fe 2852039166
0xA9FEA9FE 025177524776 169.254.0xa9.0376 0xa9.254.0251.254 169.254.170.2 169.254.169.254.
172.16.0.1 172.16.1 172.31.255.255 0254.020.0.1 0xac.0x10.0.1 2886729729 0xac100001 172.1048577 172.20.10.1
192.168.0.1 192.168.1 192.168.1.1 0300.0250.0.1 0xc0.0xa8.0.1 3232235521 0xc0a80001 030052000001 192.11010049
192.0.0.1 192.0.0.192 192.0.192 0xc00000c0 3221225664 192.0.2.1 192.88.99.1 198.18.0.1 198.19.0.1 198.51.100.1
203.0.113.1 192.31.196.1 192.52.193.1 192.175.48.1 168.63.129.16 2822734096 0xa83f8110
224.0.0.1 239.255.255.250 240.0.0.1 255.255.255.255 4294967295 0xffffffff 037777777777 255.255.65535 255.16777215
0xff.0xff.0xff.0xff 4294967294
[::] [::0] [0:0:0:0:0:0:0:0] [::1] [0::1] [0:0:0:0:0:0:0:1] [0000:0000:0000:0000:0000:0000:0000:0001] [::0001]
[::0:1] [::0.0.0.1] [::0.0.0.0] [::127.0.0.1] [::7f00:1] [::7F00:0001] [::10.0.0.1] [::a00:1] [::169.254.169.254]
[::a9fe:a9fe] [::8.8.8.8] [::ffff:127.0.0.1] [::ffff:7f00:1] [::FFFF:7F00:1] [0:0:0:0:0:ffff:127.0.0.1]
[0:0:0:0:0:ffff:7f00:0001] [::ffff:0:127.0.0.1] [::ffff:0:7f00:1] [::ffff:10.0.0.1] [::ffff:192.168.0.1]
[::ffff:169.254.169.254] [::ffff:a9fe:a9fe] [::ffff:172.16.0.1] [::ffff:0.0.0.0] [::ffff:8.8.8.8] [::ffff:808:808]
[64:ff9b::127.0.0.1] [64:ff9b::7f00:1] [64:ff9b::10.0.0.1] [64:ff9b::a9fe:a9fe] [64:ff9b::8.8.8.8]
[0064:ff9b:0:0:0:0:7f00:0001] [64:ff9b:1::7f00:1] [64:ff9b:1:ffff::1] [100::1] [100::ffff]
[2001::1] [2001:0:7f00:1::] [2001:0000:4136:e378:8000:63bf:3fff:fdd2] [2001:0:53aa:64c:0:0:80ff:fffe]
[2001:2::1] [2001:10::1] [2001:20::1] [2001:db8::1] [2001:DB8:0:0:0:0:0:1] [2001:0db8:85a3::8a2e:370:7334]
[2002:7f00:1::] [2002:7f00:0001::7f00:1] [2002:a00:1::] [2002:c0a8:1::1] [2002:a9fe:a9fe::] [2002:808:808::1]
[2620:4f:8000::1] [3fff::1] [3fff:fff::1] [4000::1] [5f00::1] [fc00::1] [fd00::1] [fd00:ec2::254] [FD12:3456::1]
[fe80::1] [fe80::a9fe:a9fe] [FE80::1] [febf::1] [fec0::1] [ff02::1] [ff0e::1] [1::1] [1fff::1]
[fe80::1%eth0] [fe80::1%25eth0] [fe80::1%251] [::1%lo] [::1%25lo] [::1%0] [2606:4700::1111%eth0]
[::127.0.0.1%1] [::1]. [::1 ::1] [[::1]] [::1%00] [127.0.0.1] [0x7f000001] [2130706433] [::127.1] [::ffff:127.1]
[::ffff:0x7f.0.0.1] [::ffff:0177.0.0.1] [::ffff:127.0.0.01] [::ffff:2130706433] [:::1] [::1::] [1:2:3:4:5:6:7] [::g]
[v1.::1] []
１２７.0.0.1 １２７．０．０．１ 127．0．0．1 127。0。0。1 127｡0｡0｡1 １２７。０。０。１
①②⑦.0.0.1 ⑫7.0.0.1 ¹²⁷.0.0.1 ₁₂₇.0.0.1
𝟏𝟐𝟕.𝟎.𝟎.𝟏 𝟙𝟚𝟟.𝟘.𝟘.𝟙 𝟣𝟤𝟩.𝟢.𝟢.𝟣 𝟭𝟮𝟳.𝟬.𝟬.𝟭 𝟷𝟸𝟽.𝟶.𝟶.𝟷
０ｘ７ｆ.1 0ｘ7f000001 ２１３０７０６４３３ 0x7ｆ.1 １０．０．０．１ 169。254。169。254
①⑥⑨.254.①⑥⑨.254 ⓪.⓪.⓪.⓪ ⑩.0.0.1 １６９.２５４.１６９.２５４ １９２．１６８．０．１
%31%32%37.0.0.1 %31%32%37%2e0%2e0%2e1 127%2E0%2E0%2E1 127%2e1 0%787f000001 %30x7f.1 127.0.0.%31 1%327.0.0.1
%EF%BC%91%EF%BC%92%EF%BC%97.0.0.1 127%E3%80%820%E3%80%820%E3%80%821 %5b::1%5d %5B::1%5D 127.0.0.1%00 127.0.0.1%20
127.0.0.1%0a 127.0.0.1%2f 127.0.0.1%5c 127.0.0.1%40 127.0.0.1%3a80 %00127.0.0.1 127.0.0.1%2500
1.2.3.4.5 256.0.0.1 1.2.3.256 1.256.1 0x100000000 4294967296 1.2.3.08 1.2.3.09 0x1.0x2.0x3.0xg.1 1.2..4 127..1
.127.0.0.1 0x7f.0.0.1.0 99999999999999999999 0xfffffffff 040000000000 1.2.3.4a.5 foo.0x7f foo.127 a.0
999.999.999.999
00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000177.1
""")

#: Whole URLs that say one thing and mean another, or nothing.
URLS = [
    "http://8.8.8.8@127.0.0.1/",
    "http://8.8.8.8:80@127.0.0.1/",
    "http://127.0.0.1@8.8.8.8/",
    "http://user@8.8.8.8/",
    "http://user:@8.8.8.8/",
    "http://:password@8.8.8.8/",
    "http://user:password@8.8.8.8/",
    "http://user%40name@8.8.8.8/",
    "http://a:b@c:d@8.8.8.8/",
    "http://8.8.8.8%40@127.0.0.1/",
    "http://127.0.0.1#@8.8.8.8/",
    "http://127.0.0.1?@8.8.8.8/",
    "http://127.0.0.1;@8.8.8.8/",
    "http://@127.0.0.1/",
    "http://:@127.0.0.1/",
    "http://@@127.0.0.1/",
    r"http://127.0.0.1\@8.8.8.8/",
    r"http://127.0.0.1\.8.8.8.8/",
    r"http:\\127.0.0.1/",
    r"http:\\127.0.0.1\path",
    r"http:/\127.0.0.1/",
    r"http:\/127.0.0.1/",
    r"http://\127.0.0.1/",
    r"\\127.0.0.1/",
    "http:127.0.0.1",
    "http:/127.0.0.1",
    "http:///127.0.0.1/",
    "http:////127.0.0.1//",
    "http://///127.0.0.1",
    "HTTP://127.0.0.1/",
    "hTtP://127.0.0.1/",
    " http://127.0.0.1/ ",
    "\thttp://127.0.0.1/\n",
    "\x00http://127.0.0.1/",
    "ht\ntp://127.0.0.1/",
    "http:/\t/127.0.0.1/",
    "http://127.\t0.0.1/",
    "http://127.0\n.0.1/",
    "http://1\r27.0.0.1/",
    "http://127.0.0.1\t:80/",
    "http://127.0.0.1:80/",
    "http://127.0.0.1:0080/",
    "http://127.0.0.1:/",
    "http://127.0.0.1:443/",
    "https://127.0.0.1/",
    "https://[::1]/",
    "https://[::1]:8443/",
    "http://8.8.8.8:0/",
    "http://8.8.8.8:1/",
    "http://8.8.8.8:21/",
    "http://8.8.8.8:22/",
    "http://8.8.8.8:25/",
    "http://8.8.8.8:81/",
    "http://8.8.8.8:3306/",
    "http://8.8.8.8:5432/",
    "http://8.8.8.8:6379/",
    "http://8.8.8.8:8081/",
    "http://8.8.8.8:65535/",
    "http://8.8.8.8:65536/",
    "http://8.8.8.8:65616/",
    "http://8.8.8.8:-80/",
    "http://8.8.8.8:+80/",
    "http://8.8.8.8:8 0/",
    "http://8.8.8.8:８０/",
    "http://8.8.8.8:0x50/",
    "http://8.8.8.8:80:80/",
    "http://8.8.8.8:80@/",
    "file:///etc/passwd",
    "file://localhost/etc/passwd",
    "file:/etc/passwd",
    "ftp://8.8.8.8/",
    "gopher://8.8.8.8/_GET",
    "dict://8.8.8.8:11211/stat",
    "ldap://8.8.8.8/",
    "ws://8.8.8.8/",
    "wss://8.8.8.8/",
    "data:text/html,hello",
    "javascript:alert(1)",
    "about:blank",
    "blob:http://8.8.8.8/",
    "view-source:http://8.8.8.8/",
    "jar:http://8.8.8.8!/",
    "url:http://8.8.8.8/",
    "unix:/var/run/docker.sock",
    "http+unix://%2Fvar%2Frun%2Fdocker.sock/",
    "//8.8.8.8/",
    "8.8.8.8",
    "8.8.8.8:80",
    "/",
    "",
    " ",
    "http",
    "http:",
    "http://",
    "https://",
    "http://?",
    "http://#",
    "http://:80/",
    "http:// 8.8.8.8/",
    "http://8.8.8.8 /",
    "http://8.8.8.8<>/",
    "http://[::1/",
    "http://::1/",
    "http://::1]/",
    "http://[::1]x/",
    "http://x[::1]/",
    "http://\ud800/",
    "http://127\u200d.0.0.1/",
    "http://127.0.0\u200c.1/",
    "http://127.0.0\u00ad.1/",
    "http://127\u2024.0.0.1/",
    "http://127.0.0.1\u2060/",
    "http://xn--/",
    "http://\u00ad/",
]


def nothing_is_opened(*_: object, **__: object) -> socket.socket:
    raise AssertionError("a socket was about to be opened")


def nothing_is_looked_up(*_: object, **__: object) -> list[object]:
    raise AssertionError("a name was about to be looked up")


@pytest.fixture(scope="module")
def offline_fetcher() -> Fetcher:
    return Fetcher(system=System(resolve=nothing_is_looked_up, connect=nothing_is_opened))


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_no_spelling_of_a_private_host_is_dialled(offline_fetcher: Fetcher, scheme: str) -> None:
    let_through = [host for host in HOSTS if not is_refused(offline_fetcher, f"{scheme}://{host}/")]
    assert let_through == []


@pytest.mark.parametrize("port", [80, 443, 8080, 8443])
def test_no_spelling_of_a_private_host_is_dialled_on_any_port(offline_fetcher: Fetcher, port: int) -> None:
    let_through = [host for host in HOSTS if not is_refused(offline_fetcher, f"http://{host}:{port}/page")]
    assert let_through == []


@pytest.mark.parametrize("url", URLS)
def test_no_misleading_address_is_dialled(offline_fetcher: Fetcher, url: str) -> None:
    assert is_refused(offline_fetcher, url)


def is_refused(fetcher: Fetcher, url: str) -> bool:
    try:
        fetcher.get(url)
    except FetchBlockedAddress:
        return True
    except AssertionError:
        return False
    return False


def test_the_list_of_spellings_is_long_and_holds_none_twice() -> None:
    assert len(HOSTS) + len(URLS) + len(NAMES) > 400
    assert len(set(HOSTS)) == len(HOSTS)
    assert len(set(URLS)) == len(URLS)


NAMES = listed("""
localhost localhost. LOCALHOST ｌｏｃａｌｈｏｓｔ ⓛⓞⓒⓐⓛⓗⓞⓢⓣ %6c%6f%63%61%6c%68%6f%73%74
localhost.localdomain ip6-localhost localhost%E3%80%82 a.localhost metadata
metadata.google.internal instance-data intranet router.lan printer.local
127.0.0.1.. 127.0.0.١ 127.0.0.१ 127.0.0.1.example 127-0-0-1.example 1.2.3.4x
0x1.0x2.0x3.0xg db.internal site.test
""")


@pytest.mark.parametrize("host", NAMES)
def test_a_name_is_judged_by_what_it_answers(host: str) -> None:
    assert is_refused(answering("127.0.0.1"), f"http://{host}/")


@pytest.mark.parametrize("address", [address for address in PRIVATE if "%" not in address])
def test_a_name_that_leads_to_a_special_address_is_refused(address: str) -> None:
    assert is_refused(answering(address), "http://site.test/")


@pytest.mark.parametrize(
    "addresses",
    [
        ("93.184.215.14", "127.0.0.1"),
        ("127.0.0.1", "93.184.215.14"),
        ("93.184.215.14", "2606:4700::1111", "fe80::1%1"),
        ("2606:4700::1111", "::ffff:93.184.215.14"),
        ("93.184.215.14", "1.1.1.1", "10.0.0.1", "9.9.9.9"),
    ],
)
def test_a_name_with_public_and_private_addresses_is_refused(addresses: tuple[str, ...]) -> None:
    assert is_refused(answering(*addresses), "http://site.test/")


def test_a_name_with_an_answer_that_is_no_address_is_refused() -> None:
    assert is_refused(answering("93.184.215.14", "/run/socket"), "http://site.test/")


def test_a_name_without_addresses_is_unknown() -> None:
    with pytest.raises(FetchUnknownHost):
        answering().get("http://site.test/")


def answering(*addresses: str) -> Fetcher:
    answers = [(0, socket.SOCK_STREAM, 6, "", (address, 80)) for address in addresses]
    return Fetcher(system=System(resolve=lambda *_, **__: answers, connect=nothing_is_opened))


# what is dialled


class Dialled(Exception):
    """The address that a fetch was about to connect to."""


def dial(address: Address, port: int, seconds: float) -> socket.socket:
    raise Dialled(str(address), port)


@pytest.mark.parametrize(
    ("url", "address", "port"),
    [
        ("http://8.8.8.8/", "8.8.8.8", 80),
        ("https://8.8.8.8/", "8.8.8.8", 443),
        ("http://8.8.8.8:8080/", "8.8.8.8", 8080),
        ("https://8.8.8.8:8443/", "8.8.8.8", 8443),
        ("http://0x08080808/", "8.8.8.8", 80),
        ("http://134744072/", "8.8.8.8", 80),
        ("http://010.8.8.8/", "8.8.8.8", 80),
        ("http://8.526344/", "8.8.8.8", 80),
        ("http://８。８。８。８/", "8.8.8.8", 80),
        ("http://8.8.8.8./", "8.8.8.8", 80),
        (r"http:\\8.8.8.8\@127.0.0.1", "8.8.8.8", 80),
        ("http://8.8.8.8#@127.0.0.1/", "8.8.8.8", 80),
        ("http://8.8.8.8?@127.0.0.1/", "8.8.8.8", 80),
        ("http://8.8.8.8/@127.0.0.1/", "8.8.8.8", 80),
        ("http://[2606:4700::1111]/", "2606:4700::1111", 80),
        ("https://[2606:4700:0:0:0:0:0:1111]:8443/", "2606:4700::1111", 8443),
        ("http://@8.8.8.8/", "8.8.8.8", 80),
    ],
)
def test_a_public_address_is_dialled_as_it_was_parsed(url: str, address: str, port: int) -> None:
    fetcher = Fetcher(system=System(resolve=nothing_is_looked_up, connect=dial))
    with pytest.raises(Dialled) as dialled:
        fetcher.get(url)
    assert dialled.value.args == (address, port)


def test_a_name_is_looked_up_once_and_its_checked_address_is_dialled() -> None:
    asked: list[object] = []

    def rebinding(host: bytes, port: int, **_: object) -> list[object]:
        asked.append(host)
        address = "93.184.215.14" if len(asked) == 1 else "127.0.0.1"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    with pytest.raises(Dialled) as dialled:
        Fetcher(system=System(resolve=rebinding, connect=dial)).get("http://site.test/")
    assert dialled.value.args == ("93.184.215.14", 80)
    assert asked == [b"site.test"]


# the allow-list

ALLOW = parse_host_ports(["127.0.0.1:9000", "[::1]:9000", "intern.test:9000", "LOCALHOST:80"])


def test_a_listed_pair_passes_the_checks_of_address_and_port() -> None:
    guard = Guard(FetchLimits().ports, ALLOW)
    for host in ("127.0.0.1", "0x7f000001", "[::1]", "[0:0:0:0:0:0:0:1]", "intern.test", "INTERN.test"):
        target = guard.target(f"http://{host}:9000/")
        guard.check(target.host, target.port, [ip_address("127.0.0.1")])
    assert guard.target("http://localhost/").port == 80


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/",
        "http://127.0.0.1:9001/",
        "http://127.0.0.1:8080/",
        "http://127.0.0.2:9000/",
        "http://[::2]:9000/",
        "http://[::ffff:127.0.0.1]:9000/",
        "http://other.test:9000/",
        "http://intern.test.:9000/",
        "http://a.intern.test:9000/",
        "http://user@127.0.0.1:9000/",
        "ftp://127.0.0.1:9000/",
    ],
)
def test_a_pair_that_is_not_listed_exactly_is_refused(url: str) -> None:
    with pytest.raises(FetchBlockedAddress):
        Guard(FetchLimits().ports, ALLOW).target(url)


def test_a_listed_name_does_not_open_other_ports_or_names_at_its_address() -> None:
    guard = Guard(FetchLimits().ports, ALLOW)
    for host, port in (("intern.test", 80), ("other.test", 9000), ("localhost", 8080)):
        with pytest.raises(FetchBlockedAddress):
            guard.check(host, port, [ip_address("127.0.0.1")])


@pytest.mark.parametrize(
    "entry",
    [
        "",
        "127.0.0.1",
        "127.0.0.1:",
        ":80",
        "::1:80",
        "[::1]",
        "a:0",
        "a:000",
        "a:65536",
        "a:http",
        "a:８０",
        "a:-1",
        "a:80/",
        "a/b:80",
        "a#b:80",
        "a?b:80",
        "a b:80",
        "user@a:80",
        "http://a:80",
        "a\\b:80",
        "*:80",
        "127.0.0.1:*",
        "1.2.3.4.5:80",
    ],
)
def test_an_entry_that_is_no_pair_is_an_error(entry: str) -> None:
    with pytest.raises(ValueError, match="is not a host:port pair"):
        parse_host_ports([entry])


@pytest.mark.parametrize(
    "url", ["http://8.8.8.8:9/", "http://10.0.0.1/", "http://a:b@example.com/", "ftp://example.com/"]
)
def test_a_refusal_keeps_nothing_of_the_address_parser(url: str) -> None:
    """Its library prints pages of complaints if the process ends meanwhile."""
    with pytest.raises(FetchBlockedAddress) as refused:
        Guard(FetchLimits().ports, ALLOW).target(url)
    kept = [value for frame, _ in walk_tb(refused.value.__traceback__) for value in frame.f_locals.values()]
    assert not any(isinstance(value, can_ada.URL) for value in kept)
