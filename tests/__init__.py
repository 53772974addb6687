"""Tests of Nexus. None of them asks a name server: what it says depends on the machine and on the day."""

from __future__ import annotations

import ipaddress
import socket
from contextlib import suppress
from typing import Any

_look_up = socket.getaddrinfo


def _look_up_this_machine(host: str | bytes | None, *more: Any, **named: Any) -> list[Any]:
    """Find addresses and names of this machine alone, as on one without a network."""
    name = host.decode() if isinstance(host, bytes) else host
    if name not in {None, "", "localhost", socket.gethostname()}:
        with suppress(ValueError):
            ipaddress.ip_address(name.partition("%")[0])
            return _look_up(host, *more, **named)
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    return _look_up(host, *more, **named)


# Before anything is imported that keeps the function.
socket.getaddrinfo = _look_up_this_machine
