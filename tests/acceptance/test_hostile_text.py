"""Text that was put into the database by somebody who could: nothing in it acts, in a real browser."""

from __future__ import annotations

import sqlite3

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.kit.browser import LiveSite, add_ready, opened, signed_in, without_complaints

DELETE = 'hx-post="/items/VICTIM/delete"'
#: Each tells htmx to delete VICTIM. Some close the elements around the text first.
ATTACKS = {
    "an element": f'<p {DELETE} hx-trigger="load">Text.</p>',
    "a data attribute": f'<p data-{DELETE} data-hx-trigger="load">Text.</p>',
    "beside the text": f'</section><p {DELETE} hx-trigger="load">Text.</p>',
    "outside of the text": f'</section></div></article></main><p {DELETE} hx-trigger="load">Text.</p>',
    "a live piece": f'</section><p id="prose" data-live data-at="9" {DELETE} hx-trigger="load">Text.</p>',
    "on any event": f'<p hx-on:load="1" hx-on::load="1" {DELETE} hx-trigger="revealed">Text.</p>',
}


def put_text(site: LiveSite, media_id: str, html: str) -> None:
    with sqlite3.connect(site.data / "nexus.sqlite3", timeout=30) as database:
        changed = database.execute(
            "UPDATE fragments SET html = ?, text = 'Text.' WHERE replace(media_id, '-', '') = ? AND position = 0",
            (html, media_id.replace("-", "")),
        )
    database.close()
    assert changed.rowcount == 1


@pytest.fixture
def library(context: BrowserContext, live_site: LiveSite) -> Page:
    return signed_in(context, live_site, live_site.link_of_someone_new())


@pytest.mark.parametrize("how", ATTACKS)
def test_a_stored_text_can_not_make_its_reader_delete_another_item(
    library: Page, live_site: LiveSite, how: str
) -> None:
    victim = add_ready(library, "victim").get_attribute("data-media")
    hostile = add_ready(library, "hostile-text")
    media_id = hostile.get_attribute("data-media")
    assert media_id is not None
    assert victim is not None
    put_text(live_site, media_id, ATTACKS[how].replace("VICTIM", victim))
    posts: list[str] = []
    library.on("request", lambda sent: posts.append(sent.url) if sent.method == "POST" else None)
    with without_complaints(library):
        opened(library, hostile)
        expect(library.locator("#f0")).to_contain_text("Text.")
        library.reload()
        library.mouse.wheel(0, 2000)
        expect(library.locator("#f0")).to_contain_text("Text.")
    assert posts == []
    assert library.request.get(f"{live_site.url}/items/{victim}").status == 200
    assert library.locator("#f0 [hx-post], #f0 [data-hx-post]").count() == 0


def test_htmx_ignores_what_stands_in_a_text_even_if_it_got_there(library: Page) -> None:
    """As if the check before it had failed: htmx is shown an instruction in the page itself."""
    opened(library, add_ready(library, "article/plain"))
    obeyed = library.evaluate("""async () => {
      const asked = [];
      document.addEventListener("htmx:beforeRequest", (event) => {
        asked.push(event.target.id);
        event.preventDefault();
      });
      for (const [id, place] of [["within", ".fragment"], ["outside", "#main"]]) {
        const html = `<div id="${id}" hx-post="/nowhere" hx-trigger="try"></div>`;
        document.querySelector(place).removeAttribute("hx-disable");
        document.querySelector(place).insertAdjacentHTML("beforeend", html);
        htmx.process(document.getElementById(id));
        htmx.trigger(`#${id}`, "try");
      }
      return asked;
    }""")
    assert obeyed == ["outside"]
