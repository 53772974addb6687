"""What axe-core finds wrong with a page, in both colour schemes, on a wide screen and on a phone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from tests.kit.browser import PHONE

WIDE = {"width": 1440, "height": 900}
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
EVERYTHING: dict[str, Any] = {
    "runOnly": {"type": "tag", "values": TAGS},
    "rules": {"target-size": {"enabled": True}},
    "resultTypes": ["violations"],
    "iframes": False,
}
#: All that depends on the colours.
COLOURS: dict[str, Any] = {
    **EVERYTHING,
    "runOnly": {"type": "rule", "values": ["color-contrast"]},
    "rules": {},
}
#: The order of headings inside a text is its author's.
OUTSIDE_OF_TEXTS = {"heading-order": ".fragment"}
_AXE = Axe()


#: What is wrong, without the rest of a long report.
_RUN = """async ({ options, places }) => {
  const { violations } = await axe.run(document, options);
  const isTheAuthors = (rule, node) => rule in places && document.querySelector(node.target[0])?.closest(places[rule]);
  return violations.flatMap(({ id, nodes }) =>
    nodes.filter((node) => !isTheAuthors(id, node)).slice(0, 3).map((node) => `${id}: ${node.html.slice(0, 160)}`),
  );
}"""


def violations(page: Page) -> list[str]:
    """Every rule that the page breaks, with the first elements that break it.

    Rules are checked once for each size, colours for each colour scheme as well. The page is not loaded again.
    """
    if not page.evaluate("'axe' in window"):
        page.evaluate(_AXE.axe_script)
    return [
        f"{page.url} ({look}): {one}"
        for look, options in _looks(page)
        for one in page.evaluate(_RUN, {"options": options, "places": OUTSIDE_OF_TEXTS})
    ]


def _looks(page: Page) -> Iterator[tuple[str, dict[str, Any]]]:
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    page.set_viewport_size(WIDE)
    yield "wide, light", EVERYTHING
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    yield "wide, dark", COLOURS
    page.set_viewport_size(PHONE)
    yield "phone, dark", EVERYTHING
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    yield "phone, light", COLOURS
