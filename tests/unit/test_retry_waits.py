"""How long work waits after an error, and whether that uses up a try."""

from datetime import timedelta

import pytest

from nexus.errors import FetchBusy, FetchFailed, FetchHttp4xx, ProviderBlocked
from nexus.work.retry import LONGEST_BLOCK, LONGEST_WAIT, MAX_TRIES, decide


@pytest.mark.parametrize(
    ("waits", "minutes"),
    [(0, 15), (1, 30), (2, 60), (3, 120), (6, 960), (7, 1440), (50, 1440), (10**6, 1440)],
)
def test_a_site_that_blocks_this_address_is_asked_ever_less_often(waits: int, minutes: int) -> None:
    for _ in range(20):
        again = decide(ProviderBlocked(), MAX_TRIES + 1, 5.0, waits=waits)
        assert again is not None
        assert not again.counted
        assert timedelta(minutes=minutes) * 0.875 <= again.wait <= timedelta(minutes=minutes)
        assert again.wait <= LONGEST_BLOCK


def test_what_a_blocking_site_asks_for_is_the_first_wait() -> None:
    error = ProviderBlocked()
    error.retry_after = 7200.0
    again = decide(error, 1, 5.0)
    assert again is not None
    assert timedelta(hours=1.75) <= again.wait <= timedelta(hours=2)


def test_other_errors_wait_no_longer_each_time() -> None:
    busy = FetchBusy()
    busy.retry_after = 10 * LONGEST_WAIT.total_seconds()
    again = decide(busy, 1, 5.0, waits=8)
    assert again is not None
    assert again.wait == LONGEST_WAIT
    assert decide(FetchFailed(), MAX_TRIES, 5.0, waits=8) is None
    assert decide(FetchHttp4xx(), 1, 5.0, waits=8) is None
