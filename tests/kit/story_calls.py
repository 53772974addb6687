"""Stories as clients of the API write and change them."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from nexus.states.story import STORY, StoryStatus
from tests.kit.http import Caller
from tests.kit.job_calls import TEXT, call_step, job_of
from tests.kit.jobs import verbs_to

#: For tests that do not depend on the database.
ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
QUOTE = TEXT.split(". ")[0]
WORDING: dict[str, Any] = {
    "headline": "Boats leave the harbour",
    "headlineQuotes": [QUOTE],
    "summary": "After a long winter the boats have left the harbour again, and the town came to see them.",
    "summaryQuotes": [QUOTE],
    "whatHappened": [
        {"text": "The boats have left the harbour.", "quote": QUOTE},
        {"text": "The mayor waved a flag at them.", "quote": "The mayor waved a large flag from the pier."},
    ],
    "background": [{"text": "Nobody says where this comes from."}],
}


def draft_story(me: Caller, **body: str) -> str:
    """A new story, from a job of its own."""
    body = body or {"title": "Boats", "text": TEXT}
    job_id = job_of(me.post("/api/ingestion-jobs", json=body))["id"]
    return str(job_of(call_step(me, job_id, "generate"))["storyId"])


def story_with_history(me: Caller, story_id: str) -> dict[str, Any]:
    """The story and its history."""
    answer = me.get(f"/api/stories/{story_id}")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def story_of(answer: httpx2.Response) -> dict[str, Any]:
    assert answer.status_code == 200, answer.text
    assert answer.json()["success"] is True
    found: dict[str, Any] = answer.json()["story"]
    return found


def edit_story(me: Caller, story_id: str, revision: int = 1, **more: Any) -> httpx2.Response:
    return me.patch(f"/api/stories/{story_id}", json={"revision": revision, **WORDING, **more})


def change_story(
    me: Caller, story_id: str, verb: str, revision: int = 1, unsupported: int = 0
) -> httpx2.Response:
    body = {"revision": revision, "unsupported": unsupported}
    return me.post(f"/api/stories/{story_id}/{verb}", json=body)


def correct_story(me: Caller, story_id: str, revision: int, **more: Any) -> httpx2.Response:
    """Correct a story to a wording that the article fully supports."""
    wording = {**WORDING, "whatHappened": WORDING["whatHappened"][:1], "background": []}
    return me.post(f"/api/stories/{story_id}/correct", json={"revision": revision, **wording, **more})


def walk_story_to(me: Caller, status: StoryStatus) -> dict[str, Any]:
    """A new story, walked to a state."""
    story_id = draft_story(me)
    for revision, verb in enumerate(verbs_to(STORY, status), start=1):
        story_of(change_story(me, story_id, verb, revision))
    story: dict[str, Any] = story_with_history(me, story_id)["story"]
    assert story["status"] == status
    return story
