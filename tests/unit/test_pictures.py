"""What a picture is, and how large, is read from its first bytes; lies and damage are harmless."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus.extract import Extraction, Facts, Fragment
from nexus.extract.pictures import PictureHead, read_picture_head
from nexus.media.texts import MOST_PICTURES, picture_sources
from tests.kit.documents import GIF, PNG
from tests.kit.pictures import (
    AVIF,
    JPEG,
    SVG,
    WEBP_EXTENDED,
    WEBP_LOSSLESS,
    WEBP_LOSSY,
    png,
    png_head,
)

TRUE = {
    "png": (PNG, ("png", 1, 1)),
    "a larger png": (png(300, 200), ("png", 300, 200)),
    "gif": (GIF, ("gif", 1, 1)),
    "jpeg": (JPEG, ("jpeg", 1, 1)),
    "lossy webp": (WEBP_LOSSY, ("webp", 1, 1)),
    "lossless webp": (WEBP_LOSSLESS, ("webp", 1, 1)),
    "extended webp": (WEBP_EXTENDED, ("webp", 1, 1)),
    "avif": (AVIF, ("avif", 2, 2)),
}


@pytest.mark.parametrize("name", TRUE)
def test_the_head_of_a_picture_tells_its_format_and_size(name: str) -> None:
    data, expected = TRUE[name]
    assert read_picture_head(data) == PictureHead(*expected)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"<html><p>Not a picture.",
        SVG,
        b"\x89PNG\r\n\x1a\n" + b"<script>" * 9,
        png_head(0, 5),
        b"\xff\xd8\xff\xda" + bytes(50),
        b"GIF89a" + bytes(50),
        b"RIFF\0\0\0\0WEBPVP9 " + bytes(50),
        b"\0\0\0\x20ftypheic" + bytes(50),
    ],
    ids=["nothing", "html", "svg", "png", "no width", "no frame", "gif", "webp", "another image"],
)
def test_what_is_no_picture_has_no_head(data: bytes) -> None:
    assert read_picture_head(data) is None


def test_a_few_bytes_can_not_hide_how_large_they_are() -> None:
    assert read_picture_head(png_head(100_000, 100_000)) == PictureHead("png", 100_000, 100_000)
    small_screen = GIF.replace(b"\x2c" + bytes(4) + b"\x01\0\x01\0", b"\x2c" + bytes(4) + b"\xff\xff\xff\xff")
    assert read_picture_head(small_screen) == PictureHead("gif", 0xFFFF, 0xFFFF), (
        "browsers make room for its first frame"
    )
    wide = AVIF.replace(struct.pack(">II", 2, 2), struct.pack(">II", 90_000, 90_000), 1)
    assert read_picture_head(wide) == PictureHead("avif", 90_000, 90_000)


@pytest.mark.parametrize("name", TRUE)
@given(cut=st.integers(0, 120), noise=st.binary(max_size=60))
def test_damaged_heads_are_read_without_an_error(name: str, cut: int, noise: bytes) -> None:
    data = TRUE[name][0]
    head = read_picture_head(data[:cut] + noise + data[cut + len(noise) :])
    assert head is None or head.pixels > 0


def article(html: str, lead: str | None = None) -> Extraction:
    return Extraction("A title", (Fragment("", html),), Facts(lead_image=lead))


def test_each_picture_of_a_text_is_named_once_and_the_leading_one_first() -> None:
    html = (
        '<img src="https://a.example/1.png?x=1&amp;y=2" alt=""><img alt="b" src="http://a.example/2.png">'
        '<img src="https://a.example/1.png?x=1&amp;y=2"><img src="asset:inside.png">'
    )
    assert picture_sources(article(html, "https://a.example/lead.png")) == [
        "https://a.example/lead.png",
        "https://a.example/1.png?x=1&y=2",
        "http://a.example/2.png",
    ]
    assert picture_sources(article(html, "asset:inside.png"))[0] == "https://a.example/1.png?x=1&y=2"


def test_of_ten_thousand_pictures_only_some_are_remembered() -> None:
    html = "".join(f'<img src="https://a.example/{number}">' for number in range(10_000))
    assert len(picture_sources(article(html))) == MOST_PICTURES
