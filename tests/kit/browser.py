"""Nexus as a person meets it: `nexus serve` as a process of its own, and a real browser in front of it."""

from __future__ import annotations

import json
import re
import signal
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from playwright.sync_api import Browser, BrowserContext, Locator, Page, Playwright, expect

from nexus.app import build
from nexus.db.session import Sessions
from nexus.db.session import connect as connect_database
from nexus.libraries import sign_ins
from nexus.media import runner
from nexus.settings import Settings
from nexus.web.http import cookies
from tests.kit.http import headers_of
from tests.kit.plugins import EVERY_GATE
from tests.kit.run_storage import run_prefix
from tests.kit.servers import Server, browsers
from tests.kit.settings import make_settings
from tests.kit.sign_ins import link_key

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"http://\S+/sign-in\?token=\S+")
#: How long an expectation may take to come true: loaded CI machines are slow.
expect.set_options(timeout=30_000)
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]

#: The weakest contrast of any text that the page shows, as WCAG counts it.
CONTRAST = """() => {
  const part = (value) => ((value /= 255) <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  const channels = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = (colour) => {
    const [red, green, blue] = channels(colour).map(part);
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const behind = (node) => {
    for (; node; node = node.parentElement) {
      const colour = getComputedStyle(node).backgroundColor;
      if (channels(colour)[3] !== 0 && colour.startsWith("rgb")) return colour;
    }
  };
  const shown = [...document.querySelectorAll("body *")].filter(
    (node) => node.checkVisibility() && [...node.childNodes].some((text) => text.nodeType === 3 && text.data.trim()),
  );
  return shown
    .map((node) => {
      const [front, back] = [light(getComputedStyle(node).color), light(behind(node))];
      return {
        ratio: (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05),
        text: node.textContent.trim().slice(0, 60),
      };
    })
    .reduce((weakest, one) => (one.ratio < weakest.ratio ? one : weakest));
}"""
PHONE = {"width": 390, "height": 844}
#: Controls without a label, which a screen reader can't tell apart.
NAMELESS = """() => [...document.querySelectorAll("input:not([type=hidden]), textarea, select, button, a[href]")]
  .filter((one) => !one.labels?.length && !one.ariaLabel && !one.textContent.trim())
  .map((one) => one.outerHTML.slice(0, 120))"""


@dataclass
class LiveSite:
    """A running Nexus, and the folder of gates that hold its extractor back."""

    server: Server
    gates: Path

    @property
    def url(self) -> str:
        return self.server.url

    @property
    def printed_link(self) -> str:
        """The last sign-in link that it printed."""
        return LINK.findall(self.server.log.read_text())[-1]

    @property
    def link(self) -> str:
        """A new sign-in link of its local owner."""
        owner = json.loads((self.data / "secrets.json").read_text())["local_owner"]
        return self.link_of(UUID(owner))

    @property
    def data(self) -> Path:
        return self.server.folder / "data"

    def settings(self) -> Settings:
        """Settings with the server's database and secrets, for what a test does beside it."""
        kept = json.loads((self.data / "secrets.json").read_text())
        secrets = {name: value for name, value in kept.items() if name.endswith("_secret")}
        return make_settings(f"sqlite:///{self.data / 'nexus.sqlite3'}", self.data, **secrets)

    @contextmanager
    def sessions(self) -> Iterator[Sessions]:
        """Sessions on the server's database."""
        made = connect_database(self.settings().database)
        try:
            yield made
        finally:
            made.dispose()

    def link_of_someone_new(self) -> str:
        return self.link_of(uuid4())

    def link_of(self, user: UUID) -> str:
        with self.sessions() as sessions:
            return f"{self.url}/sign-in?token={link_key(sessions, user)}"

    def user_on(self, page: Page) -> UUID:
        """The user who is signed in on this page."""
        kept = page.context.cookies(self.url)
        (cookie,) = [one for one in kept if one["name"] == cookies.SESSION]
        with self.sessions() as sessions, sessions.read() as session:
            found = sign_ins.find_sign_in(session, cookie["value"])
        assert found is not None
        return found.user_id

    def headers(self, page: Page) -> dict[str, str]:
        """Headers for API calls by the user who is signed in on this page."""
        return headers_of(self.settings(), self.user_on(page))

    def fail(self, media_id: str) -> None:
        """Fail it as a worker without an extractor does."""
        app = build(self.settings())
        runner.fail_unimplemented(app.tools, UUID(media_id))
        app.close()

    def let(self, name: str) -> None:
        """Let extraction of /held/NAME go on."""
        (self.gates / name).touch()


@contextmanager
def serving(folder: Path, **more: str) -> Iterator[LiveSite]:
    """Run `nexus serve` on SQLite in this folder, new or used, with tests/kit/plugins/page_articles.py as extractor."""
    gates = folder / "gates"
    gates.mkdir(parents=True, exist_ok=True)
    (gates / EVERY_GATE).unlink(missing_ok=True)
    given = {
        "PYTHONPATH": str(ROOT),
        "NEXUS_TEST_GATES": str(gates),
        "NEXUS_PLUGINS": "tests.kit.plugins.page_articles",
        "NEXUS_POLL_SECONDS": "0.1",
        "NEXUS_SWEEP_SECONDS": "0.2",
        "NEXUS_LEASE_SECONDS": "3",
        "NEXUS_WORKER_THREADS": "4",
        "NEXUS_STORAGE_PREFIX": run_prefix(),
        "NEXUS_EMBED": "off",
        **more,
    }
    named = [f"{name}={value}" for name, value in given.items()]
    start = [sys.executable, "-m", "nexus", "serve", "--data-dir", str(folder / "data"), "--port"]
    server = Server(
        name="Nexus",
        folder=folder,
        command=lambda port: ["env", *named, *start, str(port)],
        address=lambda port: f"http://127.0.0.1:{port}",
        answers=_answers,
        ending=signal.SIGTERM,
    )
    try:
        server.start()
        yield LiveSite(server, gates)
    finally:
        # A server that stops waits for the work that it does: half a minute for what is held.
        (gates / EVERY_GATE).touch()
        server.stop()


def launch(playwright: Playwright, *, shows_pdfs: bool = False) -> Browser:
    return playwright.chromium.launch(executable_path=browsers.chromium(shows_pdfs=shows_pdfs), args=FLAGS)


def signed_in(context: BrowserContext, site: LiveSite, link: str | None = None) -> Page:
    """The library of whom this link signs in, or else of the local owner.

    Uses the link as its button does, and draws no page for it: that takes as long as the rest.
    """
    token = (link or site.link).partition("token=")[2]
    headers = {"Sec-Fetch-Site": "same-origin"}
    answer = context.request.post(
        f"{site.url}/sign-in", form={"token": token}, headers=headers, max_redirects=0
    )
    assert answer.status == 303, answer.text()
    page = context.new_page()
    page.goto(f"{site.url}/")
    return page


@contextmanager
def without_complaints(page: Page) -> Iterator[None]:
    """Fails the test if a script of the page breaks, or the page violates its own security policy."""
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda said: complaints.append(said.text) if "Security" in said.text else None)
    yield
    assert complaints == []


def address(what: str) -> str:
    """An address that no other test has added."""
    return f"https://example.com/{what}-{uuid4().hex[:8]}"


def add(page: Page, url: str) -> Locator:
    """Paste an address and press Enter; the new item's row."""
    page.locator("#url").fill(url)
    page.locator("#url").press("Enter")
    expect(page.locator("#url")).to_have_value("")
    return row(page, url)


def row(page: Page, url: str) -> Locator:
    """The row of an address, found by its end, which is also in the title."""
    return page.locator(".item").filter(has_text=url.rpartition("-")[2])


def badge(where: Page | Locator) -> Locator:
    return where.locator(".badge").first


def add_ready(page: Page, what: str) -> Locator:
    added = add(page, address(what))
    expect(badge(added)).to_have_text("Ready")
    return added


def add_failed(page: Page, what: str) -> Locator:
    added = add(page, address(what))
    expect(badge(added)).to_have_text("Failed")
    return added


def opened(page: Page, added: Locator) -> Page:
    added.locator(".item-title a").click()
    expect(page.locator("#reader")).to_be_visible()
    return page


def weakest_text(page: Page) -> dict[str, Any]:
    """The least legible text of the page, in the light and in the dark theme. The page is not loaded again.

    Without motion: a colour that is still changing says nothing.
    """
    found: list[dict[str, Any]] = []
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")  # type: ignore[arg-type]
        found.append({**page.evaluate(CONTRAST), "theme": theme})
    return min(found, key=lambda one: float(one["ratio"]))


def reload_until(page: Page, added: Locator, state: str) -> None:
    """Reload until an item is in this state, for a browser without scripts."""
    for _ in range(100):
        if badge(added).inner_text() == state:
            return
        page.reload()
    expect(badge(added)).to_have_text(state)


def _answers(server: Server) -> bool:
    try:
        with urllib.request.urlopen(f"{server.url}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
