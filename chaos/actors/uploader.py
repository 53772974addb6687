"""Somebody who uploads PDFs: good ones, the same ones again, and bad ones, which they then replace."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from chaos.actors import Actor
from chaos.ledger import Gone, Held
from chaos.site import mark, paper

PDF = "application/pdf"
#: How often an upload is tried.
TRIES = 4
MOST_HELD = 25


class Uploader(Actor):
    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        #: The names of files, by the ids of the items they became.
        self._held: dict[str, str] = {}

    def act(self) -> None:
        verbs = [self.upload, self.upload_again, self.upload_wrong, self.delete]
        self.chance.choices(verbs, [5, 3, 5, 1 if len(self._held) < MOST_HELD else 10])[0]()

    def upload(self) -> None:
        self._upload(self.new_name())

    def upload_again(self) -> None:
        """Upload a file again: the first one stays."""
        if self._held:
            self._upload(self.chance.choice(sorted(self._held.values())))

    def _upload(self, name: str) -> None:
        """Send and confirm a file, sometimes twice, like a client that lost its place."""
        body = paper(name)
        begun = self.client.ask("POST", "/media/upload/init", json=_terms(name, body))
        for _ in range(self.chance.choice((1, 1, 1, 2)) if begun.ok else 0):
            self._send(begun.data, body)
            self._confirm(begun.data["media_id"], name)

    def _send(self, target: dict[str, Any], body: bytes) -> None:
        """Send until it succeeds. If the file already exists (409, or 412 from S3), an answer was lost."""
        for _ in range(TRIES):
            sent = self.client.put(target["upload_url"], target["upload_headers"], body)
            if sent.ok or sent.status in {409, 412} or self.over.wait(0.3):
                return

    def _confirm(self, media_id: str, name: str) -> None:
        for _ in range(TRIES):
            answer = self.client.ask("POST", f"/media/{media_id}/ingest")
            if answer.ok:
                self._keep(answer.data["media_id"], name)
            if not answer.lost or self.over.wait(0.3):
                return

    def _keep(self, media_id: str, name: str) -> None:
        self._held[media_id] = name
        held = Held(self.user, media_id, mark(name), sha256(paper(name)).hexdigest())
        self.ledger.promise("held", self.user, media_id, that=held)

    def upload_wrong(self) -> None:
        """Upload a bad file, then replace it with a good one at the same id, mostly on the other server."""
        name = self.new_name()
        wrong = f"This is no PDF, it is {name}.".encode() * 20
        begun = self.client.ask("POST", "/media/upload/init", json=_terms(name, wrong))
        if not begun.ok:
            return
        media_id = begun.data["media_id"]
        self._send(begun.data, wrong)
        self._confirm(media_id, name)
        body = paper(name)
        for _ in range(TRIES):
            again = self.client.ask("POST", f"/media/{media_id}/retry", json=_terms(name, body))
            if again.ok and again.data.get("upload"):
                self._send(again.data["upload"], body)
                self._confirm(media_id, name)
            if not again.lost or self.over.wait(0.3):
                return

    def delete(self) -> None:
        if not self._held:
            return
        media_id = self.chance.choice(sorted(self._held))
        del self._held[media_id]
        self.ledger.withdraw("held", self.user, media_id)
        if self.client.ask("DELETE", f"/media/{media_id}").ok:
            self.ledger.promise("gone", self.user, media_id, that=Gone(self.user, media_id))


def _terms(name: str, body: bytes) -> dict[str, Any]:
    return {"kind": "pdf", "filename": f"{name}.pdf", "content_type": PDF, "size_bytes": len(body)}
