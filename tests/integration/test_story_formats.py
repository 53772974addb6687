"""Stories to take along: as Markdown and JSON, and the published ones as a feed. Whatever they say, it stays text."""

from __future__ import annotations

import json
from dataclasses import replace
from xml.etree import ElementTree as ET

import httpx2
from lxml import html
from markdown_it import MarkdownIt

from nexus.app import App
from nexus.states.story import Status
from nexus.web.http import auth
from tests.editorial import TEXT, app, call, job_of, me, pages, parsers, ready, site
from tests.http import Caller, Site, problem, refused, serve
from tests.integration.test_stories import (
    ON_SQLITE,
    QUOTE,
    WORDING,
    change,
    drafted,
    edit,
    put,
    story_of,
    whole,
)
from tests.pages import Pages
from tests.support import SetClock

__all__ = ["app", "me", "pages", "parsers", "site"]

ATOM = "{http://www.w3.org/2005/Atom}"
#: What Markdown, HTML and XML would each take for their own.
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
    def test_as_markdown_says_what_the_story_says_and_nothing_of_it_is_markup(self, me: Caller) -> None:
        claims = [{"text": line, "quote": QUOTE} for line in LINES]
        story_id = drafted(me, title=f"1. {HOSTILE}\n\n- two", text=TEXT)
        story_of(
            edit(me, story_id, headline=HOSTILE, summary=f"- {HOSTILE}", whatHappened=claims, background=[])
        )
        answer = me.get(f"/api/stories/{story_id}/export")
        assert answer.headers["content-type"] == "text/markdown; charset=utf-8"
        page = html.fromstring(f"<main>{MarkdownIt().render(answer.text)}</main>")
        assert page.xpath("h1")[0].text_content() == HOSTILE
        assert page.xpath("p")[0].text_content() == f"- {HOSTILE}"
        points = page.xpath("ul[1]/li")
        assert [point.text.strip() for point in points] == LINES
        assert {point.xpath("blockquote")[0].text_content().strip() for point in points} == {QUOTE}
        assert page.xpath("ul[2]/li")[0].text_content().strip() == f"1. {HOSTILE} - two"
        assert {node.tag for node in page.iter()} == {"main", "h1", "h2", "p", "ul", "li", "blockquote"}

    def test_as_markdown_says_what_is_not_in_the_article(self, me: Caller) -> None:
        story_id = drafted(me)
        story_of(edit(me, story_id))
        lines = me.get(f"/api/stories/{story_id}/export", params={"format": "markdown"}).text.splitlines()
        assert "- The boats have left the harbour." in lines
        assert f"  > {QUOTE}" in lines
        assert "- The mayor waved a flag at them. *(not found in the article)*" in lines
        assert "- Nobody says where this comes from. *(not found in the article)*" in lines

    def test_as_markdown_leads_to_its_source(self, me: Caller, pages: Pages) -> None:
        story_id = str(job_of(call(me, ready(me, pages), "generate"))["storyId"])
        text = me.get(f"/api/stories/{story_id}/export").text
        assert f"- [The harbour](<{pages.url('/boats')}>)" in text.splitlines()

    def test_as_json_is_the_story_itself(self, me: Caller) -> None:
        story_id = drafted(me)
        story = story_of(edit(me, story_id, headline=HOSTILE))
        answer = me.get(f"/api/stories/{story_id}/export", params={"format": "json"})
        assert answer.headers["content-type"] == "application/json"
        assert json.loads(answer.text) == story
        assert not story["sections"]["whatHappened"][1]["supported"]

    def test_is_a_file_that_is_called_after_the_story(self, me: Caller) -> None:
        story = whole(me, drafted(me))["story"]
        for chosen, ending in (("markdown", "md"), ("json", "json")):
            answer = me.get(f"/api/stories/{story['id']}/export", params={"format": chosen})
            assert f'attachment; filename="{story["slug"]}.{ending}"' in answer.headers["content-disposition"]
            assert answer.headers["x-content-type-options"] == "nosniff"
        wrong = me.get(f"/api/stories/{story['id']}/export", params={"format": "pdf"})
        assert refused(wrong) == (400, "E_INVALID_REQUEST")


def entries(answer: httpx2.Response) -> list[ET.Element]:
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/atom+xml"
    return ET.fromstring(answer.content).findall(f"{ATOM}entry")


def text_of(entry: ET.Element, name: str) -> str:
    return entry.findtext(f"{ATOM}{name}") or ""


class TestTheFeed:
    def test_has_published_stories_alone_the_newest_first(
        self, site: Site, me: Caller, clock: SetClock
    ) -> None:
        for status in Status:
            put(me, status)
        assert len(entries(me.get("/api/stories.atom"))) == 1
        clock.forward(hours=1)
        story_of(edit(me, later := drafted(me)))
        story_of(change(me, later, "publish", 2))
        newest, oldest = entries(me.get("/api/stories.atom"))
        assert (text_of(newest, "id"), text_of(newest, "title")) == (f"urn:uuid:{later}", WORDING["headline"])
        assert text_of(newest, "published") > text_of(oldest, "published")
        assert text_of(newest, "summary") == WORDING["summary"]
        assert entries(site.caller().get("/api/stories.atom")) == []
        story_of(change(me, later, "archive", 3))
        assert [text_of(entry, "id") for entry in entries(me.get("/api/stories.atom"))] == [
            text_of(oldest, "id")
        ]

    @ON_SQLITE
    def test_is_whole_whatever_the_stories_say(self, me: Caller) -> None:
        unwritable = "\x08\x1b\x7f\ufffe\uffff"
        story_id = drafted(me)
        claims = [{"text": f"{HOSTILE}{unwritable}", "quote": ""}]
        hostile = {"headline": f"{HOSTILE}{unwritable}", "summary": f"{HOSTILE}{unwritable}"}
        story_of(edit(me, story_id, **hostile, whatHappened=claims))
        story_of(change(me, story_id, "publish", 2))
        (entry,) = entries(me.get("/api/stories.atom"))
        assert (text_of(entry, "title"), text_of(entry, "summary")) == (f"{HOSTILE}\x7f", f"{HOSTILE}\x7f")
        content = html.fromstring(f"<main>{text_of(entry, 'content')}</main>")
        assert content.xpath("//script | //a | //img") == []
        assert HOSTILE in content.xpath("ul/li")[0].text_content()
        assert "not found in the article" in content.xpath("ul/li")[0].text_content()

    @ON_SQLITE
    def test_has_absolute_links_alone(self, app: App, me: Caller, site: Site, pages: Pages) -> None:
        story_id = str(job_of(call(me, ready(me, pages), "generate"))["storyId"])
        story_of(change(me, story_id, "publish"))
        expected = {f"/admin/stories/{story_id}", "/admin/stories"}
        assert links(me.get("/api/stories.atom")) == {f"{site.url}{path}" for path in expected} | {
            pages.url("/boats")
        }
        public = replace(
            app, settings=app.settings.model_copy(update={"public_url": "https://nexus.example"})
        )
        with serve(public) as elsewhere:
            found = links(elsewhere.caller(me.user).get("/api/stories.atom"))
        assert found == {f"https://nexus.example{path}" for path in expected} | {pages.url("/boats")}

    @ON_SQLITE
    def test_is_opened_by_its_own_token_and_by_no_other(self, site: Site, me: Caller) -> None:
        story_of(change(me, story_id := drafted(me), "publish"))
        chosen, anyone = site.app.settings, site.anyone()
        opened = anyone.get("/api/stories.atom", params={"token": auth.feed_token(chosen, me.user)})
        assert [text_of(entry, "id") for entry in entries(opened)] == [f"urn:uuid:{story_id}"]
        others = {
            "a session": auth.session_token(chosen, me.user),
            "a sign-in link": auth.sign_in_token(chosen, me.user),
            "a bearer token": auth.issue_token(chosen, me.user),
            "nothing": "",
            "nonsense": "nonsense",
        }
        for what, token in others.items():
            answer = anyone.get("/api/stories.atom", params={"token": token})
            assert refused(answer) == (401, "E_UNAUTHORIZED"), what
        assert refused(anyone.get("/api/stories.atom")) == (401, "E_UNAUTHORIZED")

    @ON_SQLITE
    def test_has_a_token_that_opens_nothing_else(self, site: Site, me: Caller) -> None:
        story_id, token = drafted(me), auth.feed_token(site.app.settings, me.user)
        internal = {"X-Nexus-Internal": site.app.settings.internal_secret}
        bearer = site.anyone(Authorization=f"Bearer {token}", **internal)
        cookie, anyone = site.anyone(Cookie=f"{auth.COOKIE}={token}"), site.anyone()
        for path in ("/api/stories", f"/api/stories/{story_id}", "/api/ingestion-jobs"):
            assert refused(bearer.get(path)) == (401, "E_UNAUTHORIZED"), path
            assert refused(anyone.get(path, params={"token": token})) == (401, "E_UNAUTHORIZED"), path
        for elsewhere in (bearer, cookie):
            assert refused(elsewhere.get("/api/stories.atom")) == (401, "E_UNAUTHORIZED")
            assert problem(elsewhere.get("/events")) == (401, "E_UNAUTHORIZED")
        assert problem(bearer.get("/media")) == (401, "E_UNAUTHORIZED")
        assert cookie.get("/admin/stories").status_code == 401
        assert anyone.get("/sign-in", params={"token": token}).status_code == 401


def links(answer: httpx2.Response) -> set[str]:
    assert entries(answer)
    return {link.attrib["href"] for link in ET.fromstring(answer.content).iter(f"{ATOM}link")}
