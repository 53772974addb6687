"""Stories over HTTP: edited by revision, moved along their table, and seen by few."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from nexus.states.machine import Edge, Verdict
from nexus.states.story import CORRECT, STORY, StoryStatus
from tests.kit.clock import SetClock
from tests.kit.http import Caller, Site, Stream, follow, job_problem
from tests.kit.job_calls import TEXT, call_step, job_event_names, job_of
from tests.kit.story_calls import (
    ON_SQLITE,
    QUOTE,
    WORDING,
    change_story,
    correct_story,
    draft_story,
    edit_story,
    story_of,
    story_with_history,
    walk_story_to,
)

#: Too short, too long, too many, too few, and fields that only the server sets.
MISFITS: list[dict[str, Any]] = [
    {"headline": "Too short"},
    {"headline": "x" * 201},
    {"headline": " \n\t ".join("Boat")},
    {"summary": "x" * 49},
    {"summary": "x" * 501},
    {"whatHappened": []},
    {"whatHappened": WORDING["background"] * 11},
    {"background": WORDING["background"] * 11},
    {"background": [{"text": "Too short"}]},
    {"background": [{"text": "x" * 1001}]},
    {"background": [{"text": "Long enough to be said.", "quote": "x" * 2001}]},
    {"background": [{"text": "It says so itself.", "quote": "", "start": 0, "end": 9}]},
    {"background": [{"text": "It says so itself.", "quote": "", "supported": True}]},
    {"background": None},
    {"headlineQuotes": [QUOTE] * 3},
    {"headlineQuotes": ["Too short"]},
    {"summaryQuotes": ["x" * 2001]},
    {"summaryQuotes": [QUOTE] * 11},
    {"headlineEvidence": []},
    {"headlineSupported": True},
    {"unsupported": 1},
    {"revision": 0},
    {"revision": 2**31},
    {"status": "published"},
    {"articleText": "Another article."},
]


def support(story: dict[str, Any]) -> tuple[bool, bool]:
    return story["headlineSupported"], story["summarySupported"]


def test_a_draft_says_what_its_headline_and_summary_rest_on(me: Caller) -> None:
    story = story_with_history(me, draft_story(me, title="Boats leave the harbour", text=TEXT))["story"]
    assert support(story) == (True, True)
    (title,) = story["headlineEvidence"]
    assert title == {
        "quote": "Boats leave the harbour",
        "start": None,
        "end": None,
        "inTitle": True,
        "edited": False,
        "supported": True,
    }
    for evidence in story["summaryEvidence"]:
        assert story["articleText"][evidence["start"] : evidence["end"]] == evidence["quote"]


def test_quotes_of_headline_and_summary_are_looked_up_when_they_are_edited(me: Caller) -> None:
    story_id = draft_story(me)
    made_up = "The boats have all sunk on their way out"
    story = story_of(edit_story(me, story_id, headlineQuotes=[made_up], summaryQuotes=[QUOTE, made_up]))
    assert support(story) == (False, False)
    assert [evidence["supported"] for evidence in story["summaryEvidence"]] == [True, False]
    assert story["headlineEvidence"][0]["quote"] == made_up
    mended = story_of(edit_story(me, story_id, 2, headlineQuotes=[QUOTE], summaryQuotes=[QUOTE]))
    assert support(mended) == (True, True)
    assert support(story_of(edit_story(me, story_id, 3, headlineQuotes=[], summaryQuotes=[]))) == (
        False,
        False,
    )


def test_quotes_that_are_not_sent_stay_with_a_text_that_stays(me: Caller) -> None:
    """Attack: a headline that says something else keeps no support that it never had."""
    story_id = draft_story(me)
    story_of(edit_story(me, story_id))
    silent = {"headlineQuotes": None, "summaryQuotes": None}
    assert support(story_of(edit_story(me, story_id, 2, **silent))) == (True, True)
    changed = story_of(edit_story(me, story_id, 3, **silent, headline="The harbour has burned down"))
    assert support(changed) == (False, True)
    assert changed["headlineEvidence"] == []


def test_editing_replaces_the_wording_and_looks_its_quotes_up(me: Caller) -> None:
    before = story_with_history(me, draft_story(me))["story"]
    story = story_of(edit_story(me, before["id"]))
    assert (story["headline"], story["summary"]) == (WORDING["headline"], WORDING["summary"])
    assert (story["revision"], story["status"], story["slug"]) == (2, "draft", before["slug"])
    found, made_up = story["sections"]["whatHappened"]
    assert (found["supported"], story["articleText"][found["start"] : found["end"]]) == (True, QUOTE)
    assert (made_up["supported"], made_up["start"], made_up["end"]) == (False, None, None)
    assert made_up["quote"] == WORDING["whatHappened"][1]["quote"]
    (unquoted,) = story["sections"]["background"]
    assert (unquoted["supported"], unquoted["quote"]) == (False, "")
    assert story_with_history(me, story["id"])["story"] == story
    assert story_of(edit_story(me, story["id"], 2, whatHappened=WORDING["background"]))["revision"] == 3


@ON_SQLITE
def test_an_invalid_edit_is_refused_and_changes_nothing(me: Caller) -> None:
    before = story_with_history(me, draft_story(me))
    for wrong in MISFITS:
        answer = edit_story(me, before["story"]["id"], **wrong)
        assert job_problem(answer) == (400, "E_INVALID_REQUEST"), wrong
    assert story_with_history(me, before["story"]["id"]) == before


def test_editing_an_old_revision_is_a_conflict_and_changes_nothing(me: Caller) -> None:
    story_id = draft_story(me)
    story_of(edit_story(me, story_id))
    before = story_with_history(me, story_id)
    for stale in (1, 3):
        assert job_problem(edit_story(me, story_id, stale)) == (409, "E_CONFLICT")
        assert job_problem(change_story(me, story_id, "publish", stale)) == (409, "E_CONFLICT")
    assert story_with_history(me, story_id) == before


def claims_of(story: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = story["sections"]["whatHappened"]
    return found


def test_a_story_without_full_support_is_published_only_with_a_confirmation_of_what_lacks_it(
    me: Caller,
) -> None:
    story_id = draft_story(me)
    story = story_of(edit_story(me, story_id))
    assert story["unsupported"] == ["claim 2", "claim 3"]
    before = story_with_history(me, story_id)
    for known in (0, 1, 3):
        refused = change_story(me, story_id, "publish", 2, unsupported=known)
        assert job_problem(refused) == (409, "E_UNSUPPORTED"), known
        assert "claim 2, claim 3" in refused.json()["message"]
    assert story_with_history(me, story_id) == before
    assert story_of(change_story(me, story_id, "publish", 2, unsupported=2))["status"] == "published"


def test_a_confirmation_that_nothing_needs_publishes_nothing(me: Caller) -> None:
    story_id = draft_story(me)
    assert job_problem(change_story(me, story_id, "publish", 1, unsupported=1)) == (409, "E_UNSUPPORTED")
    assert story_with_history(me, story_id)["story"]["status"] == "draft"


def test_a_claim_edited_after_its_quote_was_found_has_to_be_checked(me: Caller) -> None:
    story_id = draft_story(me)
    first = {"text": "The boats have left the harbour.", "quote": QUOTE}
    story_of(edit_story(me, story_id, whatHappened=[first], background=[]))
    changed = {**first, "text": "The boats have burned in the harbour."}
    (claim,) = claims_of(
        story := story_of(edit_story(me, story_id, 2, whatHappened=[changed], background=[]))
    )
    assert (claim["edited"], claim["supported"], claim["start"] is not None) == (True, False, True)
    assert story["unsupported"] == ["claim 1"]
    (claim,) = claims_of(story_of(edit_story(me, story_id, 3, whatHappened=[changed], background=[])))
    assert claim["edited"], "saving it once more is no check"
    checked = {**changed, "checked": True}
    (claim,) = claims_of(story_of(edit_story(me, story_id, 4, whatHappened=[checked], background=[])))
    assert (claim["edited"], claim["supported"]) == (False, True)


def test_other_punctuation_is_no_edit_and_another_quote_is_a_check(me: Caller) -> None:
    story_id = draft_story(me)
    first = {"text": "The boats have left the harbour.", "quote": QUOTE}
    story_of(edit_story(me, story_id, whatHappened=[first], background=[]))
    tidied = {**first, "text": "The boats have left the harbour!"}
    (claim,) = claims_of(story_of(edit_story(me, story_id, 2, whatHappened=[tidied], background=[])))
    assert claim["supported"]
    other = {"text": "Everybody came to the harbour.", "quote": TEXT.split(". ")[1]}
    (claim,) = claims_of(story_of(edit_story(me, story_id, 3, whatHappened=[other], background=[])))
    assert (claim["edited"], claim["missing"]) == (False, [])


def test_an_edited_headline_and_summary_have_to_be_checked(me: Caller) -> None:
    story_id = draft_story(me)
    story_of(edit_story(me, story_id))
    changed = {"headline": "Boats have burned in the harbour"}
    story = story_of(edit_story(me, story_id, 2, **changed))
    assert support(story) == (False, True)
    assert story["headlineEvidence"][0]["edited"]
    assert support(story_of(edit_story(me, story_id, 3, **changed, headlineChecked=True))) == (True, True)


def test_facts_that_the_quote_lacks_take_away_the_support(me: Caller) -> None:
    story_id = draft_story(me)
    claim = {"text": "The tunnel will open in March 2099", "quote": QUOTE}
    story = story_of(
        edit_story(me, story_id, whatHappened=[claim], background=[], headline="2099 boats leave the harbour")
    )
    (shown,) = claims_of(story)
    assert (shown["supported"], shown["missing"]) == (False, ["March", "2099"])
    assert (story["headlineSupported"], story["headlineMissing"]) == (False, ["2099"])
    assert story["unsupported"] == ["headline", "claim 1"]


def test_one_of_many_simultaneous_edits_of_a_revision_wins(me: Caller) -> None:
    story_id = draft_story(me)
    headlines = [f"The headline of editor {place}" for place in range(8)]
    with ThreadPoolExecutor(8) as editors:
        answers = list(editors.map(lambda said: edit_story(me, story_id, headline=said), headlines))
    (heard,) = [answer for answer in answers if answer.status_code == 200]
    assert {job_problem(answer) for answer in answers if answer is not heard} == {(409, "E_CONFLICT")}
    assert story_with_history(me, story_id)["story"] == story_of(heard)


def test_only_drafts_and_stories_in_review_can_be_edited(me: Caller) -> None:
    for status in StoryStatus:
        story = walk_story_to(me, status)
        before = story_with_history(me, story["id"])
        answer = edit_story(me, story["id"], story["revision"])
        if status in {StoryStatus.DRAFT, StoryStatus.REVIEW}:
            assert story_of(answer)["status"] == status
        else:
            assert job_problem(answer) == (409, "E_INVALID_STATE")
            assert story_with_history(me, story["id"]) == before


def test_the_api_answers_as_every_cell_of_the_story_table_says(me: Caller) -> None:
    cells = {(edge.verb, status): edge.decide(status) for edge in STORY for status in StoryStatus}
    found = {(edge.verb, status): walked(me, edge, status) for edge in STORY for status in StoryStatus}
    assert found == cells


def walked(me: Caller, edge: Edge[StoryStatus], status: StoryStatus) -> Verdict:
    """What the API answered for one cell, after checking that nothing else has changed."""
    story = walk_story_to(me, status)
    before = story_with_history(me, story["id"])
    call = correct_story if edge is CORRECT else partial(change_story, verb=edge.verb)
    answer = call(me, story["id"], revision=story["revision"])
    after = story_with_history(me, story["id"])
    if answer.status_code == 409:
        assert job_problem(answer) == (409, "E_INVALID_STATE")
        assert after == before
        return Verdict.REFUSE
    assert story_of(answer) == after["story"]
    if answer.json()["skipped"]:
        assert after == before
        return Verdict.SKIP
    assert (after["story"]["status"], after["story"]["revision"]) == (edge.target, story["revision"] + 1)
    (last,) = after["history"][len(before["history"]) :]
    assert (last["event"], last["from_status"], last["to_status"]) == (edge.verb, status, edge.target)
    assert (last["actor"], last["attempt"]) == ("you", after["story"]["revision"])
    return Verdict.APPLY


@ON_SQLITE
def test_an_unknown_verb_or_story_is_not_found(me: Caller) -> None:
    story_id = draft_story(me)
    for answer in (
        change_story(me, story_id, "burn"),
        change_story(me, str(uuid4()), "publish"),
        change_story(me, "nonsense", "publish"),
        edit_story(me, str(uuid4())),
        me.get(f"/api/stories/{uuid4()}/export"),
    ):
        assert job_problem(answer) == (404, "E_NOT_FOUND")
    assert job_problem(me.post(f"/api/stories/{story_id}/publish", json={})) == (400, "E_INVALID_REQUEST")


def test_publishing_again_sets_a_new_time_of_publication(me: Caller, clock: SetClock) -> None:
    story_id = draft_story(me)
    assert story_with_history(me, story_id)["story"]["publishedAt"] is None
    first = story_of(change_story(me, story_id, "publish"))["publishedAt"]
    assert first == clock().isoformat()
    clock.forward(hours=1)
    for revision, verb in enumerate(("archive", "restore", "publish"), start=2):
        story = story_of(change_story(me, story_id, verb, revision))
    assert story["publishedAt"] == clock().isoformat() != first


def test_the_next_page_of_stories_starts_after_the_previous_one(me: Caller, clock: SetClock) -> None:
    made = []
    for _ in range(5):
        made.append(draft_story(me))
        clock.forward(seconds=1)
    for story_id in made[1:4]:
        change_story(me, story_id, "submit")
    assert listed(me) == made[::-1]
    assert listed(me, status="review") == made[3:0:-1]
    assert listed(me, status="published") == []
    (newest, *_) = me.get("/api/stories").json()["stories"]
    shown = story_with_history(me, made[-1])["story"]
    assert newest == {name: value for name, value in shown.items() if name != "articleText"}
    for wrong in ({"status": "nonsense"}, {"cursor": "nonsense"}, {"limit": "0"}):
        assert job_problem(me.get("/api/stories", params=wrong)) == (400, "E_INVALID_REQUEST")


def listed(me: Caller, **chosen: str) -> list[str]:
    seen: list[str] = []
    while True:
        page = me.get("/api/stories", params={"limit": "2", **chosen}).json()
        assert len(page["stories"]) <= 2
        seen += [story["id"] for story in page["stories"]]
        if page["nextCursor"] is None:
            return seen
        chosen["cursor"] = page["nextCursor"]


class Desk:
    """A library with its creator, a second admin and a member, and somebody outside."""

    def __init__(self, site: Site) -> None:
        self.creator, self.admin, self.member, self.stranger = (site.caller() for _ in range(4))
        for caller in (self.admin, self.member, self.stranger):
            caller.get("/libraries")
        self.library = self.creator.library("Desk")
        self.creator.let_in(self.library, self.admin.user, "admin")
        self.creator.let_in(self.library, self.member.user, "member")

    def job(self) -> str:
        body = {"title": "Boats", "text": TEXT, "libraryId": self.library}
        return str(job_of(self.creator.post("/api/ingestion-jobs", json=body))["id"])


def calls(caller: Caller, story_id: str) -> Iterator[httpx2.Response]:
    yield caller.get(f"/api/stories/{story_id}")
    yield caller.get(f"/api/stories/{story_id}/export")
    yield edit_story(caller, story_id, revision_of(caller, story_id))
    yield change_story(caller, story_id, "submit", revision_of(caller, story_id))


def revision_of(caller: Caller, story_id: str) -> int:
    answer = caller.get(f"/api/stories/{story_id}")
    return int(answer.json()["story"]["revision"]) if answer.status_code == 200 else 1


def test_a_story_is_visible_to_its_jobs_creator_and_the_librarys_admins(site: Site) -> None:
    desk = Desk(site)
    story_id = job_of(call_step(desk.creator, desk.job(), "generate"))["storyId"]
    for caller in (desk.creator, desk.admin):
        assert [answer.status_code for answer in calls(caller, story_id)] == [200] * 4
        assert listed(caller) == [story_id]
    before = story_with_history(desk.creator, story_id)
    assert [entry["actor"] for entry in before["history"]] == ["you", "you"]
    assert [entry["actor"] for entry in story_with_history(desk.admin, story_id)["history"]] == [
        "someone",
        "someone",
    ]
    for caller in (desk.member, desk.stranger):
        assert {job_problem(answer) for answer in calls(caller, story_id)} == {(404, "E_NOT_FOUND")}
        assert listed(caller) == []
    assert story_with_history(desk.creator, story_id) == before
    desk.creator.let_in(desk.library, desk.admin.user, "member")
    assert job_problem(desk.admin.get(f"/api/stories/{story_id}")) == (404, "E_NOT_FOUND")


@pytest.mark.usefixtures("frequent_looks")
class TestEvents:
    def test_events_of_jobs_and_stories_reach_those_who_may_see_them(self, site: Site) -> None:
        desk = Desk(site)
        callers = (desk.creator, desk.admin, desk.member, desk.stranger)
        with ExitStack() as stack:
            streams = [stack.enter_context(follow(caller)) for caller in callers]
            job_id = desk.job()
            story_id = job_of(call_step(desk.creator, job_id, "generate"))["storyId"]
            change_story(desk.creator, story_id, "publish")
            ends = [str(caller.add()) for caller in callers]
            seen = [until(stream, end) for stream, end in zip(streams, ends, strict=True)]
        of_job = [("job", job_id, event) for event in job_event_names(desk.creator, job_id)]
        of_story = [("story", story_id, "create"), ("story", story_id, "publish")]
        assert of_job[-1] == ("job", job_id, "saved")
        for found in seen[:2]:
            assert [one for one in found if one[0] == "job"] == of_job
            assert [one for one in found if one[0] == "story"] == of_story
        assert seen[2:] == [[], []]

    def test_events_of_jobs_no_longer_reach_a_removed_member(self, site: Site) -> None:
        desk = Desk(site)
        job_id = desk.job()
        with follow(desk.admin) as stream:
            call_step(desk.creator, job_id, "generate")
            assert stream.next().data["job_id"] == job_id
        desk.creator.let_in(desk.library, desk.admin.user, "member")
        with follow(desk.admin, last="0-0") as stream:
            assert until(stream, str(desk.admin.add())) == []


def until(stream: Stream, media_id: str) -> list[tuple[str, str, str]]:
    """The events before the reader's own media: kind, owner and event of each."""
    seen = []
    while (event := stream.next()).data.get("media_id") != media_id:
        seen.append((event.name, event.data[f"{event.name}_id"], event.data["event"]))
    return seen
