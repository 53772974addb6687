"""What the pages promise of long lists and long texts, in a real browser."""

from __future__ import annotations

from playwright.sync_api import Browser, Page, expect

from tests.kit.browser import LiveSite, add_ready, opened

MANY = 115


def add_many(page: Page, site: LiveSite) -> list[str]:
    """Videos, which wait for a processor, and a few articles, which are read at once.

    No page is open meanwhile: it would draw its list again for each of them.
    """
    urls = [
        f"https://example.com/long-list/number-{number}"
        if number % 10 == 0
        else f"https://www.youtube.com/watch?v=number-{number:04}"
        for number in range(MANY)
    ]
    page.goto("about:blank")
    for url in urls:
        headers = {"Sec-Fetch-Site": "same-origin"}
        added = page.request.post(f"{site.url}/items", form={"url": url}, headers=headers, max_redirects=0)
        assert added.status == 303, added.text()
    return [str(number) for number in range(MANY)]


def load_everything(page: Page) -> list[str]:
    """The numbers of the items, in the order of the list."""
    while page.get_by_role("link", name="Load more").count():
        before = page.locator(".item").count()
        page.get_by_role("link", name="Load more").click()
        expect(page.locator(".item").nth(before)).to_be_attached()
    titles = page.locator(".item-title").all_inner_texts()
    return [str(int(title.replace("-", " ").split()[-1])) for title in titles]


def test_a_long_list_keeps_loading_and_shows_everything_once(page: Page, live_site: LiveSite) -> None:
    added = add_many(page, live_site)
    page.goto(live_site.url)
    expect(page.locator(".item")).to_have_count(50)
    assert load_everything(page) == added[::-1]
    expect(page.locator(".badge").get_by_text("Ready", exact=True)).to_have_count(len(added[::10]))
    page.goto(f"{live_site.url}/?show=working")
    assert load_everything(page) == [number for number in added[::-1] if int(number) % 10]
    page.goto(f"{live_site.url}/?show=ready")
    assert load_everything(page) == [number for number in added[::-1] if int(number) % 10 == 0]


def test_a_long_text_keeps_loading_while_it_is_read(page: Page) -> None:
    opened(page, add_ready(page, "long/story"))
    for last in ("Paragraph 50 ", "Paragraph 100 ", "Paragraph 120 "):
        place = page.locator("#prose p").filter(has_text=last)
        place.scroll_into_view_if_needed()
        expect(place).to_be_in_viewport()
    expect(page.locator("#prose p")).to_have_count(120)


def test_a_long_text_can_be_read_without_scripts(browser: Browser, page: Page) -> None:
    opened(page, add_ready(page, "long/plain"))
    session = page.context.storage_state()
    with browser.new_context(java_script_enabled=False, storage_state=session) as context:
        plain = context.new_page()
        plain.goto(page.url)
        plain.get_by_role("link", name="Continue reading").click()
        expect(plain.locator("#prose p").first).to_contain_text("Paragraph 51 ")
        plain.get_by_role("link", name="Read from the beginning").click()
        expect(plain.locator("#prose p").first).to_contain_text("Paragraph 1 ")
