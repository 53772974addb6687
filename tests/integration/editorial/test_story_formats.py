"""Stories as Markdown, JSON and a feed: whatever they say, it stays text."""

from __future__ import annotations

import json
from dataclasses import replace
from xml.etree import ElementTree as ET

import httpx2
from lxml import html
from markdown_it import MarkdownIt

from nexus.app import App
from nexus.states.story import StoryStatus
from nexus.web.http import cookies
from nexus.web.http.bearer import issue_token
from tests.kit.clock import SetClock
from tests.kit.http import Caller, Site, job_problem, problem, serve
from tests.kit.job_calls import TEXT, call_step, job_of, ready_job
from tests.kit.servers.web_pages import Pages
from tests.kit.sign_ins import link_key, session_key, token_of
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

ATOM = "{http://www.w3.org/2005/Atom}"
#: Characters that mean something in Markdown, HTML and XML.
HOSTILE = (
    "<script>alert(1)</script> & ]]> <!-- \\ `code` *em* __strong__ [a](https://b/) ![c](d) #1 | ~~x~~ &lt;"
)
LINES = [
    "1. no list at all",
    "- no list either",
    "+ nor is this one",
    "> no quotation",
    "# no heading at all",
]


@ON_SQLITE
class TestExport:
    def test_a_markdown_export_holds_the_story_with_its_markup_escaped(self, me: Caller) -> None:
        claims = [{"text": line, "quote": QUOTE} for line in LINES]
        story_id = draft_story(me, title=f"1. {HOSTILE}\n\n- two", text=TEXT)
        story_of(
            edit_story(
                me, story_id, headline=HOSTILE, summary=f"- {HOSTILE}", whatHappened=claims, background=[]
            )
        )
        answer = me.get(f"/api/stories/{story_id}/export")
        assert answer.headers["content-type"] == "text/markdown; charset=utf-8"
        page = html.fromstring(f"<main>{MarkdownIt().render(answer.text)}</main>")
        assert page.xpath("h1")[0].text_content() == HOSTILE
        assert page.xpath("p")[0].text_content() == f"- {HOSTILE}"
        points = page.xpath("ul[1]/li")
        assert [point.text.strip() for point in points] == LINES
        assert {point.xpath("blockquote")[0].text_content().strip() for point in points} == {QUOTE}
        assert [quote.text_content().strip() for quote in page.xpath("blockquote")] == [QUOTE, QUOTE]
        assert page.xpath("ul[2]/li")[0].text_content().strip() == f"1. {HOSTILE} - two"
        assert {node.tag for node in page.iter()} == {"main", "h1", "h2", "p", "ul", "li", "blockquote"}

    def test_a_markdown_export_marks_claims_that_are_not_in_the_article(self, me: Caller) -> None:
        story_id = draft_story(me)
        story_of(edit_story(me, story_id))
        lines = me.get(f"/api/stories/{story_id}/export", params={"format": "markdown"}).text.splitlines()
        assert "- The boats have left the harbour." in lines
        assert f"  > {QUOTE}" in lines
        assert "- The mayor waved a flag at them. *(not found in the article)*" in lines
        assert "- Nobody says where this comes from. *(not found in the article)*" in lines

    def test_exports_mark_a_headline_and_a_summary_without_support(self, me: Caller) -> None:
        story_id = draft_story(me)
        story_of(edit_story(me, story_id, headlineQuotes=[], summaryQuotes=["The boats never came back."]))
        lines = me.get(f"/api/stories/{story_id}/export").text.splitlines()
        headline, summary = (
            lines.index(f"*({name}: not found in the article)*") for name in ("Headline", "Summary")
        )
        assert lines[headline - 2] == f"# {WORDING['headline']}"
        assert lines[summary - 2] == WORDING["summary"]
        story_of(change_story(me, story_id, "publish", 2, unsupported=4))
        (entry,) = entries(me.get("/api/stories.atom"))
        content = text_of(entry, "content")
        assert "<p><em>(Headline: not found in the article)</em></p>" in content
        assert "<p><em>(Summary: not found in the article)</em></p>" in content

    def test_a_markdown_export_links_to_its_source(self, me: Caller, pages: Pages) -> None:
        story_id = str(job_of(call_step(me, ready_job(me, pages), "generate"))["storyId"])
        text = me.get(f"/api/stories/{story_id}/export").text
        assert f"- [The harbour](<{pages.url('/boats')}>)" in text.splitlines()

    def test_a_json_export_is_the_story_itself(self, me: Caller) -> None:
        story_id = draft_story(me)
        story = story_of(edit_story(me, story_id, headline=HOSTILE))
        answer = me.get(f"/api/stories/{story_id}/export", params={"format": "json"})
        assert answer.headers["content-type"] == "application/json"
        assert json.loads(answer.text) == story
        assert not story["sections"]["whatHappened"][1]["supported"]

    def test_an_export_is_a_file_named_after_the_story(self, me: Caller) -> None:
        story = story_with_history(me, draft_story(me))["story"]
        for chosen, ending in (("markdown", "md"), ("json", "json")):
            answer = me.get(f"/api/stories/{story['id']}/export", params={"format": chosen})
            assert f'attachment; filename="{story["slug"]}.{ending}"' in answer.headers["content-disposition"]
            assert answer.headers["x-content-type-options"] == "nosniff"
        wrong = me.get(f"/api/stories/{story['id']}/export", params={"format": "pdf"})
        assert job_problem(wrong) == (400, "E_INVALID_REQUEST")


def entries(answer: httpx2.Response) -> list[ET.Element]:
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/atom+xml"
    return ET.fromstring(answer.content).findall(f"{ATOM}entry")


def text_of(entry: ET.Element, name: str) -> str:
    return entry.findtext(f"{ATOM}{name}") or ""


def test_the_feed_lists_only_published_stories_newest_first(site: Site, me: Caller, clock: SetClock) -> None:
    for status in StoryStatus:
        walk_story_to(me, status)
    assert len(entries(me.get("/api/stories.atom"))) == 1
    clock.forward(hours=1)
    story_of(edit_story(me, later := draft_story(me)))
    story_of(change_story(me, later, "publish", 2, unsupported=2))
    newest, oldest = entries(me.get("/api/stories.atom"))
    assert (text_of(newest, "id"), text_of(newest, "title")) == (f"urn:uuid:{later}", WORDING["headline"])
    assert text_of(newest, "published") > text_of(oldest, "published")
    assert text_of(newest, "summary") == WORDING["summary"]
    assert entries(site.caller().get("/api/stories.atom")) == []
    story_of(change_story(me, later, "archive", 3))
    assert [text_of(entry, "id") for entry in entries(me.get("/api/stories.atom"))] == [text_of(oldest, "id")]


def test_a_corrected_story_says_so_and_when_in_feed_and_exports(me: Caller, clock: SetClock) -> None:
    story = walk_story_to(me, StoryStatus.PUBLISHED)
    assert (story["correctedAt"], story["correction"]) == (None, None)
    clock.forward(hours=26)
    told = "The boats left on *Monday*."
    fixed = story_of(correct_story(me, story["id"], story["revision"], correction=told))
    assert (fixed["status"], fixed["revision"]) == ("published", story["revision"] + 1)
    assert (fixed["headline"], fixed["publishedAt"]) == (WORDING["headline"], story["publishedAt"])
    assert (fixed["correctedAt"], fixed["correction"]) == (clock().isoformat(), told)
    note = f"Corrected on {clock():%-d %B %Y}: The boats left on"
    (entry,) = entries(me.get("/api/stories.atom"))
    assert (text_of(entry, "published"), text_of(entry, "updated")) == (
        story["publishedAt"],
        fixed["correctedAt"],
    )
    assert f"<p><strong>{note} *Monday*.</strong></p>" in text_of(entry, "content")
    exported = me.get(f"/api/stories/{story['id']}/export")
    assert f"*{note} \\*Monday\\*.*" in exported.text.splitlines()
    assert me.get(f"/api/stories/{story['id']}/export", params={"format": "json"}).json() == fixed


@ON_SQLITE
def test_a_correction_changes_something_and_is_confirmed_like_a_publication(me: Caller) -> None:
    story = walk_story_to(me, StoryStatus.PUBLISHED)
    before = story_with_history(me, story["id"])
    doubtful = {"whatHappened": WORDING["whatHappened"]}
    refused = correct_story(me, story["id"], story["revision"], **doubtful)
    assert job_problem(refused) == (409, "E_UNSUPPORTED")
    assert job_problem(correct_story(me, story["id"], 1)) == (409, "E_CONFLICT")
    assert story_with_history(me, story["id"]) == before
    fixed = story_of(correct_story(me, story["id"], story["revision"], **doubtful, unsupported=1))
    unchanged = correct_story(me, story["id"], fixed["revision"], **doubtful, unsupported=1)
    assert job_problem(unchanged) == (400, "E_INVALID_REQUEST")


@ON_SQLITE
def test_a_story_that_is_published_again_begins_without_corrections(me: Caller) -> None:
    story = walk_story_to(me, StoryStatus.PUBLISHED)
    revision = story_of(correct_story(me, story["id"], story["revision"]))["revision"]
    for verb in ("archive", "restore", "publish"):
        story = story_of(change_story(me, story["id"], verb, revision))
        revision = story["revision"]
    assert (story["status"], story["correctedAt"]) == ("published", None)


@ON_SQLITE
def test_the_feed_is_well_formed_whatever_the_stories_say(me: Caller) -> None:
    unwritable = "\x08\x1b\x7f\ufffe\uffff"
    story_id = draft_story(me)
    claims = [{"text": f"{HOSTILE}{unwritable}", "quote": ""}]
    hostile = {"headline": f"{HOSTILE}{unwritable}", "summary": f"{HOSTILE}{unwritable}"}
    story_of(edit_story(me, story_id, **hostile, whatHappened=claims))
    story_of(change_story(me, story_id, "publish", 2, unsupported=2))
    (entry,) = entries(me.get("/api/stories.atom"))
    assert (text_of(entry, "title"), text_of(entry, "summary")) == (f"{HOSTILE}\x7f", f"{HOSTILE}\x7f")
    content = html.fromstring(f"<main>{text_of(entry, 'content')}</main>")
    assert content.xpath("//script | //a | //img") == []
    assert HOSTILE in content.xpath("ul/li")[0].text_content()
    assert "not found in the article" in content.xpath("ul/li")[0].text_content()


@ON_SQLITE
def test_the_feed_has_only_absolute_links(app: App, me: Caller, site: Site, pages: Pages) -> None:
    story_id = str(job_of(call_step(me, ready_job(me, pages), "generate"))["storyId"])
    story_of(change_story(me, story_id, "publish"))
    expected = {f"/admin/stories/{story_id}", "/admin/stories"}
    assert links(me.get("/api/stories.atom")) == {f"{site.url}{path}" for path in expected} | {
        pages.url("/boats")
    }
    public = replace(app, settings=app.settings.model_copy(update={"public_url": "https://nexus.example"}))
    with serve(public) as elsewhere:
        found = links(elsewhere.caller(me.user).get("/api/stories.atom"))
    assert found == {f"https://nexus.example{path}" for path in expected} | {pages.url("/boats")}


@ON_SQLITE
def test_the_feed_is_opened_only_by_its_own_token(site: Site, me: Caller) -> None:
    story_of(change_story(me, story_id := draft_story(me), "publish"))
    chosen, anyone = site.app.settings, site.anyone()
    opened = anyone.get("/api/stories.atom", params={"token": token_of(site.app.sessions, me.user, "feed")})
    assert [text_of(entry, "id") for entry in entries(opened)] == [f"urn:uuid:{story_id}"]
    others = {
        "a session": session_key(site.app.sessions, me.user),
        "a sign-in link": link_key(site.app.sessions, me.user),
        "a bearer token": issue_token(chosen, me.user),
        "a personal token": token_of(site.app.sessions, me.user),
        "nothing": "",
        "nonsense": "nonsense",
    }
    for what, token in others.items():
        answer = anyone.get("/api/stories.atom", params={"token": token})
        assert job_problem(answer) == (401, "E_UNAUTHORIZED"), what
    assert job_problem(anyone.get("/api/stories.atom")) == (401, "E_UNAUTHORIZED")


@ON_SQLITE
def test_the_feeds_token_opens_nothing_else(site: Site, me: Caller) -> None:
    story_id, token = draft_story(me), token_of(site.app.sessions, me.user, "feed")
    internal = {"X-Nexus-Internal": site.app.settings.internal_secret}
    bearer = site.anyone(Authorization=f"Bearer {token}", **internal)
    cookie, anyone = site.anyone(Cookie=f"{cookies.SESSION}={token}"), site.anyone()
    for path in ("/api/stories", f"/api/stories/{story_id}", "/api/ingestion-jobs"):
        assert job_problem(bearer.get(path)) == (401, "E_UNAUTHORIZED"), path
        assert job_problem(anyone.get(path, params={"token": token})) == (401, "E_UNAUTHORIZED"), path
    for elsewhere in (bearer, cookie):
        assert job_problem(elsewhere.get("/api/stories.atom")) == (401, "E_UNAUTHORIZED")
        assert problem(elsewhere.get("/events")) == (401, "E_UNAUTHORIZED")
    assert problem(bearer.get("/media")) == (401, "E_UNAUTHORIZED")
    assert cookie.get("/admin/stories").status_code == 401
    assert anyone.get("/sign-in", params={"token": token}).status_code == 401


def links(answer: httpx2.Response) -> set[str]:
    assert entries(answer)
    return {link.attrib["href"] for link in ET.fromstring(answer.content).iter(f"{ATOM}link")}
