"""Small PDFs and EPUBs, made here, whole or broken on purpose."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Mapping, Sequence

EPUB_TYPE = "application/epub+zip"
OPF = "OEBPS/book.opf"
CONTAINER = (
    '<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    f'<rootfile full-path="{OPF}" media-type="application/oebps-package+xml"/></rootfiles></container>'
)
#: One pixel each.
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c4944415408d763f8cfc000000301"
    "0100c9fe92ef0000000049454e44ae426082"
)
GIF = bytes.fromhex("47494638396101000100800000ffffff00000021f90401000000002c00000000010001000002024401003b")


def _literal(text: str) -> bytes:
    """A string of a PDF."""
    raw = text.encode("latin-1")
    for mark in (b"\\", b"(", b")"):
        raw = raw.replace(mark, b"\\" + mark)
    return b"(" + raw + b")"


def _assemble(objects: Sequence[bytes], trailer: bytes) -> bytes:
    body = bytearray(b"%PDF-1.7\n")
    places = []
    for number, content in enumerate(objects, 1):
        places.append(len(body))
        body += b"%d 0 obj\n%b\nendobj\n" % (number, content)
    start = len(body)
    body += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    body += b"".join(b"%010d 00000 n \n" % place for place in places)
    body += b"trailer\n<</Size %d/Root 1 0 R%b>>\nstartxref\n%d\n%%%%EOF\n" % (
        len(objects) + 1,
        trailer,
        start,
    )
    return bytes(body)


def _page_content(lines: Iterable[str]) -> bytes:
    rows = b"".join(b"%b Tj T*\n" % _literal(line) for line in lines)
    drawn = b"BT /F 10 Tf 12 TL 50 780 Td\n" + rows + b"ET"
    return b"<</Length %d>>stream\n%b\nendstream" % (len(drawn), drawn)


def pdf(
    *pages: str,
    info: Mapping[str, str] | None = None,
    bookmarks: Iterable[tuple[str, int]] = (),
    language: str | None = None,
    extra: bytes = b"",
) -> bytes:
    """A PDF with these texts as its pages, line by line, and bookmarks as titles and page indexes."""
    marks = list(bookmarks)
    first_page = 5
    first_mark = first_page + 2 * len(pages)
    kids = b" ".join(b"%d 0 R" % (first_page + 2 * index) for index in range(len(pages)))
    outline = b"/Outlines 4 0 R" if marks else b""
    spoken = b"/Lang " + _literal(language) if language else b""
    objects = [
        b"<</Type/Catalog/Pages 2 0 R%b%b>>" % (outline, spoken),
        b"<</Type/Pages/Kids[%b]/Count %d>>" % (kids, len(pages)),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
        b"<</Type/Outlines/First %d 0 R/Last %d 0 R>>" % (first_mark, first_mark + len(marks) - 1),
    ]
    for index, page in enumerate(pages):
        objects.append(
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Resources<</Font<</F 3 0 R>>>>/Contents %d 0 R>>"
            % (first_page + 2 * index + 1)
        )
        objects.append(_page_content(page.split("\n")))
    for index, (title, target) in enumerate(marks):
        following = b"/Next %d 0 R" % (first_mark + index + 1) if index + 1 < len(marks) else b""
        objects.append(
            b"<</Title %b/Parent 4 0 R/Dest[%d 0 R /Fit]%b>>"
            % (_literal(title), first_page + 2 * target, following)
        )
    objects.append(
        b"<<%b>>" % b"".join(b"/%b %b" % (k.encode(), _literal(v)) for k, v in (info or {}).items())
    )
    return _assemble(objects, b"/Info %d 0 R%b" % (len(objects), extra))


def locked_pdf() -> bytes:
    """A PDF that asks for a password; none opens it."""
    lock = (
        b"/ID[<00112233445566778899aabbccddeeff><00112233445566778899aabbccddeeff>]"
        b"/Encrypt<</Filter/Standard/V 2/R 3/Length 128/P -44/O<%b>/U<%b>>>" % (b"41" * 32, b"42" * 32)
    )
    return pdf("Nobody reads this.", extra=lock)


def packed(entries: Mapping[str, bytes | str], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip archive that begins with its mimetype, uncompressed."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", method) as archive:
        archive.writestr(zipfile.ZipInfo("mimetype"), EPUB_TYPE)
        for name, content in entries.items():
            archive.writestr(name, content)
    return whole.getvalue()


def chapter(body: str, head: str = "", doctype: str = "") -> str:
    return (
        f'<?xml version="1.0" encoding="utf-8"?>{doctype}<html xmlns="http://www.w3.org/1999/xhtml" '
        'xmlns:epub="http://www.idpf.org/2007/ops" xmlns:xlink="http://www.w3.org/1999/xlink">'
        f"<head><title>A chapter</title>{head}</head><body>{body}</body></html>"
    )


def opf(
    spine: Iterable[str],
    others: Mapping[str, str] | None = None,
    metadata: str = "",
    spine_attributes: str = "",
) -> str:
    """A package: chapters in order, then other items as `href` and attributes."""
    names = list(spine)
    items = [
        f'<item id="c{n}" href="{name}" media-type="application/xhtml+xml"/>' for n, name in enumerate(names)
    ]
    items += [f'<item id="o{n}" href="{k}" {v}/>' for n, (k, v) in enumerate((others or {}).items())]
    refs = "".join(f'<itemref idref="c{n}"/>' for n in range(len(names)))
    return (
        '<package xmlns="http://www.idpf.org/2007/opf" version="3.0"><metadata '
        f'xmlns:dc="http://purl.org/dc/elements/1.1/">{metadata}</metadata><manifest>{"".join(items)}</manifest>'
        f"<spine {spine_attributes}>{refs}</spine></package>"
    )


def epub(
    chapters: Mapping[str, str | bytes],
    others: Mapping[str, tuple[bytes | str, str]] | None = None,
    metadata: str = "<dc:title>A Book</dc:title>",
    spine_attributes: str = "",
    more: Mapping[str, bytes | str] | None = None,
) -> bytes:
    """A book. `others` are items with their content and attributes; `more` stands outside of the package."""
    items = {name: attributes for name, (_, attributes) in (others or {}).items()}
    entries: dict[str, bytes | str] = {
        "META-INF/container.xml": CONTAINER,
        OPF: opf(chapters, items, metadata, spine_attributes),
    }
    entries |= {f"OEBPS/{name}": content for name, content in chapters.items()}
    entries |= {f"OEBPS/{name}": content for name, (content, _) in (others or {}).items()}
    return packed(entries | dict(more or {}))
