"""What a feed carries serves as the text of an article whose page can't be had, if the feed is on its site."""

from __future__ import annotations

from uuid import UUID

import pytest

from nexus.app import App
from nexus.media import queries
from nexus.media.feeds.own_texts import FROM_FEED
from nexus.media.revisions import read_revision
from nexus.media.runner import Outcome
from nexus.states.media import MediaStatus
from tests.kit.feeds import Reader, Story
from tests.kit.media import everything_of, row_of
from tests.kit.servers.web_pages import Answer
from tests.kit.work import extract_item

pytestmark = pytest.mark.usefixtures("installed_extractors")
WHOLE = "<p>" + "The whole story, as its feed tells it. " * 10 + "<script>x</script></p>"


def taken(reader: Reader, link: str, html: str = WHOLE) -> UUID:
    reader.publish(Story("one", link=link, html=html))
    made = reader.subscribe(takes_new=True)
    reader.poll(made)
    (item,) = reader.items(made)
    assert item.media_id is not None
    return item.media_id


def test_the_text_of_the_feed_serves_if_the_page_is_not_there(app: App, reader: Reader) -> None:
    media_id = taken(reader, reader.pages.url("/missing"))
    assert extract_item(app.tools, media_id) is Outcome.READABLE
    found = everything_of(app.sessions, media_id)
    assert found.texts == [("The whole story, as its feed tells it. " * 10).strip()]
    with app.sessions.read() as session:
        text = read_revision(session, media_id, 1)
    assert text is not None
    assert (text.extractor, text.site) == (FROM_FEED, "The feed")
    assert row_of(app.sessions, media_id).title == "one"


def test_the_page_itself_comes_first(app: App, reader: Reader) -> None:
    page = "<html><title>P</title><body><article>" + "<p>The page says it better, at length. </p>" * 30
    reader.pages["/page"] = Answer(page.encode())
    media_id = taken(reader, reader.pages.url("/page"))
    assert extract_item(app.tools, media_id) is Outcome.READABLE
    assert "The page says it better" in everything_of(app.sessions, media_id).texts[0]


def test_a_feed_says_nothing_about_the_pages_of_other_sites(app: App, reader: Reader) -> None:
    """Everybody who has the item would read what a stranger's feed claims that it says."""
    other = reader.pages.url("/missing").replace("127.0.0.1", "localhost")
    media_id = taken(reader, other)
    assert extract_item(app.tools, media_id) is Outcome.FAILED
    assert everything_of(app.sessions, media_id).texts == []


def test_a_site_that_leads_elsewhere_does_not_vouch_for_what_is_there(app: App, reader: Reader) -> None:
    """Many sites redirect to whatever address one gives them: that makes nobody's feed theirs."""
    reader.publish(Story("one", link=reader.pages.url("/missing"), html=WHOLE), path="/foreign")
    foreign = reader.pages.url("/foreign").replace("127.0.0.1", "localhost")
    reader.pages["/feed"] = Answer(b"", status=302, headers={"Location": foreign})
    made = reader.subscribe(takes_new=True)
    assert reader.poll(made) == "1 new, 1 taken in"
    (item,) = reader.items(made)
    assert item.media_id is not None
    assert extract_item(app.tools, item.media_id) is Outcome.FAILED
    assert everything_of(app.sessions, item.media_id).texts == []


def test_a_teaser_is_no_text(app: App, reader: Reader) -> None:
    media_id = taken(reader, reader.pages.url("/missing"), "<p>Read on at our site.</p>")
    assert extract_item(app.tools, media_id) is Outcome.FAILED


def test_a_page_that_may_come_back_is_waited_for(app: App, reader: Reader) -> None:
    reader.pages["/down"] = Answer(b"", status=500)
    media_id = taken(reader, reader.pages.url("/down"))
    assert extract_item(app.tools, media_id) is Outcome.RELEASED
    with app.sessions.read() as session:
        row = queries.get_media(session, media_id, reader.user).row
    assert row.processing_status is MediaStatus.PENDING
