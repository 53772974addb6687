"""Bytes into characters, as browsers do it: byte order mark, header, meta tag, then a guess."""

from __future__ import annotations

import codecs
import re

import charset_normalizer
from resiliparse.parse.encoding import detect_encoding, map_encoding_to_html5

MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
#: Python's own names are narrower than what the web means by them.
WIDER = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "big5": "big5hkscs",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    # No page is written in it; short Russian texts look like it to detectors.
    "mac-cyrillic": "cp1251",
}
#: Browsers look at 1,024 bytes and begin anew when a tag comes later; so this looks a little further at once.
HEAD = 4096
SAMPLE = 64 * 1024

_COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)
_META = re.compile(rb"<meta\b[^>]*?\bcharset\s*=\s*[\"']?\s*([\w:.+-]+)", re.IGNORECASE)
_XML = re.compile(rb"\A\s*<\?xml[^>]*?\bencoding\s*=\s*[\"']([\w:.+-]+)", re.IGNORECASE)


def decode(data: bytes, header: str | None) -> str:
    """The characters of a page. What can't be decoded becomes U+FFFD."""
    for mark, encoding in MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "replace")
    return data.decode(_named(header) or _declared(data) or _guessed(data), "replace")


def _named(label: str | None) -> str | None:
    """Python's codec for a label of the web; None where browsers know none of that name."""
    found = map_encoding_to_html5(label.strip(), fallback_utf8=False) if label and label.strip() else None
    return _wider(found) if found else None


def _wider(encoding: str) -> str:
    name = WIDER.get(encoding.lower(), encoding)
    try:
        return codecs.lookup(name).name
    except LookupError:
        return "utf-8"


def _declared(data: bytes) -> str | None:
    head = data[:HEAD]
    found = _META.search(_COMMENT.sub(b"", head)) or _XML.search(head)
    encoding = _named(found[1].decode("ascii", "ignore")) if found else None
    # A tag that could be read is no UTF-16.
    return "utf-8" if encoding and encoding.startswith("utf-16") else encoding


def _guessed(data: bytes) -> str:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        sample = data[:SAMPLE]
        found = detect_encoding(sample, html5_compatible=False)
        if not found or found.lower() in {"utf-8", "ascii"}:
            best = charset_normalizer.from_bytes(sample).best()
            found = best.encoding if best else None
        return _named(found) or (_wider(found) if found else "cp1252")
    return "utf-8"
