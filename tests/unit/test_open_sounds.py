"""A sound that is passed on lets go of its site as soon as nobody wants it, also before its first piece."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from nexus.errors import SourceUnavailable
from nexus.fetch.streams import Stream
from nexus.media.recordings.sound import Sound, SoundPlace, open_sound


class Site:
    """Answers with three pieces, and says whether somebody still reads."""

    def __init__(self, *, is_out_of_range: bool = False, kind: str = "audio/mpeg") -> None:
        self._kind = kind
        self.is_open = False
        self._is_out_of_range = is_out_of_range

    @contextmanager
    def stream(self, url: str, accept: str, **_: Any) -> Iterator[Stream]:
        self.is_open = True
        pieces = iter(() if self._is_out_of_range else (b"1", b"2", b"3"))
        try:
            yield Stream(url, self._kind, None, None, None, self._is_out_of_range, True, pieces)
        finally:
            self.is_open = False


def opened(site: Site) -> Sound:
    files: Any = None
    fetcher: Any = site
    return open_sound(fetcher, files, SoundPlace("https://a.example/1.mp3", "audio/mpeg", None), None)


@pytest.mark.parametrize("is_out_of_range", [True, False])
def test_a_sound_that_nobody_begins_to_read_is_closed(is_out_of_range: bool) -> None:
    site = Site(is_out_of_range=is_out_of_range)
    sound = opened(site)
    assert site.is_open
    sound.pieces.close()
    assert not site.is_open


def test_a_sound_closes_at_its_end_and_when_its_reader_goes() -> None:
    site = Site()
    assert list(opened(site).pieces) == [b"1", b"2", b"3"]
    assert not site.is_open
    sound = opened(site)
    assert next(sound.pieces) == b"1"
    sound.pieces.close()
    assert not site.is_open


@pytest.mark.parametrize("kind", ["text/html", "image/svg+xml", "audio/x+xml", "audio/", "audio/a b", ""])
def test_what_a_browser_would_show_is_no_sound(kind: str) -> None:
    site = Site(kind=kind)
    files: Any = None
    fetcher: Any = site
    with pytest.raises(SourceUnavailable):
        open_sound(fetcher, files, SoundPlace("https://a.example/1", "text/html", None), None)
    assert not site.is_open
