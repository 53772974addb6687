"""Bytes into characters, as browsers do it: byte order mark, header, declaration in the page, then a guess."""

from __future__ import annotations

import codecs
import re

import charset_normalizer
import webencodings
from resiliparse.parse.encoding import detect_encoding

#: UTF-32 comes first: its mark begins with that of UTF-16.
MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
#: Browsers decode GBK as its superset. The two others have no codec: one refuses every page, one is for scripts.
EXCEPTIONS = {"gbk": "gb18030", "replacement": None, "x-user-defined": None}
#: No page is written in this one, but short Russian texts look like it to detectors.
UNLIKELY = {"mac-cyrillic": "cp1251"}
#: Browsers look at 1,024 bytes and start over if a declaration comes later; this looks further at once.
HEAD = 4096
SAMPLE = 64 * 1024

_COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)
_META = re.compile(rb"<meta\b[^>]*?\bcharset\s*=\s*[\"']?\s*([\w:.+-]+)", re.IGNORECASE)
_XML = re.compile(rb"\A\s*<\?xml[^>]*?\bencoding\s*=\s*[\"']([\w:.+-]+)", re.IGNORECASE)


def codec_for(label: str | None) -> str | None:
    """Return Python's codec for a charset label, or None if browsers don't know the label."""
    found = webencodings.lookup(label) if label else None
    return EXCEPTIONS.get(found.name, found.codec_info.name) if found else None


def decode_marked(data: bytes) -> str | None:
    """Decode bytes that begin with a byte order mark. None if they have none."""
    for mark, codec in MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(codec, "replace")
    return None


def decode_page(data: bytes, header: str | None) -> str:
    """Decode a page. What can't be decoded becomes U+FFFD."""
    marked = decode_marked(data)
    if marked is not None:
        return marked
    return data.decode(codec_for(header) or _codec_in_page(data) or _guessed_codec(data), "replace")


def decode_xml(data: bytes) -> str:
    """Decode XML: by its mark or declaration, otherwise as UTF-8. What can't be decoded becomes U+FFFD."""
    marked = decode_marked(data)
    if marked is not None:
        return marked
    return data.decode(_declared_codec(_XML.search(data[:HEAD])) or "utf-8", "replace")


def _codec_in_page(data: bytes) -> str | None:
    head = data[:HEAD]
    return _declared_codec(_META.search(_COMMENT.sub(b"", head)) or _XML.search(head))


def _declared_codec(found: re.Match[bytes] | None) -> str | None:
    """A declaration that could be read byte by byte is not in UTF-16, whatever it says."""
    codec = codec_for(found[1].decode("ascii", "ignore")) if found else None
    return "utf-8" if codec and codec.startswith("utf-16") else codec


def _guessed_codec(data: bytes) -> str:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        sample = data[:SAMPLE]
        found = detect_encoding(sample, html5_compatible=False)
        if not found or found.lower() in {"utf-8", "ascii"}:
            best = charset_normalizer.from_bytes(sample).best()
            found = best.encoding if best else "cp1252"
        try:
            name = codecs.lookup(found).name
        except LookupError:
            name = "utf-8"
        return UNLIKELY.get(name) or codec_for(found) or codec_for(name) or name
    return "utf-8"
