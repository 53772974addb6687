"""How long work waits after an error, and whether that uses up a try."""

from datetime import timedelta

from nexus.errors import FetchBusy, FetchFailed, FetchHttp4xx, ProviderBlocked
from nexus.retry_after import LONGEST_WAIT
from nexus.work.retry import MAX_TRIES, Again, decide


def test_a_site_that_blocks_this_address_is_left_alone_for_a_day_at_most() -> None:
    for hours, kept in ((2, 2), (24, 24), (48, 24)):
        error = ProviderBlocked()
        error.retry_after = hours * 3600.0
        assert decide(error, MAX_TRIES + 1, 5.0) == Again(timedelta(hours=kept), counted=False)


def test_other_sites_are_left_alone_for_an_hour_at_most() -> None:
    busy = FetchBusy()
    busy.retry_after = 10 * LONGEST_WAIT
    again = decide(busy, 1, 5.0)
    assert again is not None
    assert again.wait.total_seconds() == LONGEST_WAIT
    assert decide(FetchFailed(), MAX_TRIES, 5.0) is None
    assert decide(FetchHttp4xx(), 1, 5.0) is None
