"""What a status means: transient or permanent, and how long to leave the site alone."""

from collections.abc import Callable

import pytest

from nexus.errors import FetchFailed, FetchHttp4xx, FetchHttp5xx, FetchRateLimited
from nexus.fetch import Fetcher, FetchLimits, System, parse_host_ports
from tests.kit.clock import SetClock
from tests.kit.servers.hostile_site import Hostile, answer


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 405, 410, 418, 421, 451, 499])
def test_a_client_error_is_a_permanent_failure(
    hostile_site: Hostile, fetch: Callable[..., object], status: int
) -> None:
    with pytest.raises(FetchHttp4xx) as refused:
        fetch(hostile_site.on(answer(status=f"{status} No")))
    what = "Page not found" if status in {404, 410} else "The site refused to show this page"
    assert refused.value.message.startswith(f"{what} ({status}).")
    assert refused.value.transient is False


@pytest.mark.parametrize("status", [500, 501, 502, 503, 504, 520, 599])
def test_a_server_error_is_a_transient_failure(
    hostile_site: Hostile, fetch: Callable[..., object], status: int
) -> None:
    with pytest.raises(FetchHttp5xx, match=rf"\({status}\)") as refused:
        fetch(hostile_site.on(answer(status=f"{status} Oops")))
    assert refused.value.transient is True


@pytest.mark.parametrize("status", [408, 425])
def test_a_temporary_refusal_is_a_transient_failure(
    hostile_site: Hostile, fetch: Callable[..., object], status: int
) -> None:
    with pytest.raises(FetchFailed, match=rf"\({status}\)") as refused:
        fetch(hostile_site.on(answer(status=f"{status} Later")))
    assert type(refused.value) is FetchFailed
    assert refused.value.transient is True


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("Retry-After: 120", 120.0),
        ("Retry-After:   7  ", 7.0),
        ("Retry-After: 0", 0.0),
        ("Retry-After: 99999999999999999999999999", 3_600.0),
        ("Retry-After: Thu, 01 Jan 2026 00:05:00 GMT", 300.0),
        ("Retry-After: Thu, 01 Jan 2026 00:05:00", 300.0),
        ("Retry-After: Thu, 01 Jan 2026 01:05:00 +0100", 300.0),
        ("Retry-After: Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        ("Retry-After: Fri, 31 Dec 9999 23:59:59 GMT", 3_600.0),
        ("Retry-After: soon", None),
        ("Retry-After: -5", None),
        ("Retry-After: 1.5", None),
        ("Retry-After: Thu, 01 Jan 2026 00:05:9999999999999 GMT", None),
        ("Retry-After:", None),
        ("X-Nothing: 1", None),
    ],
)
def test_retry_after_is_parsed_in_every_form(
    hostile_site: Hostile, clock: SetClock, status: int, header: str, seconds: float | None
) -> None:
    fetcher = Fetcher(FetchLimits(allow=parse_host_ports([hostile_site.pair])), System(now=clock))
    with pytest.raises(FetchRateLimited if status == 429 else FetchHttp5xx) as refused:
        fetcher.get(hostile_site.on(answer(b"", header, status=f"{status} Later")))
    assert refused.value.retry_after == seconds


def test_retry_after_is_ignored_on_other_statuses(
    hostile_site: Hostile, fetch: Callable[..., object]
) -> None:
    with pytest.raises(FetchHttp4xx) as refused:
        fetch(hostile_site.on(answer(b"", "Retry-After: 10", status="404 Not Found")))
    assert refused.value.retry_after is None
