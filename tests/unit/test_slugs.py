"""The name of a story in addresses and files."""

from uuid import UUID

import pytest

from nexus.editorial.stories import MOST_SLUG, slug

STORY = UUID("6f1c9a52-7d0e-4d8e-9d7c-0a7e3a1b2c3d")


@pytest.mark.parametrize(
    ("headline", "words"),
    [
        ("Harbour closed: storm “Ada” nears", "harbour-closed-storm-ada-nears"),
        ("Große Straße gesperrt", "grosse-strasse-gesperrt"),
        ("Гавань закрыта", "gavan-zakryta"),
        ("…", "story"),
    ],
)
def test_a_slug_is_readable_in_any_script(headline: str, words: str) -> None:
    assert slug(headline, STORY) == f"{words}-6f1c9a527d0e"


def test_a_slug_has_a_limited_length() -> None:
    assert len(slug("word " * 100, STORY)) <= MOST_SLUG + len("-6f1c9a527d0e")
