"""The web that Nexus fetches from: good pages, slow ones, papers, missing ones, and pages with new editions.

What a path answers follows from the path, so that what was read can be checked against it.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from typing import Any

from tests.kit import documents
from tests.kit.servers.web_pages import Answer, Pages

#: How long slow kinds of pages take, in seconds.
SLOW_SECONDS = {"slow": 1.0, "news": 1.0, "paper": 0.3}
SENTENCES = [
    f"The {word} sentence of this article says something about the harbour, the boats and the weather of the year."
    for word in ("first", "second", "third", "fourth", "fifth", "sixth")
]


def mark(name: str) -> str:
    """Return words that only this page has."""
    return f"This page is known as {name} to all."


def edition(number: int, name: str) -> str:
    return f"This is edition {number} of {name} and no other."


def paper(name: str) -> bytes:
    """Return a PDF, the same one at every call."""
    return documents.pdf("\n".join([mark(name), *SENTENCES]))


class Site(Pages):
    def __init__(self) -> None:
        super().__init__()
        self._editions: Counter[str] = Counter()
        self._lock = threading.Lock()

    def publish(self, name: str) -> int:
        """Publish a new edition of a page: every request from now on gets it, or a later one."""
        with self._lock:
            self._editions[name] += 1
            return self._editions[name]

    def get(self, path: str, default: Any = None) -> Any:
        _, kind, name = [*path.split("/"), "", ""][:3]
        # The edition at the time of the request, however late the answer is.
        number = self._editions[name]
        time.sleep(SLOW_SECONDS.get(kind, 0.0))
        match kind:
            case "good" | "slow":
                return _page(name, mark(name))
            case "news":
                return _page(name, f"{mark(name)} {edition(number, name)}")
            case "paper":
                return Answer(paper(name), "application/pdf")
            case "thin":
                return Answer(b"<html><body><p>Hello.</p></body></html>")
        return default


def _page(name: str, first: str) -> Answer:
    paragraphs = "".join(f"<p>{text}</p>" for text in (first, *SENTENCES))
    head = f"<title>{name}</title><meta property='og:title' content='{name}'>"
    whole = f"<!doctype html><html lang='en'><head>{head}</head><body><article><h1>{name}</h1>{paragraphs}</article>"
    return Answer(f"{whole}</body></html>".encode())
