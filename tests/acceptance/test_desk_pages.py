"""What the editor's pages promise, in a real browser: from an address to a published story."""

from __future__ import annotations

import re
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect
from sqlalchemy import null, update

from nexus.app import build
from nexus.db.editorial import jobs
from nexus.db.session import Statement
from tests.kit.articles import ARTICLE, SENTENCES
from tests.kit.browser import NAMELESS, PHONE, LiveSite, badge, serving, signed_in, weakest_text
from tests.kit.http import Caller
from tests.kit.job_calls import TEXT, call_step, enter_job, job_of
from tests.kit.servers.openai_api import Model, fails, model, says
from tests.kit.servers.web_pages import Answer, Pages

SAID: dict[str, Any] = {
    "headline": "Boats leave the harbour again",
    "headline_quote": SENTENCES[0],
    "summary_quotes": [SENTENCES[0]],
    "summary": "After a long winter the boats have left the harbour again, and the town has come to see them.",
    "what_happened": [
        {"text": "The boats have left the harbour.", "quote": SENTENCES[0]},
        {"text": "The mayor waved a flag at them.", "quote": "The mayor waved a large flag from the pier"},
    ],
    "background": [{"text": "The weather of the year was good.", "quote": SENTENCES[4]}],
}
OTHERWISE = {**SAID, "headline": "The harbour is empty: all boats are out"}
_NO_PAUSE = Statement(update(jobs).values(generate_after=null()))


@pytest.fixture(scope="module")
def desk_pages() -> Iterator[Pages]:
    with Pages() as served:
        yield served


@pytest.fixture(scope="module")
def desk_llm() -> Iterator[Model]:
    with model() as running:
        yield running


@pytest.fixture(scope="module")
def live_site(
    tmp_path_factory: pytest.TempPathFactory, desk_pages: Pages, desk_llm: Model
) -> Iterator[LiveSite]:
    """With the extractors that Nexus brings, a small site to fetch from and a model to write drafts."""
    given = {
        "NEXUS_PLUGINS": "",
        "NEXUS_FETCH_ALLOW": desk_pages.place,
        "NEXUS_FETCH_DELAY_SECONDS": "0",
        "NEXUS_LLM_BASE_URL": desk_llm.url,
        "NEXUS_LLM_MODEL": "test-model",
    }
    with serving(tmp_path_factory.mktemp("desk"), **given) as running:
        yield running


@pytest.fixture
def editor(page: Page, live_site: LiveSite) -> Iterator[Caller]:
    """The user who is signed in on the page, over the API: for setting up what a test starts from."""
    with Caller(live_site.url, live_site.settings(), live_site.user_on(page)) as caller:
        yield caller


def article(pages: Pages, under: str = "") -> str:
    """The address of a new article."""
    path = f"{under}/boats-{uuid4().hex[:8]}"
    pages[path] = Answer(ARTICLE.encode())
    return pages.url(path)


def held_article(pages: Pages) -> str:
    """The address of a new article that is served once the gate is open."""
    pages.gate.clear()
    return article(pages, "/held")


def paste(page: Page, site: LiveSite, url: str) -> None:
    page.goto(f"{site.url}/admin/add-article")
    page.get_by_label("Address of an article").fill(url)
    page.get_by_label("Address of an article").press("Enter")
    expect(page.locator(".job-steps")).to_be_visible()


def step(page: Page, name: str) -> Locator:
    return page.locator(".job-step").filter(has_text=name)


def drafted(me: Caller, llm: Model, said: dict[str, Any] = SAID, text: str = TEXT) -> dict[str, Any]:
    """A job with its story."""
    llm.will(says(said))
    return job_of(call_step(me, enter_job(me, text), "generate"))


def edit(page: Page, site: LiveSite, job: dict[str, Any]) -> Page:
    page.goto(f"{site.url}/admin/stories/{job['storyId']}")
    return page


def save(page: Page) -> None:
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status").filter(has_text="Saved.")).to_be_visible()


def publish_anyway(page: Page) -> None:
    """Publish a story that the article does not fully support, and confirm it."""
    page.get_by_role("button", name="Publish").click()
    expect(page.get_by_role("alert")).to_contain_text(
        "Publish it even though the article does not fully support it?"
    )
    expect(badge(page)).not_to_have_text("Published")
    page.get_by_role("button", name="Publish anyway").click()
    expect(badge(page)).to_have_text("Published")


def let_the_pause_end(site: LiveSite) -> None:
    """Drafts of one job are five seconds apart."""
    app = build(site.settings())
    with app.sessions.begin() as session:
        session.run(_NO_PAUSE)
    app.close()


def test_an_address_becomes_a_published_story_that_is_in_the_feed(
    page: Page, live_site: LiveSite, desk_pages: Pages, desk_llm: Model
) -> None:
    desk_llm.will(says(SAID))
    paste(page, live_site, held_article(desk_pages))
    expect(step(page, "Fetch")).to_contain_text("In progress")
    expect(step(page, "Text")).to_contain_text("Waiting")
    desk_pages.gate.set()
    expect(page.locator(".job-step.is-done")).to_have_count(3)
    page.get_by_role("link", name="Open the story").click()
    expect(page.get_by_label("Headline", exact=True)).to_have_value(SAID["headline"])
    page.get_by_label("Headline", exact=True).fill("The whole fleet is out again")
    save(page)
    expect(page.locator("h1")).to_have_text("The whole fleet is out again")
    publish_anyway(page)
    page.goto(f"{live_site.url}/admin/stories")
    page.get_by_text("Follow the published stories").click()
    page.get_by_role("link", name="Make one on your account page").click()
    page.get_by_label("Name of a new address").fill("My feed reader")
    page.get_by_role("button", name="Make an address").click()
    with urllib.request.urlopen(page.get_by_label("The new address").input_value()) as feed:
        assert b"<title>The whole fleet is out again</title>" in feed.read()


def test_a_page_that_can_not_be_fetched_is_entered_by_hand(
    page: Page, live_site: LiveSite, desk_pages: Pages, desk_llm: Model
) -> None:
    desk_llm.will(says(SAID))
    paste(page, live_site, desk_pages.url("/nowhere"))
    expect(step(page, "Fetch")).to_contain_text("Failed")
    expect(page.locator(".failure")).to_contain_text("Page not found (404)")
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
    page: Page, live_site: LiveSite, desk_pages: Pages, desk_llm: Model
) -> None:
    page.clock.install()
    paste(page, live_site, held_article(desk_pages))
    expect(badge(page)).to_have_text("Fetching")
    late = page.locator("#overdue", has_text="has not arrived within 30 seconds")
    expect(late).to_be_hidden()
    page.clock.fast_forward(30_000)
    expect(late).to_be_visible()
    expect(badge(page)).to_have_text("Fetching")
    desk_llm.will(says(SAID))
    page.get_by_label("Title").fill("Entered while it was being fetched")
    page.locator("#pasted").fill(TEXT)
    page.get_by_role("button", name="Use this text").click()
    expect(step(page, "Text")).to_contain_text("Entered by hand")
    expect(page.locator("h1")).to_have_text("Entered while it was being fetched")
    expect(page.get_by_role("link", name="Open the story")).to_be_visible()
    expect(late).to_have_count(0)
    desk_pages.gate.set()


def test_a_text_that_comes_in_time_is_never_called_late(
    page: Page, live_site: LiveSite, desk_pages: Pages
) -> None:
    page.clock.install()
    paste(page, live_site, held_article(desk_pages))
    expect(badge(page)).to_have_text("Fetching")
    page.get_by_text("Enter title and text by hand").click()
    page.get_by_label("Title").fill("Something typed, which keeps the form on the page")
    desk_pages.gate.set()
    expect(badge(page)).to_have_text("Ready for a draft")
    page.clock.fast_forward(60_000)
    expect(badge(page)).to_have_text("Ready for a draft")
    expect(page.locator("#overdue")).to_be_hidden()


def test_text_entered_by_hand_outlives_a_text_that_arrives_meanwhile(
    page: Page, live_site: LiveSite, desk_pages: Pages, desk_llm: Model
) -> None:
    paste(page, live_site, desk_pages.url("/late"))
    expect(step(page, "Fetch")).to_contain_text("Failed")
    page.get_by_label("Title").fill("My own title")
    page.locator("#pasted").fill(TEXT)
    desk_pages["/late"] = Answer(ARTICLE.encode())
    elsewhere = page.context.new_page()
    elsewhere.goto(f"{live_site.url}/admin/jobs")
    elsewhere.locator(".item").get_by_role("button", name="Retry").click()
    desk_llm.will(says(SAID), says(SAID))
    expect(badge(page)).to_have_text("Story saved")
    page.get_by_role("button", name="Use this text").click()
    expect(page.get_by_role("alert")).to_contain_text("make a separate story from it")
    expect(page.get_by_label("Title")).to_have_value("My own title")
    page.get_by_role("button", name="Use this text").click()
    expect(page.locator("h1")).to_have_text("My own title")
    expect(page.get_by_role("link", name="Open the story")).to_be_visible()


def test_a_readable_item_becomes_a_story(
    page: Page, live_site: LiveSite, desk_pages: Pages, desk_llm: Model
) -> None:
    desk_llm.will(says(SAID))
    page.locator("#url").fill(article(desk_pages))
    page.locator("#url").press("Enter")
    page.get_by_role("link", name="The harbour").click()
    page.get_by_role("button", name="Draft a story").click()
    expect(step(page, "Text")).to_contain_text("From your library")
    expect(page.get_by_role("link", name="Open the story")).to_be_visible()


def test_every_claim_leads_to_its_passage_and_back(
    page: Page, live_site: LiveSite, editor: Caller, desk_llm: Model
) -> None:
    edit(page, live_site, drafted(editor, desk_llm))
    page.get_by_role("link", name="Evidence of claim 3").click()
    passage = page.locator("#article mark").filter(has_text=SENTENCES[4])
    expect(passage).to_be_in_viewport()
    passage.get_by_role("link", name="Claim 3").click()
    expect(page.locator("#claim-3")).to_be_in_viewport()
    page.get_by_label("What happened, claim 1", exact=True).focus()
    expect(page.locator("#article mark.is-shown")).to_contain_text(SENTENCES[0])


def test_a_claim_without_support_is_marked_until_it_has_some(
    page: Page, live_site: LiveSite, editor: Caller, desk_llm: Model
) -> None:
    edit(page, live_site, drafted(editor, desk_llm))
    unsupported = page.locator(".claim").filter(has_text="Not found in the article")
    expect(unsupported).to_have_count(1)
    expect(unsupported.locator("textarea").first).to_have_value("The mayor waved a flag at them.")
    page.get_by_role("link", name="1 claim without support").click()
    expect(unsupported).to_be_in_viewport()
    unsupported.locator(".quote").fill(SENTENCES[2])
    save(page)
    expect(unsupported).to_have_count(0)
    expect(page.locator("#article mark")).to_have_count(3)


def test_a_headline_without_support_is_marked_until_it_has_some(
    page: Page, live_site: LiveSite, editor: Caller, desk_llm: Model
) -> None:
    """Attack: the article told the model what to write on top."""
    obeyed = {"headline": "BUY SHINY COINS NOW", "headline_quote": "coins are a safe investment"}
    edit(page, live_site, drafted(editor, desk_llm, {**SAID, **obeyed}))
    headline = page.locator("#claim-headline")
    expect(headline).to_contain_text("Not found in the article")
    expect(page.locator("#claim-summary")).to_contain_text("Quote found")
    page.get_by_role("link", name="Headline without support").click()
    expect(headline).to_be_in_viewport()
    headline.locator(".quote").fill(SENTENCES[2])
    save(page)
    expect(headline).to_contain_text("Quote found")
    page.get_by_label("Headline", exact=True).focus()
    expect(page.locator("#article mark.is-shown")).to_contain_text(SENTENCES[2])


def test_a_claim_that_says_more_than_its_quote_gets_no_green_tick(
    page: Page, live_site: LiveSite, editor: Caller, desk_llm: Model
) -> None:
    edit(page, live_site, drafted(editor, desk_llm))
    first = page.locator("#claim-1")
    expect(first).to_contain_text("Quote found")
    first.locator("textarea").first.fill("The boats have left the harbour of Oslo in March 2099.")
    save(page)
    expect(first).to_contain_text("Edited: check the quote")
    expect(page.get_by_role("link", name="1 claim to check")).to_be_visible()
    first.get_by_label("The quote still supports it").check()
    save(page)
    expect(first).to_contain_text("Not in the quote: Oslo, March, 2099")
    expect(first).not_to_contain_text("Quote found")
    first.locator("textarea").first.fill("The boats have left the harbour again.")
    save(page)
    first.get_by_label("The quote still supports it").check()
    save(page)
    expect(first).to_contain_text("Quote found")


def test_claims_are_added_and_taken_out(
    page: Page, live_site: LiveSite, editor: Caller, desk_llm: Model
) -> None:
    edit(page, live_site, drafted(editor, desk_llm))
    page.get_by_label("Background, claim 2", exact=True).fill("A claim of the editor's own.")
    page.get_by_label("Background, claim 3", exact=True).fill("And one more of them.")
    page.locator("#claim-2").get_by_role("button", name="Remove").click()
    page.locator("#claim-1").get_by_role("button", name="Remove").click()
    page.locator("#claim-1").get_by_role("button", name="Undo").click()
    page.keyboard.press("Control+s")
    expect(page.get_by_role("status").filter(has_text="Saved.")).to_be_visible()
    expect(page.locator(".claims .claim:not(.is-blank) textarea:not(.quote)")).to_have_text(
        [
            "The boats have left the harbour.",
            "The weather of the year was good.",
            "A claim of the editor's own.",
            "And one more of them.",
        ]
    )


def test_another_draft_stands_beside_the_earlier_one(
    page: Page, live_site: LiveSite, editor: Caller, desk_llm: Model
) -> None:
    job = drafted(editor, desk_llm)
    let_the_pause_end(live_site)
    desk_llm.will(says(OTHERWISE))
    page.goto(f"{live_site.url}/admin/jobs/{job['id']}")
    page.get_by_role("button", name="Write another draft").click()
    expect(page.locator(".item-title")).to_have_text([OTHERWISE["headline"], SAID["headline"]])
    page.get_by_role("link", name="Compare the last two").click()
    expect(page.locator(".draft h2")).to_have_text([OTHERWISE["headline"], SAID["headline"]])
    expect(page.locator(".draft ins")).to_have_text([OTHERWISE["headline"], SAID["headline"]])
    page.locator(".draft").last.get_by_role("link", name="Open this one").click()
    expect(page.get_by_label("Headline", exact=True)).to_have_value(SAID["headline"])


def test_asking_for_drafts_too_fast_is_said_on_a_page_that_stays_live(
    page: Page, live_site: LiveSite, editor: Caller, desk_llm: Model
) -> None:
    job = drafted(editor, desk_llm)
    page.goto(f"{live_site.url}/admin/jobs/{job['id']}")
    page.get_by_role("button", name="Write another draft").click()
    expect(page.get_by_role("alert")).to_contain_text("A draft was requested a moment ago")
    expect(page.locator(".item-title")).to_have_text([SAID["headline"]])
    let_the_pause_end(live_site)
    desk_llm.will(says(OTHERWISE))
    call_step(editor, job["id"], "regenerate")
    expect(page.locator(".item-title")).to_have_text([OTHERWISE["headline"], SAID["headline"]])


def test_a_second_editor_is_told_and_keeps_what_they_typed(
    page: Page, live_site: LiveSite, editor: Caller, desk_llm: Model
) -> None:
    edit(page, live_site, drafted(editor, desk_llm))
    other = edit(page.context.new_page(), live_site, {"storyId": page.url.rpartition("/")[2]})
    other.get_by_label("Headline", exact=True).fill("A headline from the other window")
    save(other)
    page.get_by_label("Summary", exact=True).fill(
        "What was typed here meanwhile is still here, and nobody has lost it."
    )
    page.get_by_role("button", name="Publish").click()
    expect(page.get_by_role("alert")).to_contain_text("Someone else has changed this story.")
    expect(page.get_by_label("Summary", exact=True)).to_have_value(
        "What was typed here meanwhile is still here, and nobody has lost it."
    )
    expect(page.locator(".draft")).to_contain_text("A headline from the other window")
    expect(badge(page)).to_have_text("Draft")
    publish_anyway(page)
    expect(page.locator("h1")).to_have_text(SAID["headline"])
    # The other window has noticed, and can't overwrite it.
    expect(badge(other)).to_have_text("Published")
    other.get_by_label("Headline", exact=True).fill("Too late for this")
    other.get_by_role("button", name="Save").click()
    expect(other.get_by_role("alert")).to_contain_text("Only a draft or a story in review can be changed.")
    expect(other.get_by_label("Headline", exact=True)).to_have_value("Too late for this")


def test_a_story_goes_through_all_its_states(
    page: Page, live_site: LiveSite, editor: Caller, desk_llm: Model
) -> None:
    edit(page, live_site, drafted(editor, desk_llm))
    for verb, state in (
        ("Send to review", "In review"),
        ("Back to draft", "Draft"),
        ("Discard", "Discarded"),
        ("Restore", "Draft"),
        ("Publish", "Draft"),
        ("Publish anyway", "Published"),
        ("Archive", "Archived"),
    ):
        page.get_by_role("button", name=verb, exact=True).click()
        expect(badge(page)).to_have_text(state)


def test_leaving_a_page_with_unsaved_changes_asks_first(
    page: Page, live_site: LiveSite, editor: Caller, desk_llm: Model
) -> None:
    edit(page, live_site, drafted(editor, desk_llm))
    page.get_by_label("Headline", exact=True).press_sequentially("Typed")
    page.on("dialog", lambda dialog: dialog.dismiss())
    with page.expect_event("dialog") as asked:
        page.get_by_role("link", name="Stories").click()
    assert asked.value.type == "beforeunload"
    expect(page.get_by_label("Headline", exact=True)).to_have_value(re.compile("Typed"))


def test_jobs_that_failed_alike_are_retried_together(
    page: Page, live_site: LiveSite, desk_pages: Pages, desk_llm: Model
) -> None:
    paths = [f"/later-{uuid4().hex[:8]}" for _ in range(2)]
    for path in paths:
        paste(page, live_site, desk_pages.url(path))
        expect(step(page, "Fetch")).to_contain_text("Failed")
        desk_pages[path] = Answer(ARTICLE.encode())
    page.goto(f"{live_site.url}/admin/jobs")
    page.get_by_role("link", name="Failed", exact=True).click()
    failures = page.get_by_role("region", name="Failures by error")
    expect(failures).to_contain_text("2 jobs")
    failures.get_by_role("button", name="Retry all").click()
    expect(page.get_by_role("status").filter(has_text="2 jobs are being retried.")).to_be_visible()
    expect(page.locator(".item .badge")).to_have_text(["Ready for a draft", "Ready for a draft"])


def test_a_published_story_is_corrected_and_says_so(
    page: Page, live_site: LiveSite, editor: Caller, desk_llm: Model
) -> None:
    edit(page, live_site, drafted(editor, desk_llm))
    publish_anyway(page)
    expect(page.get_by_role("button", name="Save")).to_have_count(0)
    page.get_by_role("link", name="Correct").click()
    page.locator("#claim-2").get_by_role("button", name="Remove").click()
    page.get_by_label("What was wrong").fill("No flag was waved.")
    page.get_by_role("button", name="Publish the correction").click()
    expect(page.get_by_text("Corrected on")).to_contain_text("No flag was waved.")
    expect(badge(page)).to_have_text("Published")
    expect(page.locator(".claims .claim")).to_have_count(2)


def test_a_new_job_appears_by_itself_on_an_open_desk(page: Page, live_site: LiveSite, editor: Caller) -> None:
    first = enter_job(editor)
    page.goto(f"{live_site.url}/admin/jobs")
    expect(page.locator("#jobs .item")).to_have_count(1)
    page.locator(f"#job-{first} input[name=job]").check()
    second = enter_job(editor)
    expect(page.locator("#jobs .item")).to_have_count(2)
    expect(page.locator("#jobs .item").first).to_have_id(f"job-{second}")
    expect(page.locator(f"#job-{first} input[name=job]")).to_be_checked()


def test_jobs_are_selected_and_removed_together_and_their_stories_stay(
    page: Page, live_site: LiveSite, editor: Caller, desk_llm: Model
) -> None:
    drafted(editor, desk_llm)
    enter_job(editor)
    kept = enter_job(editor)
    page.goto(f"{live_site.url}/admin/jobs")
    page.get_by_label("All on this page").check()
    expect(page.get_by_text("3 selected")).to_be_visible()
    page.locator(f"#job-{kept} input[name=job]").uncheck()
    expect(page.get_by_text("2 selected")).to_be_visible()
    page.get_by_text("Remove selected…").click()
    page.get_by_role("button", name="Remove them").click()
    expect(page.get_by_role("status").filter(has_text="2 jobs are removed.")).to_be_visible()
    expect(page.locator("#jobs .item")).to_have_count(1)
    page.goto(f"{live_site.url}/admin/stories")
    expect(page.locator(".item-title")).to_have_text([SAID["headline"]])
    page.goto(f"{live_site.url}/admin/jobs/{kept}")
    page.get_by_text("Remove this job…").click()
    page.get_by_role("button", name="Remove it").click()
    expect(page.get_by_role("status").filter(has_text="1 job is removed.")).to_be_visible()


def test_the_editors_pages_work_without_scripts(
    browser: Browser, live_site: LiveSite, desk_pages: Pages, desk_llm: Model
) -> None:
    """The page keeps polling while a worker is busy."""
    with browser.new_context(java_script_enabled=False) as context:
        page = signed_in(context, live_site, live_site.link_of_someone_new())
        desk_llm.will(says(SAID))
        paste(page, live_site, held_article(desk_pages))
        expect(badge(page)).to_have_text("Fetching")
        desk_pages.gate.set()
        expect(badge(page)).to_have_text("Ready for a draft")
        page.get_by_role("button", name="Write the draft").click()
        page.get_by_role("link", name="Open the story").click()
        page.get_by_label("Headline", exact=True).fill("Short")
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("alert")).to_contain_text("Headline must be 10–200 characters (now 5).")
        expect(page.get_by_label("Headline", exact=True)).to_have_value("Short")
        page.get_by_label("Headline", exact=True).fill("Published without a single script")
        for field in page.locator("#claim-2 textarea").all():
            field.fill("")
        publish_anyway(page)
        expect(page.locator("h1")).to_have_text("Published without a single script")
        expect(page.locator(".claims .claim")).to_have_count(2)


def test_a_jobs_steps_go_on_without_a_stream_of_events(
    page: Page, live_site: LiveSite, desk_pages: Pages, desk_llm: Model
) -> None:
    page.route("**/events", lambda route: route.abort())
    desk_llm.will(says(SAID))
    paste(page, live_site, held_article(desk_pages))
    expect(step(page, "Fetch")).to_contain_text("In progress")
    desk_pages.gate.set()
    expect(page.get_by_role("link", name="Open the story")).to_be_visible()


@dataclass(frozen=True)
class Everything:
    """An editor who has one of everything."""

    user: UUID
    addresses: tuple[str, ...]


@pytest.fixture(scope="module")
def everything(browser: Browser, live_site: LiveSite, desk_pages: Pages, desk_llm: Model) -> Everything:
    user = uuid4()
    with Caller(live_site.url, live_site.settings(), user) as me, browser.new_context() as context:
        first = drafted(me, desk_llm, {**SAID, "headline": "Averyveryverylongword" * 9})
        let_the_pause_end(live_site)
        desk_llm.will(says(OTHERWISE))
        second = job_of(call_step(me, first["id"], "regenerate"))["storyId"]
        desk_llm.will(fails(401))
        call_step(me, enter_job(me), "generate")
        page = signed_in(context, live_site, live_site.link_of(user))
        paste(page, live_site, desk_pages.url("/" + "a-very-long-name-" * 12))
        expect(step(page, "Fetch")).to_contain_text("Failed")
        failed = page.url.removeprefix(live_site.url)
    return Everything(
        user,
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


def visited(context: BrowserContext, site: LiveSite, everything: Everything) -> Iterator[tuple[str, Page]]:
    """Every editor's page, with everything unfolded."""
    page = signed_in(context, site, site.link_of(everything.user))
    for address in everything.addresses:
        page.goto(site.url + address)
        page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
        yield address, page


def test_every_editors_page_fits_a_phone_is_legible_and_labels_its_controls(
    browser: Browser, live_site: LiveSite, everything: Everything
) -> None:
    """WCAG AA: text stands out 4.5 to 1 from what is behind it."""
    with browser.new_context(viewport=PHONE) as context:
        for address, page in visited(context, live_site, everything):
            assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], address
            weakest = weakest_text(page)
            assert weakest["ratio"] >= 4.5, (address, weakest)
            assert page.evaluate(NAMELESS) == [], address
