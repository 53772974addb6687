"""Watching and listening in a real browser: the whole way from Play to the next recording."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from uuid import UUID, uuid4

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from nexus.app import App, build
from nexus.extract.recording import Recording
from nexus.media.recordings import heard
from tests.kit.accessibility import violations
from tests.kit.browser import PHONE, LiveSite, serving, signed_in, without_complaints
from tests.kit.browser_uploads import drop
from tests.kit.fake_players import VIMEO, YOUTUBE
from tests.kit.recordings import about, add_recording, tone, transcript
from tests.kit.servers.sound_site import Published, SoundSite

pytestmark = pytest.mark.xdist_group("browser")
SPOKEN = ".spoken"
IN_VIEW = """() => {
  const box = document.querySelector(".spoken").getBoundingClientRect();
  return box.top >= 0 && box.bottom <= document.querySelector(".dock").getBoundingClientRect().top;
}"""


@pytest.fixture(scope="module")
def sounds() -> Iterator[SoundSite]:
    with SoundSite() as running:
        running["/talk.wav"] = Published(tone(48))
        running["/short.wav"] = Published(tone(2))
        yield running


@pytest.fixture(scope="module")
def live_site(tmp_path_factory: pytest.TempPathFactory, sounds: SoundSite) -> Iterator[LiveSite]:
    more = {"NEXUS_FETCH_ALLOW": sounds.place, "NEXUS_FETCH_DELAY_SECONDS": "0", "NEXUS_EXTRACTION": "off"}
    with serving(tmp_path_factory.mktemp("player"), **more) as running:
        yield running


@pytest.fixture(scope="module")
def nexus(live_site: LiveSite) -> Iterator[App]:
    """Beside the server, on its database."""
    made = build(live_site.settings())
    yield made
    made.close()


@pytest.fixture
def page(browser: Browser, live_site: LiveSite) -> Iterator[Page]:
    with browser.new_context(reduced_motion="reduce") as context:
        opened = signed_in(context, live_site, live_site.link_of_someone_new())
        with without_complaints(opened):
            yield opened


Make = Callable[..., UUID]


@pytest.fixture
def make(nexus: App, live_site: LiveSite, page: Page, sounds: SoundSite) -> Make:
    """Adds a recording to the library of whom the page belongs to."""
    user = live_site.user_on(page)

    def made(known: Recording | None = None, *, has_text: bool = True, url: str | None = None) -> UUID:
        text = transcript((known and known.title) or "The ferry at noon") if has_text else None
        return add_recording(nexus, user, known or about(sounds.url("/talk.wav")), text, url)

    return made


def visit(page: Page, live_site: LiveSite, media_id: UUID, query: str = "") -> None:
    page.goto(f"{live_site.url}/items/{media_id}{query}")
    expect(page.locator("#player-toggle")).to_be_visible()


def toggle(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def play_slowly(page: Page) -> None:
    """A sentence of four seconds takes a minute, so that it is still spoken when a busy machine looks at it."""
    page.evaluate(
        "addEventListener('ratechange', (event) => { "
        "if (event.target.playbackRate !== 0.0625) event.target.playbackRate = 0.0625; }, true)"
    )
    page.evaluate("addEventListener('play', (event) => { event.target.playbackRate = 0.0625; }, true)")


def place(page: Page) -> float:
    return float(page.evaluate("nexusPlayer.time()"))


def test_a_listener_plays_clicks_a_sentence_and_the_player_jumps(
    page: Page, live_site: LiveSite, make: Make, sounds: SoundSite
) -> None:
    media_id = make()
    before = len(sounds.asked)
    visit(page, live_site, media_id)
    assert sounds.asked[before:] == []
    toggle(page, "Play")
    expect(page.locator("#player")).to_have_class(re.compile("is-playing"))
    expect(page.locator(SPOKEN)).to_have_text("Nobody remembers who painted the ferry green.")
    expect(page.locator(SPOKEN)).to_have_attribute("aria-current", "true")
    page.get_by_text("In winter the harbour freezes.").click(position={"x": 120, "y": 8})
    page.wait_for_function("() => document.querySelector('#sound').currentTime >= 4")
    assert len(sounds.asked) > before


def test_a_click_on_a_sentence_plays_from_there(page: Page, live_site: LiveSite, make: Make) -> None:
    visit(page, live_site, make())
    play_slowly(page)
    click_on(page, "You can walk to the island.")
    expect(page.locator(SPOKEN)).to_have_text("You can walk to the island.")
    assert 28 <= place(page) < 32
    click_on(page, "It was there one morning.")
    expect(page.locator(SPOKEN)).to_have_text("It was there one morning.")
    assert 4 <= place(page) < 8
    assert (
        page.evaluate("document.querySelectorAll('[aria-current]#prose *, #prose [aria-current]').length")
        == 1
    )


def click_on(page: Page, sentence: str) -> None:
    """In the middle of its first word."""
    box = page.evaluate(
        """(sentence) => {
          const walker = document.createTreeWalker(document.querySelector("#prose"), NodeFilter.SHOW_TEXT);
          while (walker.nextNode()) {
            const at = walker.currentNode.data.indexOf(sentence);
            if (at < 0) continue;
            const range = document.createRange();
            range.setStart(walker.currentNode, at + 1);
            range.setEnd(walker.currentNode, at + 3);
            walker.currentNode.parentElement.scrollIntoView({ block: "center", behavior: "instant" });
            const { x, y, width, height } = range.getBoundingClientRect();
            return { x: x + width / 2, y: y + height / 2 };
          }
        }""",
        sentence,
    )
    page.mouse.click(box["x"], box["y"])


def test_the_words_stay_letter_for_letter_while_they_are_marked(
    page: Page, live_site: LiveSite, make: Make
) -> None:
    visit(page, live_site, make())
    texts = "[...document.querySelectorAll('.fragment')].map((one) => one.textContent)"
    expected = [fragment.text for fragment in transcript().fragments]
    assert page.evaluate(texts) == expected
    click_on(page, "Ice is a kind of road.")
    expect(page.locator(SPOKEN)).to_be_visible()
    assert page.evaluate(texts) == expected


def test_a_paragraph_is_played_from_by_keyboard(page: Page, live_site: LiveSite, make: Make) -> None:
    visit(page, live_site, make())
    stamp = page.get_by_role("button", name="Play from 0:12")
    stamp.focus()
    page.keyboard.press("Enter")
    expect(page.locator(SPOKEN)).to_have_text("The captain said nothing at all.")


def test_the_keyboard_plays_skips_and_changes_the_speed(page: Page, live_site: LiveSite, make: Make) -> None:
    visit(page, live_site, make())
    page.keyboard.press("k")
    expect(page.get_by_role("button", name="Pause", exact=True)).to_be_visible()
    page.wait_for_function("() => document.querySelector('#sound').readyState > 0")
    page.keyboard.press("Space")
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible()
    page.keyboard.press("l")
    assert 30 <= place(page) < 40
    page.keyboard.press("ArrowLeft")
    assert 15 <= place(page) < 25
    page.keyboard.press("j")
    assert place(page) < 10
    page.keyboard.press("ArrowRight")
    assert 30 <= place(page) < 40
    page.keyboard.press("Shift+>")
    expect(page.get_by_label("Speed")).to_have_value("1.25")
    assert page.evaluate("document.querySelector('#sound').playbackRate") == 1.25
    page.keyboard.press("Shift+<")
    page.keyboard.press("Shift+<")
    expect(page.get_by_label("Speed")).to_have_value("0.75")
    page.reload()
    expect(page.get_by_label("Speed")).to_have_value("0.75")


def test_a_chapter_and_the_slider_lead_to_their_place(page: Page, live_site: LiveSite, make: Make) -> None:
    visit(page, live_site, make())
    page.locator("#chapters summary").click()
    page.get_by_role("button", name="0:24 Ice").click()
    expect(page.locator(SPOKEN)).to_have_text("Ice is a kind of road.")
    page.get_by_label("Position").fill("45")
    expect(page.locator(SPOKEN)).to_have_text("Goodbye, and thank you.")
    assert place(page) >= 44


def test_the_place_is_remembered_and_resumed_elsewhere(
    page: Page, browser: Browser, live_site: LiveSite, make: Make, nexus: App
) -> None:
    media_id, user = make(), live_site.user_on(page)
    visit(page, live_site, media_id)
    click_on(page, "You can walk to the island.")
    expect(page.locator(SPOKEN)).to_have_text("You can walk to the island.")
    with page.expect_response(lambda answer: answer.url.endswith("/heard") and answer.ok):
        toggle(page, "Pause")
    with nexus.sessions.read() as session:
        found = heard.heard_so_far(session, media_id, user)
    assert found is not None
    assert 28 <= found.seconds < 34
    with browser.new_context(storage_state=page.context.storage_state()) as context:
        other = context.new_page()
        visit(other, live_site, media_id)
        expect(other.locator("#player-now")).to_have_text(re.compile("0:(28|29|3[0-4])"))
        toggle(other, "Play")
        other.wait_for_function("() => document.querySelector('#sound').currentTime >= 28")
    page.goto(live_site.url)
    expect(page.locator(".item .so-far")).to_contain_text("left")


def test_an_address_opens_the_player_at_a_moment(page: Page, live_site: LiveSite, make: Make) -> None:
    media_id = make()
    visit(page, live_site, media_id, "?at=41")
    expect(page.locator("#player-now")).to_have_text("0:41")
    expect(page.locator(SPOKEN)).to_have_text("That is all there is to say.")


def test_a_hit_of_a_search_opens_the_player_at_its_words(page: Page, live_site: LiveSite, make: Make) -> None:
    media_id = make()
    text = transcript().fragments[1].text
    start = text.index("walk to the island")
    visit(page, live_site, media_id, f"?from=1&mark={start}-{start + 18}#mark")
    expect(page.locator("#player-now")).to_have_text("0:28")
    expect(page.locator("#mark")).to_have_text("walk to the island")


def test_the_words_follow_until_their_reader_scrolls_away(
    page: Page, live_site: LiveSite, make: Make
) -> None:
    page.set_viewport_size({"width": 900, "height": 420})
    visit(page, live_site, make())
    play_slowly(page)
    click_on(page, "Nobody remembers who painted the ferry green.")
    page.evaluate("nexusPlayer.seek(41)")
    expect(page.locator(SPOKEN)).to_have_text("That is all there is to say.")
    page.wait_for_function(IN_VIEW)
    page.mouse.move(400, 150)
    page.mouse.wheel(0, -3000)
    expect(page.get_by_role("button", name="Go to the words")).to_be_visible()
    there = page.evaluate("scrollY")
    page.evaluate("nexusPlayer.seek(45)")
    expect(page.locator(SPOKEN)).to_have_text("Goodbye, and thank you.")
    assert page.evaluate("scrollY") == there
    page.get_by_role("button", name="Go to the words").click()
    page.wait_for_function(IN_VIEW)


def test_a_recording_that_is_gone_says_so_and_plays_once_it_is_back(
    page: Page, live_site: LiveSite, make: Make, sounds: SoundSite
) -> None:
    visit(page, live_site, make(about(sounds.url("/later.wav"))))
    toggle(page, "Play")
    expect(page.get_by_role("alert")).to_contain_text("The recording can't be fetched at the moment.")
    sounds["/later.wav"] = Published(tone(5))
    toggle(page, "Play")
    expect(page.locator("#player")).to_have_class(re.compile("is-playing"))
    expect(page.locator("#player-problem")).to_be_hidden()


def test_without_a_transcript_it_can_still_be_played(page: Page, live_site: LiveSite, make: Make) -> None:
    visit(page, live_site, make(has_text=False))
    expect(page.locator(".no-text")).to_contain_text("you can play it")
    toggle(page, "Play")
    expect(page.locator("#player")).to_have_class(re.compile("is-playing"))


def test_a_transcript_that_is_dropped_on_its_form_becomes_the_text(
    page: Page, live_site: LiveSite, make: Make
) -> None:
    visit(page, live_site, make(has_text=False))
    page.get_by_text("Add its transcript").click()
    said = b"WEBVTT\n\n00:01.000 --> 00:03.000\nDropped here.\n"
    drop(page, {"name": "talk.vtt", "mimeType": "text/vtt", "buffer": said}, onto="#bring-transcript")
    page.get_by_role("button", name="Use this transcript").click()
    expect(page.locator("#prose")).to_contain_text("Dropped here.")


def embedded(page: Page, pattern: str, html: str) -> list[str]:
    """Answer for another site with a fake of its player; the addresses that were asked for."""
    asked: list[str] = []

    def answer(route: Route) -> None:
        asked.append(route.request.url)
        route.fulfill(body=html, content_type="text/html")

    page.context.route(pattern, answer)
    return asked


@pytest.mark.parametrize(
    ("url", "host", "html"),
    [
        ("https://www.youtube.com/watch?v={}", "www.youtube-nocookie.com", YOUTUBE),
        ("https://vimeo.com/{}", "player.vimeo.com", VIMEO),
    ],
)
def test_a_video_of_another_site_is_loaded_by_a_click_and_spoken_to(
    page: Page, live_site: LiveSite, make: Make, url: str, host: str, html: str
) -> None:
    asked = embedded(page, f"https://{host}/**", html)
    name = uuid4().hex[:11] if "youtube" in url else str(uuid4().int)[:9]
    media_id = make(about(None), url=url.format(name))
    with page.expect_response(re.compile(f"/items/{media_id}$")) as found:
        visit(page, live_site, media_id)
    assert f"frame-src 'self' https://{host};" in found.value.headers["content-security-policy"]
    assert asked == []
    page.locator(".stage-play").click()
    expect(page.locator("#player")).to_have_class(re.compile("is-playing"))
    assert [name in one for one in asked] == [True]
    click_on(page, "You can walk to the island.")
    expect(page.locator(SPOKEN)).to_have_text("You can walk to the island.")
    expect(page.frame_locator("iframe").locator("#log")).to_contain_text("seek 28")
    toggle(page, "Pause")
    expect(page.frame_locator("iframe").locator("#log")).to_contain_text("pause")
    page.get_by_label("Speed").select_option("1.5")
    expect(page.frame_locator("iframe").locator("#log")).to_contain_text("speed 1.5")


def test_other_frames_are_not_let_in(page: Page, live_site: LiveSite, make: Make) -> None:
    media_id = make()
    with page.expect_response(re.compile(f"/items/{media_id}$")) as found:
        visit(page, live_site, media_id)
    assert "frame-src" not in found.value.headers["content-security-policy"]
    for embed in ("javascript:alert(1)", "https://a.example'; script-src *", "https://user:pw@a.example/"):
        page.goto(f"{live_site.url}/items/{make(about(None, embed_url=embed))}")
        assert page.locator("#stage").count() == 0


def test_the_queue_is_filled_put_in_order_and_played_on(
    page: Page, live_site: LiveSite, make: Make, sounds: SoundSite
) -> None:
    short = make(about(sounds.url("/short.wav"), title="Short one", seconds=2.0))
    other, third = make(about(sounds.url("/talk.wav"), title="Other one")), make()
    page.goto(f"{live_site.url}/listen")
    expect(page.get_by_text("Nothing to listen to yet")).to_be_visible()
    page.goto(live_site.url)
    for media_id in (other, third):
        page.locator(f"#queue-{media_id}").click()
        expect(page.locator(f"#queue-{media_id}")).to_have_attribute("aria-pressed", "true")
    visit(page, live_site, short)
    page.get_by_role("button", name="Listen later").click()
    expect(page.get_by_role("button", name="Listen later")).to_have_attribute("aria-pressed", "true")
    page.get_by_role("link", name="Listen", exact=True).click()
    titles = page.locator(".queue .item-title")
    expect(titles).to_have_text(["Other one", "The ferry at noon", "Short one"])
    page.get_by_role("button", name="Move up: Short one").click()
    expect(titles).to_have_text(["Other one", "Short one", "The ferry at noon"])
    expect(page.get_by_role("button", name="Move up: Short one")).to_be_focused()
    page.keyboard.press("Enter")
    expect(titles).to_have_text(["Short one", "Other one", "The ferry at noon"])
    page.get_by_role("button", name="Remove from the queue: The ferry at noon").click()
    expect(titles).to_have_text(["Short one", "Other one"])
    page.get_by_role("link", name="Play all").click()
    page.wait_for_url(re.compile(f"/items/{other}"))
    expect(page.locator("#player")).to_have_class(re.compile("is-playing"))
    page.goto(f"{live_site.url}/listen")
    expect(titles).to_have_text(["Other one"])


def test_rows_of_recordings_tell_how_long_they_are_and_from_where(
    page: Page, live_site: LiveSite, make: Make
) -> None:
    make(about(None, title="A long talk", seconds=3540.0), has_text=False)
    page.goto(live_site.url)
    expect(page.locator(".item .facts")).to_contain_text("59 min")
    expect(page.locator(".item .facts")).to_contain_text("Harbour Radio")
    expect(page.locator(".item-title")).to_have_text("A long talk")


def test_the_pages_of_recordings_break_no_rule(page: Page, live_site: LiveSite, make: Make) -> None:
    wrong: list[str] = []
    ready, failed = make(), make(has_text=False)
    youtube = make(about(None), url=f"https://www.youtube.com/watch?v={uuid4().hex[:11]}")
    page.goto(live_site.url)
    page.locator(f"#queue-{ready}").click()
    expect(page.locator(f"#queue-{ready}")).to_have_attribute("aria-pressed", "true")
    wrong += violations(page)
    for media_id in (failed, youtube, ready):
        visit(page, live_site, media_id)
        wrong += violations(page)
    page.locator("#chapters summary").click()
    click_on(page, "Then he laughed.")
    expect(page.locator(SPOKEN)).to_be_visible()
    page.locator("#chapters summary").click()
    wrong += violations(page)
    page.goto(f"{live_site.url}/listen")
    wrong += violations(page)
    assert wrong == [], "\n".join(wrong)


@pytest.mark.parametrize("width", [375, 390])
def test_a_phone_shows_all_of_the_player(page: Page, live_site: LiveSite, make: Make, width: int) -> None:
    page.set_viewport_size({**PHONE, "width": width})
    visit(page, live_site, make())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for name in ("Play", "Back 15 seconds", "Forward 30 seconds"):
        box = page.get_by_role("button", name=name, exact=True).bounding_box()
        assert box is not None
        assert 0 <= box["x"] <= width - box["width"]
        assert min(box["width"], box["height"]) >= 44
