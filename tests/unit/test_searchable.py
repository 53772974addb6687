"""What an item's page says of how it can be found."""

from types import SimpleNamespace
from typing import Any

import pytest

from nexus.embed import MissingModel
from nexus.media.searching.vectors import EmbeddingProgress
from nexus.states.media import MediaStatus
from nexus.web.views.searchable import show_searchable

NOT_INSTALLED = MissingModel("The model is not installed.", "nexus models install")


def view(status: MediaStatus, *, can_search: bool = True) -> Any:
    return SimpleNamespace(
        row=SimpleNamespace(processing_status=status), capabilities=SimpleNamespace(can_search=can_search)
    )


@pytest.mark.parametrize(
    ("status", "progress", "missing", "says"),
    [
        (MediaStatus.READY, None, None, "Found by its words and by what it means"),
        (
            MediaStatus.EMBEDDING,
            EmbeddingProgress(3, 12),
            None,
            "Found by its words; 3 of 12 parts are prepared for search by meaning",
        ),
        (
            MediaStatus.READY_FOR_READING,
            None,
            NOT_INSTALLED,
            "Found by its words. The model is not installed. Run nexus models install",
        ),
        (
            MediaStatus.READY_FOR_READING,
            None,
            None,
            "Found by its words; search by meaning comes as soon as it is prepared",
        ),
        (
            MediaStatus.FAILED,
            None,
            None,
            "Found by its words; it could not be prepared for search by meaning",
        ),
    ],
)
def test_the_page_says_how_an_item_can_be_found(
    status: MediaStatus, progress: EmbeddingProgress | None, missing: MissingModel | None, says: str
) -> None:
    assert show_searchable(view(status), progress, missing) == says


def test_the_page_says_nothing_of_search_without_a_text() -> None:
    assert show_searchable(view(MediaStatus.PENDING, can_search=False), None, None) is None
