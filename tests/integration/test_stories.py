"""Stories over HTTP: edited by revision, moved along their table, and seen by few."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from nexus.states.machine import Edge, Verdict
from nexus.states.story import STORY, Status
from nexus.web.api import events as web_events
from tests.editorial import TEXT, app, call, events, job_of, me, pages, parsers, site
from tests.http import Caller, Site, Stream, follow, refused
from tests.job_walks import way
from tests.support import SetClock

__all__ = ["app", "me", "pages", "parsers", "site"]

#: For what the database has no part in.
ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
QUOTE = TEXT.split(". ")[0]
WORDING: dict[str, Any] = {
    "headline": "Boats leave the harbour",
    "summary": "After a long winter the boats have left the harbour again, and the town came to see them.",
    "whatHappened": [
        {"text": "The boats have left the harbour.", "quote": QUOTE},
        {"text": "The mayor waved a flag at them.", "quote": "The mayor waved a large flag from the pier."},
    ],
    "background": [{"text": "Nobody says where this comes from."}],
}
#: Too short, too long, too many, too few; and what is only the server's to say.
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
    {"revision": 0},
    {"revision": 2**31},
    {"status": "published"},
    {"articleText": "Another article."},
]


def drafted(me: Caller, **body: str) -> str:
    """A story of a job of its own."""
    body = body or {"title": "Boats", "text": TEXT}
    job_id = job_of(me.post("/api/ingestion-jobs", json=body))["id"]
    return str(job_of(call(me, job_id, "generate"))["storyId"])


def whole(me: Caller, story_id: str) -> dict[str, Any]:
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


def edit(me: Caller, story_id: str, revision: int = 1, **more: Any) -> httpx2.Response:
    return me.patch(f"/api/stories/{story_id}", json={"revision": revision, **WORDING, **more})


def change(me: Caller, story_id: str, verb: str, revision: int = 1) -> httpx2.Response:
    return me.post(f"/api/stories/{story_id}/{verb}", json={"revision": revision})


def put(me: Caller, status: Status) -> dict[str, Any]:
    """A new story, walked to a state."""
    story_id = drafted(me)
    for revision, verb in enumerate(way(STORY, status), start=1):
        story_of(change(me, story_id, verb, revision))
    story: dict[str, Any] = whole(me, story_id)["story"]
    assert story["status"] == status
    return story


class TestEditing:
    def test_replaces_the_wording_and_looks_its_quotes_up(self, me: Caller) -> None:
        before = whole(me, drafted(me))["story"]
        story = story_of(edit(me, before["id"]))
        assert (story["headline"], story["summary"]) == (WORDING["headline"], WORDING["summary"])
        assert (story["revision"], story["status"], story["slug"]) == (2, "draft", before["slug"])
        found, made_up = story["sections"]["whatHappened"]
        assert (found["supported"], story["articleText"][found["start"] : found["end"]]) == (True, QUOTE)
        assert (made_up["supported"], made_up["start"], made_up["end"]) == (False, None, None)
        assert made_up["quote"] == WORDING["whatHappened"][1]["quote"]
        (unquoted,) = story["sections"]["background"]
        assert (unquoted["supported"], unquoted["quote"]) == (False, "")
        assert whole(me, story["id"])["story"] == story
        assert story_of(edit(me, story["id"], 2, whatHappened=WORDING["background"]))["revision"] == 3

    @ON_SQLITE
    def test_of_what_does_not_fit_is_refused_and_nothing_changes(self, me: Caller) -> None:
        before = whole(me, drafted(me))
        for wrong in MISFITS:
            answer = edit(me, before["story"]["id"], **wrong)
            assert refused(answer) == (400, "E_INVALID_REQUEST"), wrong
        assert whole(me, before["story"]["id"]) == before

    def test_on_an_old_revision_is_a_conflict_and_nothing_changes(self, me: Caller) -> None:
        story_id = drafted(me)
        story_of(edit(me, story_id))
        before = whole(me, story_id)
        for stale in (1, 3):
            assert refused(edit(me, story_id, stale)) == (409, "E_CONFLICT")
            assert refused(change(me, story_id, "publish", stale)) == (409, "E_CONFLICT")
        assert whole(me, story_id) == before

    def test_of_many_who_edit_one_revision_one_is_heard(self, me: Caller) -> None:
        story_id = drafted(me)
        headlines = [f"The headline of editor {place}" for place in range(8)]
        with ThreadPoolExecutor(8) as editors:
            answers = list(editors.map(lambda said: edit(me, story_id, headline=said), headlines))
        (heard,) = [answer for answer in answers if answer.status_code == 200]
        assert {refused(answer) for answer in answers if answer is not heard} == {(409, "E_CONFLICT")}
        assert whole(me, story_id)["story"] == story_of(heard)

    def test_is_for_drafts_and_what_is_in_review(self, me: Caller) -> None:
        for status in Status:
            story = put(me, status)
            before = whole(me, story["id"])
            answer = edit(me, story["id"], story["revision"])
            if status in {Status.DRAFT, Status.REVIEW}:
                assert story_of(answer)["status"] == status
            else:
                assert refused(answer) == (409, "E_INVALID_STATE")
                assert whole(me, story["id"]) == before


def test_every_cell_of_the_storys_table_over_the_api(me: Caller) -> None:
    cells = {(edge.verb, status): edge.decide(status) for edge in STORY for status in Status}
    found = {(edge.verb, status): walked(me, edge, status) for edge in STORY for status in Status}
    assert found == cells


def walked(me: Caller, edge: Edge[Status], status: Status) -> Verdict:
    """What the API made of one cell, after a look that nothing else has changed."""
    story = put(me, status)
    before = whole(me, story["id"])
    answer = change(me, story["id"], edge.verb, story["revision"])
    after = whole(me, story["id"])
    if answer.status_code == 409:
        assert refused(answer) == (409, "E_INVALID_STATE")
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
def test_what_is_no_verb_or_no_story_is_not_found(me: Caller) -> None:
    story_id = drafted(me)
    for answer in (
        change(me, story_id, "burn"),
        change(me, str(uuid4()), "publish"),
        change(me, "nonsense", "publish"),
        edit(me, str(uuid4())),
        me.get(f"/api/stories/{uuid4()}/export"),
    ):
        assert refused(answer) == (404, "E_NOT_FOUND")
    assert refused(me.post(f"/api/stories/{story_id}/publish", json={})) == (400, "E_INVALID_REQUEST")


def test_publishing_sets_the_time_and_publishing_again_sets_it_anew(me: Caller, clock: SetClock) -> None:
    story_id = drafted(me)
    assert whole(me, story_id)["story"]["publishedAt"] is None
    first = story_of(change(me, story_id, "publish"))["publishedAt"]
    assert first == clock().isoformat()
    clock.forward(hours=1)
    for revision, verb in enumerate(("archive", "restore", "publish"), start=2):
        story = story_of(change(me, story_id, verb, revision))
    assert story["publishedAt"] == clock().isoformat() != first


def test_a_list_goes_on_where_the_page_before_ended(me: Caller, clock: SetClock) -> None:
    made = []
    for _ in range(5):
        made.append(drafted(me))
        clock.forward(seconds=1)
    for story_id in made[1:4]:
        change(me, story_id, "submit")
    assert listed(me) == made[::-1]
    assert listed(me, status="review") == made[3:0:-1]
    assert listed(me, status="published") == []
    (newest, *_) = me.get("/api/stories").json()["stories"]
    shown = whole(me, made[-1])["story"]
    assert newest == {name: value for name, value in shown.items() if name != "articleText"}
    for wrong in ({"status": "nonsense"}, {"cursor": "nonsense"}, {"limit": "0"}):
        assert refused(me.get("/api/stories", params=wrong)) == (400, "E_INVALID_REQUEST")


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
    yield edit(caller, story_id, revision_of(caller, story_id))
    yield change(caller, story_id, "submit", revision_of(caller, story_id))


def revision_of(caller: Caller, story_id: str) -> int:
    answer = caller.get(f"/api/stories/{story_id}")
    return int(answer.json()["story"]["revision"]) if answer.status_code == 200 else 1


def test_a_story_is_its_jobs_creators_and_of_admins_of_the_jobs_library(site: Site) -> None:
    desk = Desk(site)
    story_id = job_of(call(desk.creator, desk.job(), "generate"))["storyId"]
    for caller in (desk.creator, desk.admin):
        assert [answer.status_code for answer in calls(caller, story_id)] == [200] * 4
        assert listed(caller) == [story_id]
    before = whole(desk.creator, story_id)
    assert [entry["actor"] for entry in before["history"]] == ["you", "you"]
    assert [entry["actor"] for entry in whole(desk.admin, story_id)["history"]] == ["someone", "someone"]
    for caller in (desk.member, desk.stranger):
        assert {refused(answer) for answer in calls(caller, story_id)} == {(404, "E_NOT_FOUND")}
        assert listed(caller) == []
    assert whole(desk.creator, story_id) == before
    desk.creator.let_in(desk.library, desk.admin.user, "member")
    assert refused(desk.admin.get(f"/api/stories/{story_id}")) == (404, "E_NOT_FOUND")


class TestEvents:
    @pytest.fixture(autouse=True)
    def _often(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(web_events, "LOOK_SECONDS", 0.01)

    def test_of_jobs_and_stories_reach_those_who_may_see_them(self, site: Site) -> None:
        desk = Desk(site)
        callers = (desk.creator, desk.admin, desk.member, desk.stranger)
        with ExitStack() as stack:
            streams = [stack.enter_context(follow(caller)) for caller in callers]
            job_id = desk.job()
            story_id = job_of(call(desk.creator, job_id, "generate"))["storyId"]
            change(desk.creator, story_id, "publish")
            ends = [str(caller.add()) for caller in callers]
            seen = [until(stream, end) for stream, end in zip(streams, ends, strict=True)]
        of_job = [("job", job_id, event) for event in events(desk.creator, job_id)]
        of_story = [("story", story_id, "create"), ("story", story_id, "publish")]
        assert of_job[-1] == ("job", job_id, "saved")
        for found in seen[:2]:
            assert [one for one in found if one[0] == "job"] == of_job
            assert [one for one in found if one[0] == "story"] == of_story
        assert seen[2:] == [[], []]

    def test_are_not_told_any_more_to_who_was_let_out(self, site: Site) -> None:
        desk = Desk(site)
        job_id = desk.job()
        with follow(desk.admin) as stream:
            call(desk.creator, job_id, "generate")
            assert stream.next().data["job_id"] == job_id
        desk.creator.let_in(desk.library, desk.admin.user, "member")
        with follow(desk.admin, last="0-0") as stream:
            assert until(stream, str(desk.admin.add())) == []


def until(stream: Stream, media_id: str) -> list[tuple[str, str, str]]:
    """What comes before the reader's own media: its kind, whose it is, and what happened."""
    seen = []
    while (event := stream.next()).data.get("media_id") != media_id:
        seen.append((event.name, event.data[f"{event.name}_id"], event.data["event"]))
    return seen
