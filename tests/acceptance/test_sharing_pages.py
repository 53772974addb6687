"""People on the pages: who is in a library, inviting, accepting, roles and leaving, in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from uuid import uuid4

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.kit.browser import NAMELESS, PHONE, LiveSite, signed_in, weakest_text, without_complaints


@pytest.fixture
def other(browser: Browser, live_site: LiveSite) -> Iterator[Page]:
    """The library of somebody else, in a browser of their own."""
    with browser.new_context() as context:
        opened = signed_in(context, live_site, live_site.link_of_someone_new())
        with without_complaints(opened):
            yield opened


def go_to_people(page: Page) -> None:
    page.get_by_role("navigation", name="Main").get_by_role("link", name="People").click()
    expect(page.get_by_role("heading", level=1, name="People")).to_be_visible()


def call_oneself(page: Page, name: str) -> str:
    """Set the name; return the user id that the page shows."""
    go_to_people(page)
    page.get_by_label("Your name").fill(name)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_label("Your name")).to_have_value(name)
    return page.locator(".pairs code").inner_text()


def create(page: Page, name: str) -> None:
    go_to_people(page)
    page.get_by_label("New library").fill(name)
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", level=1, name=name)).to_be_visible()


def invite(page: Page, whom: str, role: str = "Member") -> None:
    page.get_by_label("Email or user id").fill(whom)
    page.get_by_role("radio", name=role).check(force=True)
    page.get_by_role("button", name="Invite").click()


def person(page: Page, name: str) -> Locator:
    return page.locator(".person").filter(has_text=name)


def shared(page: Page, other: Page, name: str) -> None:
    """A library of the first person, which the other has joined."""
    them = call_oneself(other, "Ben Other")
    call_oneself(page, "Ann First")
    create(page, name)
    invite(page, them)
    expect(page.get_by_text("open until")).to_be_visible()
    go_to_people(other)
    other.get_by_role("button", name="Accept").click()
    expect(other.get_by_role("heading", level=1, name=name)).to_be_visible()
    page.reload()


def test_an_invitation_is_announced_accepted_and_gone(page: Page, other: Page, live_site: LiveSite) -> None:
    them, name = call_oneself(other, "Ben Other"), f"Research {uuid4().hex[:6]}"
    call_oneself(page, "Ann First")
    create(page, name)
    invite(page, them)
    expect(person(page, them)).to_contain_text("as a member")
    other.goto(live_site.url)
    other.get_by_role("link", name="You have an invitation").click()
    expect(other.locator(".offer")).to_contain_text(f"Ann First invites you to the library {name}.")
    expect(other.locator(".person")).to_have_text([re.compile("My library")])
    other.get_by_role("button", name="Accept").click()
    expect(person(other, "Ann First")).to_contain_text("Admin")
    expect(person(other, "Ben Other")).to_contain_text("Member")
    expect(other.get_by_role("button", name="Invite")).to_have_count(0)
    expect(other.get_by_role("button", name="Make")).to_have_count(0)
    page.reload()
    expect(page.get_by_text("Open invitations")).to_have_count(0)
    other.goto(live_site.url)
    expect(other.get_by_role("link", name="You have an invitation")).to_have_count(0)


def test_an_invitation_can_be_declined_and_taken_back(page: Page, other: Page) -> None:
    them = call_oneself(other, "Ben Other")
    create(page, "Research")
    invite(page, them, "Admin")
    expect(person(page, them)).to_contain_text("as an admin")
    go_to_people(other)
    other.get_by_role("button", name="Decline").click()
    expect(other.locator(".offer")).to_have_count(0)
    invite(page, "nobody@example.com")
    page.get_by_role("button", name="Revoke the invitation of nobody@example.com").click()
    expect(page.get_by_text("nobody@example.com")).to_have_count(0)


def test_what_can_not_be_invited_comes_back_with_the_reason(page: Page) -> None:
    create(page, "Wrong")
    invite(page, "not an address")
    expect(page.get_by_role("alert")).to_contain_text("This is not an email address.")
    expect(page.get_by_label("Email or user id")).to_have_value("not an address")


def test_admins_change_roles_and_remove_people(page: Page, other: Page) -> None:
    shared(page, other, "Roles")
    person(page, "Ben Other").get_by_role("button", name="Make admin").click()
    expect(person(page, "Ben Other").locator(".badge")).to_have_text("Admin")
    other.reload()
    person(other, "Ann First").get_by_role("button", name="Make member").click()
    expect(person(other, "Ann First").locator(".badge")).to_have_text("Member")
    person(other, "Ann First").get_by_text("Remove…").click()
    other.get_by_role("button", name="Remove them").click()
    expect(other.locator(".person")).to_have_count(1)
    go_to_people(page)
    expect(page.locator(".person")).to_have_text([re.compile("My library")])


def test_the_last_admin_is_told_why_they_can_not_leave(page: Page, other: Page) -> None:
    shared(page, other, "Leaving")
    person(page, "Ann First").get_by_text("Leave…").click()
    page.get_by_role("button", name="Leave the library").click()
    expect(page.get_by_role("alert")).to_contain_text("A library needs an admin.")
    person(other, "Ben Other").get_by_text("Leave…").click()
    other.get_by_role("button", name="Leave the library").click()
    expect(other.get_by_role("heading", level=1, name="People")).to_be_visible()
    expect(other.locator(".person")).to_have_text([re.compile("My library")])


def test_a_stranger_can_not_open_the_people_of_a_library(page: Page, other: Page) -> None:
    create(page, "Private")
    answer = other.goto(page.url)
    assert answer is not None
    assert answer.status == 404


def test_the_pages_fit_a_phone_and_can_be_read(
    browser: Browser, live_site: LiveSite, page: Page, other: Page
) -> None:
    name = "A library with quite a long name, and then some more of it"
    shared(page, other, name)
    invite(page, "somebody-with-a-long-address@department.university.example.com")
    expect(page.get_by_text("Open invitations")).to_be_visible()
    with browser.new_context(viewport=PHONE, storage_state=page.context.storage_state()) as context:
        small = context.new_page()
        for address in ("/sharing", page.url.removeprefix(live_site.url).partition("#")[0]):
            small.goto(live_site.url + address)
            assert small.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], address
            weakest = weakest_text(small)
            assert weakest["ratio"] >= 4.5, weakest
            assert small.evaluate(NAMELESS) == []
