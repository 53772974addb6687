"""Names of objects and files: a path reveals its media and no user; a file name stays inside its header."""

from __future__ import annotations

import re
from email.message import Message
from urllib.parse import unquote
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus.states.media import FILE_KINDS
from nexus.storage.local import PATH
from nexus.storage.names import (
    EXTENSIONS,
    disposition,
    download_name,
    incoming_path,
    media_of,
    object_path,
)

ID = UUID("6f1c9a52-7d0e-4d8e-9d7c-0a7e3a1b2c3d")
PREFIXES = ["", "test_runs/abc/", "a/b/c/"]


def test_every_kind_that_is_a_file_has_an_extension() -> None:
    assert set(EXTENSIONS) == {kind.value for kind in FILE_KINDS}


def test_the_path_of_an_object_is_the_documented_one() -> None:
    assert object_path(ID, "pdf") == f"media/{ID}/original.pdf"
    assert object_path(ID, "epub", "test_runs/1/") == f"test_runs/1/media/{ID}/original.epub"


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("kind", sorted(EXTENSIONS))
def test_a_path_leads_back_to_its_media(prefix: str, kind: str) -> None:
    media_id = uuid4()
    path = object_path(media_id, kind, prefix)
    assert media_of(path, prefix) == media_id
    assert PATH.fullmatch(path)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "media",
        f"media/{ID}",
        f"media/{ID}/a/b",
        f"other/{ID}/original.pdf",
        "media/x/original.pdf",
        f"/media/{ID}/original.pdf",
        f"test_runs/1/media/{ID}/original.pdf",
    ],
)
def test_a_foreign_path_leads_to_no_media(path: str) -> None:
    assert media_of(path) is None


def test_a_path_of_another_prefix_leads_to_no_media() -> None:
    assert media_of(object_path(ID, "pdf"), "test_runs/1/") is None
    assert media_of(object_path(ID, "pdf", "test_runs/2/"), "test_runs/1/") is None


@pytest.mark.parametrize(
    "path",
    ["../a", "a/../b", "a//b", "/a", "a/", ".drafts/a", "a/.b", "", "a\\b", "a\x00", "a\n", "a b", "a%2fb"],
)
def test_no_path_leads_out_of_the_store(path: str) -> None:
    assert not PATH.fullmatch(path)


NAMES = {
    "plain": "a file.pdf",
    "quotes": 'a "b" c.pdf',
    "backslash": 'a\\".pdf',
    "semicolon": "a; filename=evil.exe",
    "line breaks": "a\r\nX-Injected: 1\r\n\r\nbody",
    "line separators": "a\u2028\u2029\x85.pdf",
    "percent": "100%41.pdf",
    "cyrillic": "книга.pdf",
    "emoji": "\U0001f600.pdf",
    "right to left": "\u202efdp.exe \u05d0\u05d1",
    "nul": "a\x00b",
    "escape": "\x1b[31m.pdf",
    "apostrophe": "it's.pdf",
    "empty": "",
}


@pytest.mark.parametrize("filename", NAMES.values(), ids=NAMES)
def test_a_file_name_stays_inside_its_header(filename: str) -> None:
    is_one_safe_header(filename)


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=300))
def test_every_generated_file_name_stays_inside_its_header(filename: str) -> None:
    is_one_safe_header(filename)


def is_one_safe_header(filename: str) -> None:
    """Two parameters and no more; a browser of today reads the exact name, an old one something harmless."""
    header = disposition(filename)
    found = re.fullmatch(
        r"attachment; filename=\"([^\"\\%;]*)\"; filename\*=UTF-8''([\w.~%-]*)", header, re.ASCII
    )
    assert found, header
    assert header.isascii()
    assert header.isprintable()
    assert len(found[1]) == len(filename)
    assert unquote(found[2]) == filename
    message = Message()
    message["Content-Disposition"] = header
    assert message.get_content_disposition() == "attachment"


def test_an_upload_waits_in_the_folder_of_its_media() -> None:
    media_id = uuid4()
    waiting = incoming_path(object_path(media_id, "pdf", "test_runs/x/"))
    assert waiting == f"test_runs/x/media/{media_id}/incoming-original.pdf"
    assert media_of(waiting, "test_runs/x/") == media_id


@pytest.mark.parametrize(
    ("filename", "content_type", "saved"),
    [
        ("quarterly.html", "application/pdf", "quarterly.pdf"),
        ("quarterly.HTML", "application/pdf; charset=binary", "quarterly.pdf"),
        ("quarterly.pdf", "application/pdf", "quarterly.pdf"),
        ("quarterly.PDF", "application/pdf", "quarterly.PDF"),
        ("quarterly.pdf.exe", "application/pdf", "quarterly.pdf.pdf"),
        ("quarterly", "application/pdf", "quarterly.pdf"),
        ("report.v2", "application/pdf", "report.v2.pdf"),
        ("evil.scr", "application/pdf", "evil.scr.pdf"),
        ("evil.exe. ", "application/pdf", "evil.pdf"),
        ("book.zip", "application/epub+zip", "book.epub"),
        ("book.epub", "application/epub+zip", "book.epub"),
        ("notes.md", "text/plain; charset=utf-8", "notes.md"),
        ("notes.html", "text/plain; charset=utf-8", "notes.txt"),
        (".html", "application/pdf", ".html.pdf"),
        (".pdf", "application/pdf", ".pdf.pdf"),
        ("...", "application/pdf", "file.pdf"),
        ("picture.png", "image/png", "picture.png"),
    ],
)
def test_a_download_has_the_extension_of_what_it_is(filename: str, content_type: str, saved: str) -> None:
    assert download_name(filename, content_type) == saved


@given(st.text(max_size=40))
def test_every_download_of_a_pdf_ends_in_pdf(filename: str) -> None:
    assert download_name(filename, "application/pdf").lower().endswith(".pdf")
