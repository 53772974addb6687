"""Somebody who adds pages, refreshes, retries and deletes them, and puts them into libraries."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from chaos.actors import Actor
from chaos.ledger import Edition, Gone, Held, Shelved
from chaos.site import mark, paper

KINDS = ("good", "good", "slow", "news", "news", "paper", "paper", "missing", "thin")
#: Pages that all readers add and delete, and that share one row each.
SHARED = tuple(f"everyones{number}x" for number in range(4))
MOST_HELD = 25


@dataclass
class Page:
    """One address as this reader knows it."""

    kind: str
    name: str
    media_id: str = ""
    shelves: set[str] = field(default_factory=set)

    @property
    def path(self) -> str:
        return f"/{self.kind}/{self.name}"


class Reader(Actor):
    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._held: dict[str, Page] = {}
        #: Addresses with an operation that got no answer: nobody knows what to expect of them.
        self._doubted: set[str] = set()
        self._libraries: list[str] = []

    def act(self) -> None:
        weights = {
            self.add: 8,
            self.add_shared: 4,
            self.change_mind: 2,
            self.refresh: 6,
            self.retry: 2,
            self.shelve: 2,
            self.unshelve: 1,
            self.delete: 2 if len(self._held) < MOST_HELD else 12,
        }
        self.chance.choices(list(weights), list(weights.values()))[0]()

    def add(self) -> None:
        self._add(Page(self.chance.choice(KINDS), self.new_name()))

    def add_shared(self) -> None:
        self._add(Page(self.chance.choice(("good", "paper")), self.chance.choice(SHARED)))

    def change_mind(self) -> None:
        """Delete a paper while it is being fetched."""
        page = Page("paper", self.new_name())
        self._add(page)
        self.over.wait(self.chance.uniform(0.0, 1.0))
        if page.path in self._held:
            self._delete(page)

    def _add(self, page: Page) -> None:
        if page.path in self._doubted or page.path in self._held:
            return
        self.ledger.withdraw("gone", self.user, page.path)
        body = {"kind": "web_article", "url": self.site.url(page.path)}
        answer = self.client.ask("POST", "/media/url", json=body)
        if not answer.ok:
            self._doubted.add(page.path)
            return
        page.media_id = answer.data["media_id"]
        self._held[page.path] = page
        digest = sha256(paper(page.name)).hexdigest() if page.kind == "paper" else None
        held = Held(self.user, page.media_id, mark(page.name), digest)
        self.ledger.promise("held", self.user, page.media_id, that=held)

    def _one(self, *kinds: str) -> Page | None:
        known = [page for page in self._held.values() if not kinds or page.kind in kinds]
        return self.chance.choice(known) if known else None

    def refresh(self) -> None:
        """Sometimes twice: the second request comes while the first one is being done."""
        page = self._one("news")
        if page is None:
            return
        for _ in range(self.chance.randint(1, 2)):
            number = self.site.publish(page.name)
            answer = self.client.ask("POST", f"/media/{page.media_id}/refresh")
            if answer.ok:
                promised = Edition(self.user, page.media_id, page.name, number)
                self.ledger.promise("edition", self.user, page.media_id, that=promised)
            self.over.wait(self.chance.uniform(0.0, 2.0))

    def retry(self) -> None:
        """Retry an item, even one that has not failed: that is refused and changes nothing."""
        page = self._one("missing", "thin", "paper")
        if page is not None:
            self.client.ask("POST", f"/media/{page.media_id}/retry")

    def shelve(self) -> None:
        if len(self._libraries) < 2:
            made = self.client.ask("POST", "/libraries", json={"name": self.new_name()})
            if made.ok:
                self._libraries.append(made.data["id"])
        page = self._one()
        if page is None or not self._libraries:
            return
        library = self.chance.choice(self._libraries)
        body = {"media_id": page.media_id}
        self._shelved(page, library, self.client.ask("POST", f"/libraries/{library}/media", json=body), True)

    def unshelve(self) -> None:
        page = self._one()
        if page is None or not page.shelves:
            return
        library = self.chance.choice(sorted(page.shelves))
        answer = self.client.ask("DELETE", f"/libraries/{library}/media/{page.media_id}")
        self._shelved(page, library, answer, False)

    def _shelved(self, page: Page, library: str, answer: Any, there: bool) -> None:
        about = ("shelf", self.user, page.media_id, library)
        if answer.ok:
            self.ledger.promise(*about, that=Shelved(self.user, library, page.media_id, there))
            page.shelves.add(library) if there else page.shelves.discard(library)
        elif answer.lost:
            # It may still happen after a later request, so leave this library alone from now on.
            self.ledger.withdraw(*about)
            page.shelves.discard(library)
            self._libraries = [known for known in self._libraries if known != library]

    def delete(self) -> None:
        page = self._one()
        if page is not None:
            self._delete(page)

    def _delete(self, page: Page) -> None:
        del self._held[page.path]
        for about in ("held", "edition", "shelf"):
            self.ledger.withdraw(about, self.user, page.media_id)
        answer = self.client.ask("DELETE", f"/media/{page.media_id}")
        if answer.ok:
            self.ledger.promise("gone", self.user, page.path, that=Gone(self.user, page.media_id))
        else:
            self._doubted.add(page.path)
