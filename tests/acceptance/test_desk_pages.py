"""What the editor's pages promise, in a real browser: from an address to a published story."""

from __future__ import annotations

import re
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect
from sqlalchemy import null, update

from nexus.app import build
from nexus.db.editorial import jobs
from nexus.db.session import Statement
from nexus.web.http import auth
from tests.acceptance.browsing import CONTRAST, Site, badge, serving, signed_in
from tests.editorial import TEXT, call, entered, job_of
from tests.http import Caller
from tests.integration.test_whole_path import ARTICLE, SENTENCES
from tests.openai_server import Model, fails, model, says
from tests.pages import Answer, Pages

pytestmark = pytest.mark.xdist_group("browser")
PHONE = {"width": 390, "height": 844}
SAID: dict[str, Any] = {
    "headline": "Boats leave the harbour again",
    "summary": "After a long winter the boats have left the harbour again, and the town has come to see them.",
    "what_happened": [
        {"text": "The boats have left the harbour.", "quote": SENTENCES[0]},
        {"text": "The mayor waved a flag at them.", "quote": "The mayor waved a large flag from the pier"},
    ],
    "background": [{"text": "The weather of the year was good.", "quote": SENTENCES[4]}],
}
OTHERWISE = {**SAID, "headline": "The harbour is empty: all boats are out"}
#: Fields that nobody who can't see the page could tell apart.
NAMELESS = """() => [...document.querySelectorAll("input:not([type=hidden]), textarea, select, button, a[href]")]
  .filter((one) => !one.labels?.length && !one.ariaLabel && !one.textContent.trim())
  .map((one) => one.outerHTML.slice(0, 120))"""
_NO_PAUSE = Statement(update(jobs).values(generate_after=null()))


@pytest.fixture(scope="module")
def pages() -> Iterator[Pages]:
    with Pages() as served:
        yield served


@pytest.fixture(scope="module")
def llm() -> Iterator[Model]:
    with model() as running:
        yield running


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, pages: Pages, llm: Model) -> Iterator[Site]:
    """With the extractors that Nexus brings, a small site to fetch from and a model to write drafts."""
    given = {
        "NEXUS_PLUGINS": "",
        "NEXUS_FETCH_ALLOW": pages.place,
        "NEXUS_FETCH_DELAY_SECONDS": "0",
        "NEXUS_LLM_BASE_URL": llm.url,
        "NEXUS_LLM_MODEL": "test-model",
    }
    with serving(tmp_path_factory.mktemp("desk"), **given) as running:
        yield running


@pytest.fixture
def me(page: Page, site: Site) -> Iterator[Caller]:
    """Who is signed in on the page, over HTTP: for what a test only starts from."""
    (cookie,) = page.context.cookies(site.url)
    user = auth.open_own_token(site.settings(), cookie["value"], "session")
    with Caller(site.url, site.settings(), user) as caller:
        yield caller


def article(pages: Pages, under: str = "") -> str:
    """The address of an article that no other test has."""
    path = f"{under}/boats-{uuid4().hex[:8]}"
    pages[path] = Answer(ARTICLE.encode())
    return pages.url(path)


def held_article(pages: Pages) -> str:
    """One that is not given out before the gate is open."""
    pages.gate.clear()
    return article(pages, "/held")


def paste(page: Page, site: Site, url: str) -> None:
    page.goto(f"{site.url}/admin/add-article")
    page.get_by_label("Address of an article").fill(url)
    page.get_by_label("Address of an article").press("Enter")
    expect(page.locator(".job-steps")).to_be_visible()


def step(page: Page, name: str) -> Locator:
    return page.locator(".job-step").filter(has_text=name)


def drafted(me: Caller, llm: Model, said: dict[str, Any] = SAID, text: str = TEXT) -> dict[str, Any]:
    """A job with its story."""
    llm.will(says(said))
    return job_of(call(me, entered(me, text), "generate"))


def edit(page: Page, site: Site, job: dict[str, Any]) -> Page:
    page.goto(f"{site.url}/admin/stories/{job['storyId']}")
    return page


def save(page: Page) -> None:
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status").filter(has_text="Saved.")).to_be_visible()


def let_the_pause_end(site: Site) -> None:
    """Drafts of one job are five seconds apart."""
    app = build(site.settings())
    with app.sessions.begin() as session:
        session.run(_NO_PAUSE)
    app.close()


def test_an_address_becomes_a_published_story_that_is_in_the_feed(
    page: Page, site: Site, pages: Pages, llm: Model
) -> None:
    llm.will(says(SAID))
    paste(page, site, held_article(pages))
    expect(step(page, "Fetch")).to_contain_text("Under way")
    expect(step(page, "Text")).to_contain_text("Waiting")
    pages.gate.set()
    expect(page.locator(".job-step.is-done")).to_have_count(3)
    page.get_by_role("link", name="Open the story").click()
    expect(page.get_by_label("Headline")).to_have_value(SAID["headline"])
    page.get_by_label("Headline").fill("The whole fleet is out again")
    save(page)
    expect(page.locator("h1")).to_have_text("The whole fleet is out again")
    page.get_by_role("button", name="Publish").click()
    expect(badge(page)).to_have_text("Published")
    page.goto(f"{site.url}/admin/stories")
    page.get_by_text("Follow the published stories").click()
    with urllib.request.urlopen(page.get_by_label("Address of the feed").input_value()) as feed:
        assert b"<title>The whole fleet is out again</title>" in feed.read()


def test_a_page_that_can_not_be_fetched_is_entered_by_hand(
    page: Page, site: Site, pages: Pages, llm: Model
) -> None:
    llm.will(says(SAID))
    paste(page, site, pages.url("/nowhere"))
    expect(step(page, "Fetch")).to_contain_text("Failed")
    expect(page.locator(".failure")).to_contain_text("The site answered 404")
    page.get_by_label("Title").fill("Boats")
    page.get_by_label("Text", exact=False).last.fill("Too short.")
    page.get_by_role("button", name="Use this text").click()
    expect(page.get_by_role("alert")).to_contain_text("100 to 50,000 characters")
    expect(page.get_by_label("Title")).to_have_value("Boats")
    page.locator("#pasted").fill(TEXT)
    page.get_by_role("button", name="Use this text").click()
    expect(step(page, "Text")).to_contain_text("Entered by hand")
    expect(page.get_by_role("link", name="Open the story")).to_be_visible()


def test_a_page_gives_up_after_thirty_seconds_and_offers_manual_entry_while_it_fetches(
    page: Page, site: Site, pages: Pages, llm: Model
) -> None:
    page.clock.install()
    paste(page, site, held_article(pages))
    expect(badge(page)).to_have_text("Fetching")
    late = page.locator("#overdue", has_text="has not arrived within 30 seconds")
    expect(late).to_be_hidden()
    page.clock.fast_forward(30_000)
    expect(late).to_be_visible()
    expect(badge(page)).to_have_text("Fetching")
    llm.will(says(SAID))
    page.get_by_label("Title").fill("Entered while it was being fetched")
    page.locator("#pasted").fill(TEXT)
    page.get_by_role("button", name="Use this text").click()
    expect(step(page, "Text")).to_contain_text("Entered by hand")
    expect(page.locator("h1")).to_have_text("Entered while it was being fetched")
    expect(page.get_by_role("link", name="Open the story")).to_be_visible()
    expect(late).to_have_count(0)
    pages.gate.set()


def test_a_text_that_comes_in_time_is_never_called_late(page: Page, site: Site, pages: Pages) -> None:
    page.clock.install()
    paste(page, site, held_article(pages))
    expect(badge(page)).to_have_text("Fetching")
    page.get_by_text("Enter title and text by hand").click()
    page.get_by_label("Title").fill("Something typed, which keeps the form on the page")
    pages.gate.set()
    expect(badge(page)).to_have_text("Ready for a draft")
    page.clock.fast_forward(60_000)
    expect(badge(page)).to_have_text("Ready for a draft")
    expect(page.locator("#overdue")).to_be_hidden()


def test_what_is_typed_by_hand_outlives_a_text_that_comes_in_meanwhile(
    page: Page, site: Site, pages: Pages, llm: Model
) -> None:
    paste(page, site, pages.url("/late"))
    expect(step(page, "Fetch")).to_contain_text("Failed")
    page.get_by_label("Title").fill("My own title")
    page.locator("#pasted").fill(TEXT)
    pages["/late"] = Answer(ARTICLE.encode())
    elsewhere = page.context.new_page()
    elsewhere.goto(f"{site.url}/admin/jobs")
    elsewhere.get_by_role("button", name="Retry").click()
    llm.will(says(SAID), says(SAID))
    expect(badge(page)).to_have_text("Story saved")
    page.get_by_role("button", name="Use this text").click()
    expect(page.get_by_role("alert")).to_contain_text("it becomes a story of its own")
    expect(page.get_by_label("Title")).to_have_value("My own title")
    page.get_by_role("button", name="Use this text").click()
    expect(page.locator("h1")).to_have_text("My own title")
    expect(page.get_by_role("link", name="Open the story")).to_be_visible()


def test_what_can_be_read_becomes_a_story(page: Page, site: Site, pages: Pages, llm: Model) -> None:
    llm.will(says(SAID))
    page.locator("#url").fill(article(pages))
    page.locator("#url").press("Enter")
    page.get_by_role("link", name="The harbour").click()
    page.get_by_role("button", name="Draft a story").click()
    expect(step(page, "Text")).to_contain_text("From your library")
    expect(page.get_by_role("link", name="Open the story")).to_be_visible()


def test_every_claim_leads_to_its_passage_and_back(page: Page, site: Site, me: Caller, llm: Model) -> None:
    edit(page, site, drafted(me, llm))
    page.get_by_role("link", name="Evidence of claim 3").click()
    passage = page.locator("#article mark").filter(has_text=SENTENCES[4])
    expect(passage).to_be_in_viewport()
    passage.get_by_role("link", name="Claim 3").click()
    expect(page.locator("#claim-3")).to_be_in_viewport()
    page.get_by_label("What happened, claim 1", exact=True).focus()
    expect(page.locator("#article mark.is-shown")).to_contain_text(SENTENCES[0])


def test_a_claim_without_support_is_marked_until_it_has_some(
    page: Page, site: Site, me: Caller, llm: Model
) -> None:
    edit(page, site, drafted(me, llm))
    unsupported = page.locator(".claim").filter(has_text="Not found in the article")
    expect(unsupported).to_have_count(1)
    expect(unsupported.locator("textarea").first).to_have_value("The mayor waved a flag at them.")
    page.get_by_role("link", name="1 claim without support").click()
    expect(unsupported).to_be_in_viewport()
    unsupported.locator(".quote").fill(SENTENCES[2])
    save(page)
    expect(unsupported).to_have_count(0)
    expect(page.locator("#article mark")).to_have_count(3)


def test_claims_are_added_and_taken_out(page: Page, site: Site, me: Caller, llm: Model) -> None:
    edit(page, site, drafted(me, llm))
    page.get_by_label("Background, claim 2", exact=True).fill("A claim of the editor's own.")
    page.get_by_label("Background, claim 3", exact=True).fill("And one more of them.")
    page.locator("#claim-2").get_by_role("button", name="Take out").click()
    page.locator("#claim-1").get_by_role("button", name="Take out").click()
    page.locator("#claim-1").get_by_role("button", name="Put back").click()
    page.keyboard.press("Control+s")
    expect(page.get_by_role("status").filter(has_text="Saved.")).to_be_visible()
    expect(page.locator(".claim:not(.is-blank) textarea:not(.quote)")).to_have_text(
        [
            "The boats have left the harbour.",
            "The weather of the year was good.",
            "A claim of the editor's own.",
            "And one more of them.",
        ]
    )


def test_another_draft_stands_beside_the_earlier_one(page: Page, site: Site, me: Caller, llm: Model) -> None:
    job = drafted(me, llm)
    let_the_pause_end(site)
    llm.will(says(OTHERWISE))
    page.goto(f"{site.url}/admin/jobs/{job['id']}")
    page.get_by_role("button", name="Write another draft").click()
    expect(page.locator(".item-title")).to_have_text([OTHERWISE["headline"], SAID["headline"]])
    page.get_by_role("link", name="Compare the last two").click()
    expect(page.locator(".draft h2")).to_have_text([OTHERWISE["headline"], SAID["headline"]])
    expect(page.locator(".draft ins")).to_have_text([OTHERWISE["headline"], SAID["headline"]])
    page.locator(".draft").last.get_by_role("link", name="Open this one").click()
    expect(page.get_by_label("Headline")).to_have_value(SAID["headline"])


def test_asking_for_drafts_too_fast_is_said_on_a_page_that_stays_live(
    page: Page, site: Site, me: Caller, llm: Model
) -> None:
    job = drafted(me, llm)
    page.goto(f"{site.url}/admin/jobs/{job['id']}")
    page.get_by_role("button", name="Write another draft").click()
    expect(page.get_by_role("alert")).to_contain_text("A draft was asked for a moment ago")
    expect(page.locator(".item-title")).to_have_text([SAID["headline"]])
    let_the_pause_end(site)
    llm.will(says(OTHERWISE))
    call(me, job["id"], "regenerate")
    expect(page.locator(".item-title")).to_have_text([OTHERWISE["headline"], SAID["headline"]])


def test_a_second_editor_is_told_and_keeps_what_he_typed(
    page: Page, site: Site, me: Caller, llm: Model
) -> None:
    edit(page, site, drafted(me, llm))
    other = edit(page.context.new_page(), site, {"storyId": page.url.rpartition("/")[2]})
    other.get_by_label("Headline").fill("A headline from the other window")
    save(other)
    page.get_by_label("Summary").fill("What was typed here meanwhile is still here, and nobody has lost it.")
    page.get_by_role("button", name="Publish").click()
    expect(page.get_by_role("alert")).to_contain_text("Somebody has changed this story since.")
    expect(page.get_by_label("Summary")).to_have_value(
        "What was typed here meanwhile is still here, and nobody has lost it."
    )
    expect(page.locator(".draft")).to_contain_text("A headline from the other window")
    expect(badge(page)).to_have_text("Draft")
    page.get_by_role("button", name="Publish").click()
    expect(badge(page)).to_have_text("Published")
    expect(page.locator("h1")).to_have_text(SAID["headline"])
    # And the other window has seen it, and can't write over it.
    expect(badge(other)).to_have_text("Published")
    other.get_by_label("Headline").fill("Too late for this")
    other.get_by_role("button", name="Save").click()
    expect(other.get_by_role("alert")).to_contain_text("Only a draft or a story in review can be changed.")
    expect(other.get_by_label("Headline")).to_have_value("Too late for this")


def test_a_story_goes_through_all_its_states(page: Page, site: Site, me: Caller, llm: Model) -> None:
    edit(page, site, drafted(me, llm))
    for verb, state in (
        ("Send to review", "In review"),
        ("Back to draft", "Draft"),
        ("Discard", "Discarded"),
        ("Restore", "Draft"),
        ("Publish", "Published"),
        ("Archive", "Archived"),
    ):
        page.get_by_role("button", name=verb).click()
        expect(badge(page)).to_have_text(state)


def test_leaving_with_something_unsaved_is_asked_about(
    page: Page, site: Site, me: Caller, llm: Model
) -> None:
    edit(page, site, drafted(me, llm))
    page.get_by_label("Headline").press_sequentially("Typed")
    page.on("dialog", lambda dialog: dialog.dismiss())
    with page.expect_event("dialog") as asked:
        page.get_by_role("link", name="Stories").click()
    assert asked.value.type == "beforeunload"
    expect(page.get_by_label("Headline")).to_have_value(re.compile("Typed"))


def test_what_failed_alike_is_tried_again_together(page: Page, site: Site, pages: Pages, llm: Model) -> None:
    paths = [f"/later-{uuid4().hex[:8]}" for _ in range(2)]
    for path in paths:
        paste(page, site, pages.url(path))
        expect(step(page, "Fetch")).to_contain_text("Failed")
        pages[path] = Answer(ARTICLE.encode())
    page.goto(f"{site.url}/admin/jobs")
    page.get_by_role("link", name="Failed", exact=True).click()
    failures = page.get_by_role("region", name="Failures by error")
    expect(failures).to_contain_text("2 jobs")
    failures.get_by_role("button", name="Retry all").click()
    expect(page.get_by_role("status").filter(has_text="2 jobs are being tried again.")).to_be_visible()
    expect(page.locator(".item .badge")).to_have_text(["Ready for a draft", "Ready for a draft"])


def test_everything_works_without_scripts(browser: Browser, site: Site, pages: Pages, llm: Model) -> None:
    """While somebody works at it, the page looks again by itself even so."""
    with browser.new_context(java_script_enabled=False) as context:
        page = signed_in(context, site, site.link_of_someone_new())
        llm.will(says(SAID))
        paste(page, site, held_article(pages))
        expect(badge(page)).to_have_text("Fetching")
        pages.gate.set()
        expect(badge(page)).to_have_text("Ready for a draft")
        page.get_by_role("button", name="Write the draft").click()
        page.get_by_role("link", name="Open the story").click()
        page.get_by_label("Headline").fill("Short")
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("alert")).to_contain_text("The headline has 5 characters.")
        expect(page.get_by_label("Headline")).to_have_value("Short")
        page.get_by_label("Headline").fill("Published without a single script")
        for field in page.locator("#claim-2 textarea").all():
            field.fill("")
        page.get_by_role("button", name="Publish").click()
        expect(badge(page)).to_have_text("Published")
        expect(page.locator("h1")).to_have_text("Published without a single script")
        expect(page.locator(".claim")).to_have_count(2)


def test_steps_go_on_where_there_is_no_stream_of_events(
    page: Page, site: Site, pages: Pages, llm: Model
) -> None:
    page.route("**/events", lambda route: route.abort())
    llm.will(says(SAID))
    paste(page, site, held_article(pages))
    expect(step(page, "Fetch")).to_contain_text("Under way")
    pages.gate.set()
    expect(page.get_by_role("link", name="Open the story")).to_be_visible()


@dataclass(frozen=True)
class Everything:
    """The desk of someone who has one of each, and the way in."""

    link: str
    addresses: tuple[str, ...]


@pytest.fixture(scope="module")
def everything(browser: Browser, site: Site, pages: Pages, llm: Model) -> Everything:
    user = uuid4()
    link = f"{site.url}/sign-in?token={auth.sign_in_token(site.settings(), user)}"
    with Caller(site.url, site.settings(), user) as me, browser.new_context() as context:
        first = drafted(me, llm, {**SAID, "headline": "Averyveryverylongword" * 9})
        let_the_pause_end(site)
        llm.will(says(OTHERWISE))
        second = job_of(call(me, first["id"], "regenerate"))["storyId"]
        llm.will(fails(401))
        call(me, entered(me), "generate")
        page = signed_in(context, site, link)
        paste(page, site, pages.url("/" + "a-very-long-name-" * 12))
        expect(step(page, "Fetch")).to_contain_text("Failed")
        failed = page.url.removeprefix(site.url)
    return Everything(
        link,
        (
            "/admin/add-article",
            "/admin/jobs",
            "/admin/jobs?show=failed",
            failed,
            f"/admin/jobs/{first['id']}",
            "/admin/stories",
            f"/admin/stories/{first['storyId']}",
            f"/admin/stories/{second}/compare?other={first['storyId']}",
        ),
    )


def visited(context: BrowserContext, site: Site, everything: Everything) -> Iterator[tuple[str, Page]]:
    """Every page of the desk, with all that it folds away unfolded."""
    page = signed_in(context, site, everything.link)
    for address in everything.addresses:
        page.goto(site.url + address)
        page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
        yield address, page


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_page_fits_a_phone_can_be_read_and_names_all_that_it_offers(
    browser: Browser, site: Site, everything: Everything, theme: Any
) -> None:
    """WCAG AA: text stands out 4.5 to 1 from what is behind it."""
    with browser.new_context(viewport=PHONE, color_scheme=theme) as context:
        for address, page in visited(context, site, everything):
            assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], address
            weakest = page.evaluate(CONTRAST)
            assert weakest["ratio"] >= 4.5, (address, weakest)
            assert page.evaluate(NAMELESS) == [], address
