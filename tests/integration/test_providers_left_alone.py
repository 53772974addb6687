"""Who asks a provider that blocks this address: nobody for a while, then one of all processes."""

from contextlib import closing
from pathlib import Path

import pytest

from nexus.errors import FetchBusy, FetchTimeout, ProviderBlocked, TranscriptUnavailable, WorkError
from nexus.fetch.blocks import PROBE_SECONDS, ProviderBlocks
from nexus.fetch.pace import BLOCK_REMEMBERED, MemoryBook
from nexus.retry_after import LONGEST_BLOCK
from tests.kit.fetching import fetching_app


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time_now() -> Clock:
    return Clock()


@pytest.fixture
def blocks(time_now: Clock) -> ProviderBlocks:
    return ProviderBlocks(MemoryBook(time_now))


def ask(blocks: ProviderBlocks, answer: WorkError | None = None) -> float | None:
    """Return how long to wait; None if the provider was asked and does not block. A block asks for 900 s."""
    try:
        with blocks.asking("tube"):
            if answer is not None:
                raise answer
    except ProviderBlocked as error:
        return error.retry_after
    except WorkError:
        return None
    return None


def test_each_wait_is_longer_up_to_a_day(blocks: ProviderBlocks, time_now: Clock) -> None:
    for minutes in (15, 30, 60, 120, 240, 480, 960, 1440, 1440):
        wait = ask(blocks, ProviderBlocked())
        assert wait is not None
        assert minutes * 60 * 0.875 <= wait <= minutes * 60 + 1
        assert ask(blocks) == wait, "it is not asked"
        time_now.now += wait
    assert wait <= LONGEST_BLOCK.total_seconds() + 1


@pytest.mark.parametrize("answer", [None, TranscriptUnavailable()], ids=["captions", "none"])
def test_an_answer_ends_a_block(blocks: ProviderBlocks, time_now: Clock, answer: WorkError | None) -> None:
    time_now.now += ask(blocks, ProviderBlocked()) or 0
    assert ask(blocks, answer) is None
    again = ask(blocks, ProviderBlocked())
    assert again is not None
    assert again <= 901, "waits begin again"


def test_one_who_can_not_find_out_leaves_it_to_the_next(blocks: ProviderBlocks, time_now: Clock) -> None:
    time_now.now += ask(blocks, ProviderBlocked()) or 0
    assert ask(blocks, FetchTimeout()) is None
    again = ask(blocks, ProviderBlocked())
    assert again is not None
    assert again > 901, "the block goes on"


def test_others_wait_for_the_one_who_finds_out_but_not_for_ever(
    blocks: ProviderBlocks, time_now: Clock
) -> None:
    time_now.now += ask(blocks, ProviderBlocked()) or 0
    with blocks.asking("tube"):
        assert ask(blocks) == PROBE_SECONDS + 1
        time_now.now += PROBE_SECONDS
        with blocks.asking("tube"):
            pass


def test_of_several_who_are_blocked_at_once_one_counts(blocks: ProviderBlocks) -> None:
    nested = ProviderBlocked()
    with pytest.raises(ProviderBlocked) as first, blocks.asking("tube"):
        raise nested if ask(blocks, ProviderBlocked()) else AssertionError
    assert first.value.retry_after == ask(blocks)
    assert (first.value.retry_after or 0) <= 901


def test_a_late_answer_does_not_end_a_block(blocks: ProviderBlocks) -> None:
    with blocks.asking("tube"):
        ask(blocks, ProviderBlocked())
    assert ask(blocks) is not None


def test_a_block_of_long_ago_is_forgotten(blocks: ProviderBlocks, time_now: Clock) -> None:
    time_now.now += (ask(blocks, ProviderBlocked()) or 0) + BLOCK_REMEMBERED
    again = ask(blocks, ProviderBlocked())
    assert again is not None
    assert again <= 901


def test_a_block_is_heard_by_every_process(database_url: str, tmp_path: Path) -> None:
    url = "http://127.0.0.1:9/"
    with (
        closing(fetching_app(url, database_url, tmp_path)) as one,
        closing(fetching_app(url, database_url, tmp_path)) as other,
    ):
        with pytest.raises(ProviderBlocked), one.tools.fetcher.asking("tube"):
            raise ProviderBlocked
        with pytest.raises(ProviderBlocked) as told, other.tools.fetcher.asking("tube"):
            pytest.fail("it was asked")
    assert told.value.retry_after == pytest.approx(900, abs=200)


class BrokenBook:
    def change(self, *_: object) -> None:
        raise OSError("gone")


def test_without_its_book_nobody_asks(blocks: ProviderBlocks) -> None:
    with pytest.raises(FetchBusy), ProviderBlocks(BrokenBook()).asking("tube"):  # type: ignore[arg-type]
        pytest.fail("it was asked")
