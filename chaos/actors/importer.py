"""Somebody who imports files into new libraries: starts, pauses, resumes and discards."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from chaos.actors import Actor
from chaos.client import Answer
from chaos.ledger import Import
from chaos.site import SENTENCES, mark

#: The prefix of every imported library's name; a trap on the line to the database waits for it.
SHELF = "Shelf-"
#: How long an attempt is watched, in seconds.
WATCH = 20.0
GLANCE = 0.1


class Importer(Actor):
    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._server = self.client.servers[0]

    def run(self) -> None:
        """Wait until no import is running."""
        super().run()
        end = time.monotonic() + WATCH
        while time.monotonic() < end:
            shown = self._ask("GET", "/imports")
            if shown.ok and shown.data["status"] not in {"RUNNING", "STOPPING"}:
                return
            time.sleep(GLANCE)

    def act(self) -> None:
        name = f"{SHELF}{self.new_name()}"
        marks = tuple(self.new_name() for _ in range(self.chance.randint(2, 4)))
        opened = self._ask("POST", "/imports/batches", json={"name": name})
        if not opened.ok:
            return
        batch = opened.data["id"]
        self.promised = Import(self.user, name, tuple(map(mark, marks)))
        self._keep()
        staged = all(self._stage(batch, one).ok for one in marks)
        if staged and self._ask("POST", f"/imports/batches/{batch}/start").ok:
            self._follow()
        self._discard(batch)

    def _ask(self, method: str, path: str, **given: Any) -> Answer:
        """Ask the server that serves imports, and remember which one it is."""
        answer = self.client.ask(method, path, server=self._server, **given)
        if answer.status == 0 or (answer.status == 409 and "another process" in str(answer.body)):
            self._server = self.chance.choice(self.client.servers)
        return answer

    def _stage(self, batch: str, name: str) -> Answer:
        body = "\n\n".join([mark(name), *SENTENCES]).encode()
        path = f"/imports/batches/{batch}/sources"
        return self._ask("POST", path, params={"name": f"{name}.txt"}, content=body)

    def _follow(self) -> None:
        """Follow an attempt to its end, with a pause or two on the way."""
        end = time.monotonic() + WATCH
        pauses = self.chance.randint(0, 2)
        while time.monotonic() < end and not self.over.wait(self.chance.uniform(0, GLANCE)):
            shown = self._ask("GET", "/imports")
            status = shown.data["status"] if shown.ok else ""
            if status == "COMPLETE" and shown.data["batch_id"] is None:
                self._told(there=True)
                return
            if status == "PAUSED":
                if self.chance.random() < 0.5:
                    return
                self._ask("POST", "/imports/attempt/resume")
            elif status == "RUNNING" and pauses:
                pauses -= 1
                self._ask("POST", "/imports/attempt/pause")
            elif status == "IDLE":
                return

    def _discard(self, batch: str) -> None:
        """Discard a batch. One that is in its library no longer exists."""
        if self.promised.there is None and self._ask("DELETE", f"/imports/batches/{batch}").ok:
            self._told(there=False)

    def _told(self, *, there: bool) -> None:
        self.promised = replace(self.promised, there=there)
        self._keep()

    def _keep(self) -> None:
        self.ledger.promise("import", self.user, self.promised.library, that=self.promised)
