"""Which addresses are public, by IANA's special-purpose registries, block by block. Pure.

`ipaddress.is_global` is not used: its answers differ between versions of Python, and some versions call addresses
public that lead to this machine.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

Address = IPv4Address | IPv6Address

#: Special-purpose blocks of IPv4. Some of them are routed, but hold no web sites.
CLOSED_V4 = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8",  # this network
            "10.0.0.0/8",  # private
            "100.64.0.0/10",  # shared behind a carrier's translation
            "127.0.0.0/8",  # this machine
            "168.63.129.16/32",  # a cloud's own channel into its machines; not in the registry
            "169.254.0.0/16",  # link-local, and the metadata of clouds
            "172.16.0.0/12",  # private
            "192.0.0.0/24",  # protocol assignments
            "192.0.2.0/24",  # documentation
            "192.31.196.0/24",  # AS112
            "192.52.193.0/24",  # multicast tunnelling
            "192.88.99.0/24",  # 6to4 relays
            "192.168.0.0/16",  # private
            "192.175.48.0/24",  # AS112
            "198.18.0.0/15",  # benchmarking
            "198.51.100.0/24",  # documentation
            "203.0.113.0/24",  # documentation
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, and broadcast
        ),
    )
)

#: The part of IPv6 that is assigned to sites. Mapped and translated IPv4, local and multicast addresses lie outside.
OPEN_V6 = IPv6Network("2000::/3")

#: Special-purpose blocks within it.
CLOSED_V6 = tuple(
    map(
        IPv6Network,
        (
            "2001::/23",  # protocol assignments, with Teredo, benchmarking and ORCHID
            "2001:db8::/32",  # documentation
            "2002::/16",  # 6to4
            "2620:4f:8000::/48",  # AS112
            "3fff::/20",  # documentation
        ),
    )
)


def is_public(address: Address) -> bool:
    if isinstance(address, IPv4Address):
        return not any(address in block for block in CLOSED_V4)
    zoned = address.scope_id is not None
    return not zoned and address in OPEN_V6 and not any(address in block for block in CLOSED_V6)
