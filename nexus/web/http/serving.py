"""How uvicorn serves an application: with our protocol, its limits, and nothing that it adds on its own."""

from __future__ import annotations

from functools import partial
from typing import Any

import uvicorn
from fastapi import FastAPI

from nexus.settings import Settings
from nexus.web.http.connections import ConnectionLimits, Door, networks
from nexus.web.http.protocol import Protocol
from nexus.web.http.safety import safe_headers

#: Open event streams must not hold up a stop for longer than this.
GRACE_SECONDS = 3


def limits_of(settings: Settings) -> ConnectionLimits:
    return ConnectionLimits(
        connections=settings.connections,
        per_address=settings.connections_per_address,
        proxies=networks(settings.proxies),
    )


def server_config(
    api: FastAPI, settings: Settings, limits: ConnectionLimits | None = None, **options: Any
) -> uvicorn.Config:
    """`limits` are those of the settings unless a test gives others."""
    protocol: Any = partial(
        Protocol, door=Door(limits or limits_of(settings)), headers=safe_headers(settings)
    )
    return uvicorn.Config(
        api,
        http=protocol,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        forwarded_allow_ips=list(settings.proxies),
        timeout_graceful_shutdown=GRACE_SECONDS,
        **options,
    )
