"""Peers that read articles, as the tool that scores them calls them: a page and its address in, what they read out."""

from __future__ import annotations

import readability as readability_lxml
import trafilatura as the_trafilatura
from lxml.html import fromstring
from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.encoding import bytes_to_str, detect_encoding

Page = dict[str, str | None]


def trafilatura(html: bytes | str, url: str | None) -> Page:
    return {"text": the_trafilatura.extract(html, url=url)}


def resiliparse(html: bytes | str, _: str | None) -> Page:
    text = html if isinstance(html, str) else bytes_to_str(html, detect_encoding(html))
    return {"text": extract_plain_text(text, main_content=True)}


def readability(html: bytes | str, _: str | None) -> Page:
    document = readability_lxml.Document(html)
    return {"title": document.title(), "text": fromstring(document.summary()).text_content()}
