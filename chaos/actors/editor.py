"""Somebody who makes stories: jobs from addresses and from pasted text, drafts, and edits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chaos.actors import Actor
from chaos.ledger import Job, Story
from chaos.site import SENTENCES, mark

JOBS = "/api/ingestion-jobs"
KINDS = ("good", "good", "slow", "missing")
MOST_OPEN = 8


@dataclass
class Work:
    """One job as this editor knows it."""

    job_id: str
    text: str | None = None
    asked: int = 0
    story: Story | None = None


class Editor(Actor):
    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._open: list[Work] = []

    def act(self) -> None:
        if not self._open or (len(self._open) < MOST_OPEN and self.chance.random() < 0.3):
            self.begin()
            return
        work = self.chance.choice(self._open)
        if work.story is not None:
            self.edit(work, work.story)
            return
        step = self.chance.choice(
            ["fetch", "fetch", "extract", "generate", "generate", "retry", "regenerate"]
        )
        self.step(work, step)

    def begin(self) -> None:
        name = self.new_name()
        text = None
        if self.chance.random() < 0.3:
            text = "\n\n".join([mark(name), *SENTENCES])
            body = {"title": name, "text": text}
        else:
            body = {"url": self.site.url(f"/{self.chance.choice(KINDS)}/{name}")}
        answer = self.client.ask("POST", JOBS, json=body)
        if answer.ok:
            work = Work(answer.body["job"]["id"], text)
            self._open.append(work)
            self._keep(work)

    def _keep(self, work: Work) -> None:
        promised = Job(self.user, work.job_id, work.text, work.asked)
        self.ledger.promise("job", self.user, work.job_id, that=promised)

    def step(self, work: Work, step: str) -> None:
        if step in {"generate", "regenerate"}:
            work.asked += 1
            self._keep(work)
        answer = self.client.ask("POST", f"{JOBS}/{work.job_id}/{step}")
        if answer.ok and answer.body["job"]["status"] == "SAVED":
            self._look(work, answer.body["job"]["storyId"])
        elif answer.ok and answer.body["job"]["status"] == "FAILED" and self.chance.random() < 0.3:
            self._open.remove(work)

    def _look(self, work: Work, story_id: str) -> None:
        answer = self.client.ask("GET", f"/api/stories/{story_id}")
        if answer.ok:
            found = answer.body["story"]
            self._saved(work, Story(self.user, story_id, found["revision"], found["headline"]))

    def _saved(self, work: Work, story: Story) -> None:
        work.story = story
        self.ledger.promise("story", self.user, story.story_id, that=story)

    def edit(self, work: Work, story: Story) -> None:
        """Edit the revision that was seen last; one whose answer was lost may exist or not."""
        headline = f"Headline {self.new_name()}"
        later = story.asked_later | {headline}
        self._saved(work, Story(self.user, story.story_id, story.revision, story.headline, later))
        body = {
            "revision": story.revision,
            "headline": headline,
            "summary": f"What {headline} is about, told in a sentence of its own.",
            "whatHappened": [{"text": SENTENCES[0], "quote": SENTENCES[0]}],
            "background": [],
        }
        answer = self.client.ask("PATCH", f"/api/stories/{story.story_id}", json=body)
        if answer.ok:
            self._saved(work, Story(self.user, story.story_id, answer.body["story"]["revision"], headline))
        if answer.lost or answer.status == 409 or self.chance.random() < 0.2:
            self._open.remove(work)
