"""Inspection of a file's bytes: its type, size and sha256, whatever the client stated."""

from __future__ import annotations

import hashlib
import struct
import zipfile
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus.errors import FileTooLarge, IngestTimeout, InvalidFileType
from nexus.media import inspect as looking
from nexus.media.inspect import PDF_WITHIN, inspect, looks_like
from nexus.states.media import Kind
from nexus.storage.digest import HEAD, Digest
from tests.kit.uploads import EPUB, unique_epub, unique_pdf

MOST = 10_000


def look(body: bytes, kind: Kind = Kind.PDF, piece: int = 7, most: int = MOST) -> Digest:
    pieces = (body[at : at + piece] for at in range(0, len(body), piece))
    return inspect(pieces, kind, most, 60)


@pytest.mark.parametrize("piece", [1, 7, HEAD - 1, HEAD, HEAD + 1, MOST])
def test_the_size_and_hash_of_a_file_are_those_of_its_bytes(piece: int) -> None:
    body = unique_pdf(HEAD + 123)
    assert look(body, piece=piece) == Digest(len(body), hashlib.sha256(body).hexdigest(), body[:HEAD])


@pytest.mark.parametrize(
    ("body", "is_pdf"),
    [
        (b"%PDF-1.7", True),
        (b"%PDF-", True),
        (b"\xef\xbb\xbf%PDF-1.4", True),
        (bytes(PDF_WITHIN - 5) + b"%PDF-", True),
        (bytes(PDF_WITHIN - 4) + b"%PDF-", False),
        (bytes(PDF_WITHIN) + b"%PDF-", False),
        (b"%PDF", False),
        (b"%pdf-1.7", False),
        (b"", False),
        (b"<html>", False),
        (unique_epub(), False),
    ],
    ids=[
        "usual",
        "bare",
        "after a mark",
        "at 1019",
        "at 1020",
        "at 1024",
        "cut",
        "small",
        "none",
        "a page",
        "an EPUB",
    ],
)
def test_a_pdf_says_so_in_its_first_1024_bytes(body: bytes, is_pdf: bool) -> None:
    assert looks_like(Kind.PDF, body) is is_pdf


def header(
    name: bytes = b"mimetype", content: bytes = EPUB.encode(), extra: bytes = b"", method: int = 0
) -> bytes:
    """The first local header of a ZIP, by hand."""
    fields = (b"PK\x03\x04", 20, 0, method, 0, 0, 0, len(content), len(content), len(name), len(extra))
    return struct.pack("<4sHHHHHIIIHH", *fields) + name + extra + content


@pytest.mark.parametrize(
    ("body", "is_epub"),
    [
        (unique_epub(), True),
        (unique_epub(method=zipfile.ZIP_DEFLATED), True),
        (header(), True),
        (header(extra=bytes(100)), True),
        (header(content=EPUB.encode() + b"\r\n"), True),
        (unique_epub("application/zip"), False),
        (unique_epub(f" {EPUB}"), False),
        (header(b"mimetypes"), False),
        (header(b"a.xhtml "), False),
        (header(extra=bytes(5000)), False),
        (header(method=8), False),
        (header(method=8, content=b"\xff" * 30), False),
        (b"PK\x05\x06" + bytes(18), False),
        (b"PK\x03\x04", False),
        (header()[:37], False),
        (header()[:40], False),
        (b"", False),
        (unique_pdf(), False),
        (EPUB.encode(), False),
    ],
    ids=[
        "made",
        "deflated",
        "by hand",
        "with extra",
        "with a line break",
        "another type",
        "after a space",
        "a longer name",
        "another name",
        "too much extra",
        "not deflated",
        "no deflate",
        "an empty ZIP",
        "four bytes",
        "cut in its name",
        "cut in its type",
        "nothing",
        "a PDF",
        "no ZIP",
    ],
)
def test_an_epub_is_a_zip_that_begins_with_its_type(body: bytes, is_epub: bool) -> None:
    assert looks_like(Kind.EPUB, body[:HEAD]) is is_epub


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind not in {Kind.PDF, Kind.EPUB}])
def test_no_file_looks_like_another_kind(kind: Kind) -> None:
    assert not looks_like(kind, unique_pdf())
    assert not looks_like(kind, unique_epub())


def test_a_file_of_another_type_is_refused() -> None:
    with pytest.raises(InvalidFileType, match="not a PDF"):
        look(unique_epub())
    with pytest.raises(InvalidFileType, match="not an EPUB"):
        look(unique_pdf(), Kind.EPUB)
    with pytest.raises(InvalidFileType):
        look(b"")


def test_a_file_of_the_largest_size_is_accepted_and_one_byte_more_is_refused() -> None:
    assert look(unique_pdf(MOST)).size == MOST
    with pytest.raises(FileTooLarge):
        look(unique_pdf(MOST + 1))


def test_a_file_that_is_too_large_is_not_read_to_its_end() -> None:
    read = 0

    def endless() -> Iterator[bytes]:
        nonlocal read
        while True:
            read += 1
            yield bytes(100)

    with pytest.raises(FileTooLarge):
        inspect(endless(), Kind.PDF, MOST, 60)
    assert read == MOST // 100 + 1


class SlowTime:
    """A clock that advances a second per reading."""

    now = 0.0

    def monotonic(self) -> float:
        self.now += 1
        return self.now


def test_inspecting_a_file_ends_if_the_store_is_too_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looking, "time", SlowTime())
    body, taken = unique_pdf(), 0

    def slow() -> Iterator[bytes]:
        nonlocal taken
        while True:
            taken += 1
            yield body

    with pytest.raises(IngestTimeout):
        inspect(slow(), Kind.PDF, 2**40, 5)
    assert taken == 6
    assert inspect([body] * 4, Kind.PDF, MOST, 5).size == 4 * len(body)


@given(st.binary(max_size=5000), st.sampled_from([b"", b"PK\x03\x04", header()[:38], header(method=8)[:38]]))
def test_any_bytes_can_be_inspected(body: bytes, beginning: bytes) -> None:
    for kind in Kind:
        looks_like(kind, beginning + body)


@given(st.binary(max_size=2000), st.integers(1, 700))
def test_the_verdict_on_a_file_does_not_depend_on_its_chunks(body: bytes, piece: int) -> None:
    whole = b"%PDF-" + body
    assert look(whole, piece=piece) == look(whole, piece=MOST)
