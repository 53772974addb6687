"""The players of other sites that a page may show: what strangers say about them breaks nothing and misleads nobody."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from nexus.web.views.player import Frame, show_player


def frame_of(embed_url: str, host: str = "films.example", site: str = "YouTube") -> Frame | None:
    row = SimpleNamespace(provider=None, provider_id=None, host=host, kind="video")
    known = SimpleNamespace(embed_url=embed_url, site=site, seconds=None, chapters="[]", notes=None)
    view: Any = SimpleNamespace(row=row)
    shown = show_player(view, known, None, None, is_queued=False)  # type: ignore[arg-type]
    return None if shown is None else shown.frame


def test_a_frame_is_named_by_where_it_comes_from() -> None:
    found = frame_of("https://www.player.example:8443/e/1")
    assert found is not None
    assert (found.site, found.origin) == ("player.example", "https://www.player.example:8443")


@pytest.mark.parametrize(
    "address",
    [
        "https://[",
        "https://пример.example/e",
        "https://a℀b/",
        "https://films.example:port/",
        "https://films.example:99999/",
        "https://films.example;script-src/",
        "https://*/",
        "https://user@films.example/",
        "https:///e",
        "ftp://films.example/",
    ],
)
def test_an_address_that_no_policy_can_name_is_not_framed(address: str) -> None:
    assert frame_of(address) is None


@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1/",
        "http://192.168.1.1/reboot",
        "https://[::1]/",
        "http://router/",
        "http://localhost:8080/",
    ],
)
def test_only_a_page_of_this_network_frames_what_is_in_it(address: str) -> None:
    assert frame_of(address) is None
    host = address.split("/")[2].rsplit(":", 1)[0] if "[" not in address else "::1"
    assert frame_of(address, host=host) is not None
