"""Extractors of other families: where they agree, a block is content."""

from __future__ import annotations

import logging

import trafilatura
from lxml.etree import _Element as Element
from resiliparse.extract.html2text import extract_plain_text

#: A page with more tags than this is judged without them: their time is not bounded by its size.
MOST_TAGS = 30_000

# It has something to say about every page that is no article.
logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
logging.getLogger("justext").setLevel(logging.CRITICAL)


def ask(root: Element, html: str) -> tuple[str, ...]:
    """What each of them keeps of a page, as text."""
    if html.count("<") > MOST_TAGS:
        return "", ""
    return _trafilatura(root), _resiliparse(html)


def _trafilatura(root: Element) -> str:
    return trafilatura.extract(root, fast=True, include_comments=False) or ""


def _resiliparse(html: str) -> str:
    return str(extract_plain_text(html, main_content=True, links=False, alt_texts=False))
