"""What was typed is never lost: not while the server is down, not on leaving, and not to somebody else's eyes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Dialog, Locator, Page, expect

from tests.kit.browser import LiveSite, add_failed, opened, signed_in
from tests.kit.http import Caller
from tests.kit.job_calls import TEXT, enter_job
from tests.kit.story_calls import draft_story

HEADLINE = "Typed while nobody was listening"
UNSAVED = "You have unsaved changes from"
FIELDS = "textarea, input[type=text]"


@pytest.fixture
def editor(page: Page, live_site: LiveSite) -> Iterator[Caller]:
    """The user who is signed in on the page, over the API: for setting up what a test starts from."""
    with Caller(live_site.url, live_site.settings(), live_site.user_on(page)) as caller:
        yield caller


def open_story(page: Page, site: LiveSite, story_id: str) -> Locator:
    """The field of its headline."""
    page.goto(f"{site.url}/admin/stories/{story_id}")
    return page.get_by_label("Headline", exact=True)


def leave(page: Page, address: str) -> list[str]:
    """Go elsewhere whatever the page asks; return what it asked."""
    asked: list[str] = []

    def agree(dialog: Dialog) -> None:
        asked.append(dialog.type)
        dialog.accept()

    page.once("dialog", agree)
    page.goto(address)
    if not asked:
        page.remove_listener("dialog", agree)
    return asked


def expect_nothing_kept(page: Page) -> None:
    """Also while the page moves on to another."""
    page.wait_for_function("() => !Object.keys(localStorage).some((key) => key.includes(':draft:'))")


def test_a_story_that_can_not_be_saved_stays_on_the_page_and_is_saved_later(
    page: Page, live_site: LiveSite, editor: Caller
) -> None:
    story = draft_story(editor)
    headline = open_story(page, live_site, story)
    headline.fill(HEADLINE)
    page.context.set_offline(True)
    page.get_by_role("button", name="Save").click()
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("Nexus did not answer. Not saved.")
    expect(alert).to_contain_text("what you typed is kept in this browser")
    expect(alert).to_be_in_viewport()
    expect(headline).to_have_value(HEADLINE)
    page.context.set_offline(False)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status").filter(has_text="Saved.")).to_be_visible()
    expect(page.locator("h1")).to_have_text(HEADLINE)
    expect_nothing_kept(page)


def test_every_form_with_text_says_in_place_that_it_was_not_saved_and_warns_before_leaving(
    page: Page, live_site: LiveSite, editor: Caller
) -> None:
    library = editor.post("/libraries", json={"name": "Research"}).json()["data"]["id"]
    addresses = ["/", "/admin/add-article", "/import", "/sharing", f"/sharing/{library}", "/account"]
    addresses += [f"/admin/jobs/{enter_job(editor)}", f"/admin/stories/{draft_story(editor)}"]
    seen = 0
    for address in addresses:
        page.goto(live_site.url + address)
        for place in range(page.locator("form[method=post]").count()):
            form = page.locator("form[method=post]").nth(place)
            field = form.locator(FIELDS).first
            if not field.count() or not form.evaluate("(form) => form.checkVisibility()"):
                continue
            seen += 1
            page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
            for choice in form.get_by_label("Library", exact=True).all():
                choice.select_option(label="New library…")
            field.fill("Typed here, and not saved")
            page.context.set_offline(True)
            form.evaluate("(form) => form.requestSubmit()")
            expect(page.get_by_text("Nexus did not answer").last, address).to_be_visible()
            expect(field, address).to_have_value("Typed here, and not saved")
            page.context.set_offline(False)
            assert leave(page, live_site.url + address) == ["beforeunload"], address
            expect(page.get_by_text(UNSAVED), address).to_be_visible()
            page.get_by_role("button", name="Discard what you typed").click()
            expect(page.get_by_text(UNSAVED), address).to_have_count(0)
            assert leave(page, live_site.url + address) == [], address
    assert seen >= 8


def test_pasted_text_is_offered_again_after_leaving(page: Page, live_site: LiveSite) -> None:
    page.goto(f"{live_site.url}/admin/add-article")
    page.get_by_text("Paste the text instead").click()
    page.get_by_label("Title").fill("Boats")
    page.locator("#pasted").fill(TEXT)
    leave(page, f"{live_site.url}/admin/stories")
    page.goto(f"{live_site.url}/admin/add-article")
    offer = page.get_by_text(UNSAVED)
    expect(offer).to_be_visible()
    assert offer.inner_text()[-6:-1].replace(":", "").isdigit()
    page.get_by_role("button", name="Restore what you typed").click()
    expect(offer).to_have_count(0)
    expect(page.locator("#pasted")).to_have_value(TEXT)
    page.get_by_role("button", name="Use this text").click()
    expect(page.locator("h1")).to_have_text("Boats")
    expect_nothing_kept(page)


def test_the_text_of_an_item_is_saved_without_a_warning(page: Page) -> None:
    opened(page, add_failed(page, "never/walled"))
    page.get_by_text("Paste the text of the page").click()
    page.get_by_label("Text of the page").press_sequentially("Boats")
    page.on("dialog", lambda _: None)  # nobody answers
    page.get_by_role("button", name="Use this text").click()
    expect(page.locator("#prose")).to_contain_text("Boats")


def test_text_typed_into_a_page_with_an_offer_does_not_replace_what_is_offered(
    page: Page, live_site: LiveSite, editor: Caller
) -> None:
    story = draft_story(editor)
    open_story(page, live_site, story).fill("The first headline")
    leave(page, f"{live_site.url}/admin/stories")
    open_story(page, live_site, story).fill("The second headline")
    leave(page, f"{live_site.url}/admin/stories")
    headline = open_story(page, live_site, story)
    page.get_by_role("button", name="Restore what you typed").click()
    expect(headline).to_have_value("The second headline")
    page.get_by_role("button", name="Restore what you typed").click()
    expect(headline).to_have_value("The first headline")


def test_restored_claims_come_back_and_never_replace_a_later_wording_unseen(
    page: Page, live_site: LiveSite, editor: Caller
) -> None:
    story = draft_story(editor)
    open_story(page, live_site, story)
    added = page.locator("textarea[name=background_text]")
    count = added.count()
    added.last.fill("A claim of the editor's own.")
    added.last.fill("And one more of them.")
    leave(page, f"{live_site.url}/admin/stories")
    other = page.context.new_page()
    open_story(other, live_site, story).fill("A headline from another window")
    other.get_by_role("button", name="Save").click()
    expect(other.get_by_role("status").filter(has_text="Saved.")).to_be_visible()
    open_story(page, live_site, story)
    page.get_by_role("button", name="Restore what you typed").click()
    expect(added).to_have_count(count + 2)
    expect(added.nth(count)).to_have_value("And one more of them.")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("Someone else has changed this story.")
    expect(page.locator(".draft")).to_contain_text("A headline from another window")
    expect(added.nth(count)).to_have_value("And one more of them.")


def test_nobody_else_who_uses_the_browser_is_offered_what_was_typed(page: Page, live_site: LiveSite) -> None:
    owner = live_site.user_on(page)
    page.goto(f"{live_site.url}/sharing")
    page.get_by_label("New library").fill("A secret project")
    page.context.clear_cookies()
    leave(page, f"{live_site.url}/sign-in")
    other = signed_in(page.context, live_site, live_site.link_of_someone_new())
    other.goto(f"{live_site.url}/sharing")
    expect(other.get_by_label("New library")).to_have_value("")
    expect(other.get_by_text(UNSAVED)).to_have_count(0)
    other.get_by_label("New library").fill("Theirs")
    other.once("dialog", lambda dialog: dialog.accept())
    other.get_by_role("button", name="Sign out").first.click()
    expect(other.get_by_role("heading", name="Sign in to Nexus")).to_be_visible()
    kept = "Object.keys(localStorage).filter((key) => key.includes(':draft:'))"
    assert [key for key in other.evaluate(kept) if str(owner) not in key] == []
    back = signed_in(page.context, live_site, live_site.link_of(owner))
    back.goto(f"{live_site.url}/sharing")
    back.get_by_role("button", name="Restore what you typed").click()
    expect(back.get_by_label("New library")).to_have_value("A secret project")


def test_what_a_browser_keeps_can_not_be_read_there_and_goes_at_sign_out(
    page: Page, live_site: LiveSite, editor: Caller
) -> None:
    """Anybody with the browser's files can read its storage: unsaved text, recent searches, the last list."""
    everything = "JSON.stringify([localStorage, sessionStorage])"
    editor.add("https://whistleblower.example/one")
    page.goto(f"{live_site.url}/?site=whistleblower.example")
    page.wait_for_function("() => Object.keys(sessionStorage).some((key) => key.endsWith(':tab:list'))")
    page.evaluate("nexusKept.set('recent', ['embezzlement'])")
    page.wait_for_function("() => Object.keys(localStorage).some((key) => key.endsWith(':recent'))")
    page.goto(f"{live_site.url}/sharing")
    page.get_by_label("New library").fill("A secret project")
    page.wait_for_function("() => Object.keys(localStorage).some((key) => key.includes(':draft:'))")
    kept = page.evaluate(everything)
    assert not [word for word in ("whistleblower", "embezzlement", "secret project") if word in kept]
    assert page.evaluate("[nexusKept.get('recent'), nexusKept.get('tab:list')]") == [
        ["embezzlement"],
        "site=whistleblower.example",
    ]
    page.once("dialog", lambda dialog: dialog.accept())
    page.route("**/sign-out", lambda route: route.abort())
    page.get_by_role("button", name="Sign out").first.click()
    expect(page.get_by_text("Nexus did not answer.")).to_be_visible()
    assert "nexus:kept" not in page.evaluate(everything)


def test_signing_out_asks_first_if_that_deletes_unsaved_text(page: Page, live_site: LiveSite) -> None:
    page.goto(f"{live_site.url}/sharing")
    page.get_by_label("New library").fill("Half a name")
    page.once("dialog", lambda dialog: dialog.dismiss())
    with page.expect_event("dialog") as asked:
        page.get_by_role("button", name="Sign out").first.click()
    assert "Signing out deletes them" in asked.value.message
    expect(page.get_by_label("New library")).to_have_value("Half a name")
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Sign out").first.click()
    expect(page.get_by_role("heading", name="Sign in to Nexus")).to_be_visible()
    expect_nothing_kept(page)


def test_a_form_sent_after_the_session_has_ended_leads_to_a_sign_in_and_keeps_its_text(
    page: Page, live_site: LiveSite
) -> None:
    user = live_site.user_on(page)
    page.goto(f"{live_site.url}/sharing")
    page.get_by_label("New library").fill("Typed before the end")
    page.context.clear_cookies()
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("alert")).to_contain_text("You are signed out. Not saved.")
    expect(page.get_by_role("link", name="Sign in on another tab")).to_be_visible()
    signed_in(page.context, live_site, live_site.link_of(user))
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", level=1, name="Typed before the end")).to_be_visible()
