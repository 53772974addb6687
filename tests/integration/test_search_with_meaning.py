"""Search over HTTP and on its page while a model is there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nexus.app import App
from tests.kit.embedding import CountingModel, embed_item, with_model
from tests.kit.finding import count_words_now, publish
from tests.kit.http import Caller, Site, data
from tests.kit.sign_ins import cookie_of


@pytest.fixture
def app(app: App) -> App:
    """With a model that finds texts of the same letters near each other."""
    return replace(app, tools=with_model(app, CountingModel()))


def test_other_words_are_offered_beside_what_only_meaning_found(site: Site, me: Caller) -> None:
    boats = publish(site.app, me.user, "The lanterns of the boats are lit.")
    assert embed_item(site.app.tools, boats) == "ready"
    count_words_now(site.app)
    found = data(me.get("/search", params={"q": "lantrens"}))
    assert [one["media"]["id"] for one in found["items"]] == [str(boats)]
    assert (found["by"], found["suggestions"]) == ("words_and_meaning", ["lanterns"])
    browser = site.anyone(Cookie=cookie_of(site.app.sessions, me.user), Origin=site.url)
    page = browser.get("/find", params={"q": "lantrens"}).text
    assert f"/items/{boats}" in page
    assert 'Did you mean <a href="/find?q=lanterns">lanterns</a>?' in page
