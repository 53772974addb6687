"""The text of a page that Nexus can't read: pasted by a user, marked as entered by hand, and theirs alone."""

from __future__ import annotations

from uuid import UUID

import pytest

from nexus.app import App
from nexus.errors import LoginWall
from nexus.media import lifecycle
from nexus.states.media import Stage
from nexus.web.http.routing import MOST_BODY
from tests.kit.http import Caller, Site, data, problem
from tests.kit.sign_ins import cookie_of
from tests.kit.uploads import Uploader, unique_pdf

URL = "https://example.com/behind-a-wall"
TEXT = "What the page says, as somebody who may read it has copied it."


@pytest.fixture
def walled(app: App, me: Caller) -> UUID:
    """An item that failed."""
    media_id = me.add(URL)
    with app.sessions.begin() as session:
        claim = lifecycle.worker_start_attempt(session, media_id)
        assert claim is not None
        error = LoginWall()
        lifecycle.mark_failed(
            session, media_id, Stage.EXTRACT, error.code, error.message, claim.processing_attempts
        )
    return media_id


def words(caller: Caller, media_id: UUID) -> list[str]:
    return [piece["text"] for piece in data(caller.get(f"/media/{media_id}/fragments"))["items"]]


def test_an_entered_text_is_read_by_its_user_alone(site: Site, me: Caller, walled: UUID) -> None:
    other = site.caller()
    other.add(URL)
    done = data(me.post(f"/media/{walled}/text", json={"title": "Mine", "text": TEXT}))
    assert done == {"media_id": str(walled), "revision": 1}
    item = data(me.get(f"/media/{walled}"))
    assert (item["title"], item["revision"], item["capabilities"]["can_read"]) == ("Mine", 1, True)
    assert words(me, walled) == [TEXT]
    (version,) = data(me.get(f"/media/{walled}/revisions"))["items"]
    assert (version["origin"], version["extractor"]) == ("entered", "entered by hand")
    assert words(other, walled) == []
    assert data(other.get(f"/media/{walled}"))["title"] is None
    assert problem(other.get(f"/media/{walled}/revisions/1")) == (404, "E_NOT_FOUND")


def test_a_long_text_can_be_entered(me: Caller, walled: UUID) -> None:
    data(me.post(f"/media/{walled}/text", json={"text": "word " * (MOST_BODY // 4)}))
    assert len(words(me, walled)) == 1


def test_an_empty_text_or_that_of_a_stranger_is_refused(site: Site, me: Caller, walled: UUID) -> None:
    assert problem(me.post(f"/media/{walled}/text", json={"text": " "})) == (400, "E_INVALID_REQUEST")
    refused = site.caller().post(f"/media/{walled}/text", json={"text": TEXT})
    assert problem(refused) == (404, "E_NOT_FOUND")


def test_the_page_of_a_failed_item_takes_its_text(app: App, site: Site, me: Caller, walled: UUID) -> None:
    browser = site.anyone(Cookie=cookie_of(app.sessions, me.user), Origin=site.url)
    address = f"/items/{walled}"
    assert "paste its text here" in browser.get(address).text
    wrong = browser.post(f"{address}/text", data={"title": "A <b>title", "text": " "})
    assert (wrong.status_code, 'value="A &lt;b&gt;title"' in wrong.text) == (400, True)
    assert "The text is empty. Paste the text of the page." in wrong.text
    done = browser.post(f"{address}/text", data={"title": "", "text": TEXT})
    assert (done.status_code, done.headers["location"]) == (303, address)
    by_script = browser.post(f"{address}/text", data={"text": TEXT}, headers={"HX-Request": "true"})
    assert (by_script.status_code, by_script.headers["hx-redirect"]) == (204, address)
    shown = browser.get(address).text
    assert TEXT in shown
    assert "Entered by hand" in shown
    assert "paste its text here" not in shown
    assert "Entered by hand" in browser.get("/").text


def test_only_its_uploader_enters_the_text_of_a_file(app: App, site: Site, me: Caller) -> None:
    """An entered text puts the item into its user's own library, and others' files don't go there."""
    friend = site.caller()
    media_id = Uploader(app, me.user).upload(unique_pdf())
    shared = me.library()
    me.let_in(shared, friend.user, "admin")
    data(me.post(f"/libraries/{shared}/media", json={"media_id": str(media_id)}))
    assert problem(friend.post(f"/media/{media_id}/text", json={"text": TEXT})) == (403, "E_FORBIDDEN")
    assert data(me.post(f"/media/{media_id}/text", json={"text": TEXT}))["revision"] == 1
