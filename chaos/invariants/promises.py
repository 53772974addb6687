"""Checks over HTTP that everything acknowledged is there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import cache, singledispatchmethod
from hashlib import sha256
from typing import Any
from uuid import UUID

import httpx2

from chaos.invariants import Violation
from chaos.ledger import Edition, Gone, Held, Import, Job, Ledger, Shelved, Story

PATIENCE = 60.0
PAGE = 100
READABLE = {"ready_for_reading", "embedding", "ready"}
JOBS = "/api/ingestion-jobs"
Headers = Callable[[UUID], Mapping[str, str]]


def check(ledger: Ledger, url: str, headers: Headers) -> Iterator[Violation]:
    with closing(Inspector(url, headers)) as inspector:
        for promise in ledger.promises():
            for what in inspector.broken(promise):
                yield Violation("what was acknowledged is kept", f"{what}: {promise}")


class Inspector:
    """Check every promise; describe those that are broken."""

    def __init__(self, url: str, headers: Headers) -> None:
        self._http = httpx2.Client(base_url=url, timeout=PATIENCE)
        self._headers = headers
        self._known: dict[UUID, Mapping[str, str]] = {}

    def close(self) -> None:
        self._http.close()

    @singledispatchmethod
    def broken(self, promise: Any) -> Iterator[str]:
        raise TypeError(promise)

    @broken.register
    def _held(self, promise: Held) -> Iterator[str]:
        path = f"/media/{promise.media_id}"
        found = self._ask(promise.user, path)
        if found.status_code != 200:
            yield f"the item answers {found.status_code}"
            return
        item = found.json()["data"]
        if item["processing_status"] in READABLE:
            text = self._text(promise.user, promise.media_id)
            if promise.mark not in text:
                yield f"its text is another's or none ({len(text)} characters)"
        elif item["processing_status"] != "failed" or not item["last_error_message"]:
            yield f"it is {item['processing_status']}, neither readable nor failed with a reason"
        if promise.sha256 and (item["kind"] == "pdf" or item["processing_status"] in READABLE):
            yield from self._broken_file(promise)

    def _broken_file(self, promise: Held) -> Iterator[str]:
        link = self._ask(promise.user, f"/media/{promise.media_id}/file")
        if link.status_code != 200:
            yield f"there is no link to its file: {link.status_code}"
            return
        file = httpx2.get(link.json()["data"]["url"], timeout=PATIENCE)
        if file.status_code != 200:
            yield f"its link is there, its bytes are not: {file.status_code}"
        elif sha256(file.content).hexdigest() != promise.sha256:
            yield "its bytes are others"

    @broken.register
    def _gone(self, promise: Gone) -> Iterator[str]:
        status = self._ask(promise.user, f"/media/{promise.media_id}").status_code
        if status != 404:
            yield f"a deleted item answers {status}"

    @broken.register
    def _edition(self, promise: Edition) -> Iterator[str]:
        about = self._ask(promise.user, f"/media/{promise.media_id}/document")
        if about.status_code != 200:
            return  # not readable: the item's own promise says whether that is allowed
        refresh = about.json()["data"]["refresh"]
        if refresh is not None and refresh["error_code"] and refresh["error_message"]:
            return
        text = self._text(promise.user, promise.media_id)
        found = re.search(rf"edition (\d+) of {promise.name} ", text)
        if found is None or int(found[1]) < promise.number:
            yield f"the refresh was dropped: the text is of edition {found and found[1]}"

    @broken.register
    def _shelved(self, promise: Shelved) -> Iterator[str]:
        there = promise.media_id in [item["id"] for item in self._shelf(promise.user, promise.library_id)]
        if there is not promise.there:
            yield f"the library {'has' if there else 'lacks'} it"

    @broken.register
    def _job(self, promise: Job) -> Iterator[str]:
        found = self._ask(promise.user, f"{JOBS}/{promise.job_id}")
        if found.status_code != 200:
            yield f"the job answers {found.status_code}"
            return
        body = found.json()
        if promise.text is not None and body["job"]["extractedText"] != promise.text:
            yield "the text that was entered is not there"
        if len(body["stories"]) > promise.drafts:
            yield f"there are {len(body['stories'])} drafts"

    @broken.register
    def _story(self, promise: Story) -> Iterator[str]:
        found = self._ask(promise.user, f"/api/stories/{promise.story_id}")
        if found.status_code != 200:
            yield f"the story answers {found.status_code}"
            return
        story = found.json()["story"]
        if story["revision"] < promise.revision:
            yield f"the story went back to revision {story['revision']}"
        elif story["headline"] not in {promise.headline} | promise.asked_later:
            yield f"the story says {story['headline']!r}"
        elif story["revision"] == promise.revision and story["headline"] != promise.headline:
            yield f"revision {story['revision']} says {story['headline']!r}"

    @broken.register
    def _import(self, promise: Import) -> Iterator[str]:
        found = [one["id"] for one in self._libraries(promise.user) if one["name"] == promise.library]
        texts = [
            self._text(promise.user, item["id"]) for one in found for item in self._shelf(promise.user, one)
        ]
        missing = [mark for mark in promise.marks if sum(mark in text for text in texts) != 1]
        if len(found) > 1:
            yield "there are two libraries of this name"
        elif promise.there is False and found:
            yield "a discarded import is in the library"
        elif promise.there and not found:
            yield "a finished import is not there"
        elif found and (missing or len(texts) != len(promise.marks)):
            yield f"the library has {len(texts)} of {len(promise.marks)} files"

    @cache  # noqa: B019
    def _libraries(self, user: UUID) -> list[dict[str, str]]:
        """Nothing changes them any more, so ask once."""
        found: list[dict[str, str]] = self._ask(user, "/libraries").json()["data"]["items"]
        return found

    def _ask(self, user: UUID, path: str, **query: str | int) -> httpx2.Response:
        if user not in self._known:
            self._known[user] = self._headers(user)
        return self._http.get(path, headers=dict(self._known[user]), params=query)

    def _text(self, user: UUID, media_id: str) -> str:
        found = self._ask(user, f"/media/{media_id}/fragments", limit=PAGE)
        items = found.json()["data"]["items"] if found.status_code == 200 else []
        # Ignore how a reader broke the lines.
        return " ".join(" ".join(item["text"] for item in items).split())

    def _shelf(self, user: UUID, library_id: str) -> list[dict[str, Any]]:
        found = self._ask(user, f"/libraries/{library_id}/media", limit=PAGE)
        items: list[dict[str, Any]] = found.json()["data"]["items"] if found.status_code == 200 else []
        return items
