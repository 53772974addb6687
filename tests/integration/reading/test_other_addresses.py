"""A redirect's end and the canonical link of a page lead to its item: adding them finds it, for those who have it."""

from __future__ import annotations

from uuid import UUID

import pytest

from nexus.app import App
from nexus.media import refresh
from nexus.media.runner import Outcome
from nexus.queue.local import LocalQueue
from tests.kit.articles import ARTICLE
from tests.kit.http import Caller, Site, data
from tests.kit.media import row_of
from tests.kit.servers.web_pages import Answer, Pages
from tests.kit.work import extract_item, refresh_item

pytestmark = pytest.mark.wall_clock


def naming(address: str) -> Answer:
    """An article that says what its address is."""
    link = f'<link rel="canonical" href="{address}">'
    return Answer(ARTICLE.replace("</head>", f"{link}</head>").encode())


def added(caller: Caller, url: str) -> tuple[UUID, bool]:
    told = data(caller.post("/media/url", json={"kind": "web_article", "url": url}))
    return UUID(told["media_id"]), told["created"]


def read(app: App, caller: Caller, pages: Pages, path: str) -> UUID:
    media_id = caller.add(pages.url(path))
    assert extract_item(app.tools, media_id) is Outcome.READABLE
    return media_id


def test_the_end_of_a_redirect_finds_the_item(app: App, me: Caller, pages: Pages) -> None:
    pages["/short"] = Answer(b"", status=302, headers={"Location": "/boats?utm_source=x"})
    pages["/boats?utm_source=x"] = Answer(ARTICLE.encode())
    media_id = read(app, me, pages, "/short")
    assert added(me, pages.url("/boats")) == (media_id, False)
    assert row_of(app.sessions, media_id).canonical_url == pages.url("/short")


def test_the_canonical_link_of_a_page_finds_its_item(app: App, me: Caller, pages: Pages) -> None:
    pages["/boats?page=1"] = naming("/boats")
    media_id = read(app, me, pages, "/boats?page=1")
    assert added(me, pages.url("/boats")) == (media_id, False)


def test_a_refresh_finds_other_addresses_too(app: App, me: Caller, pages: Pages) -> None:
    pages["/boats?page=1"] = Answer(ARTICLE.encode())
    media_id = read(app, me, pages, "/boats?page=1")
    pages["/boats?page=1"] = naming("/boats")
    refresh.request(app.sessions, LocalQueue(), media_id, me.user, None)
    assert refresh_item(app.tools, media_id) == "unchanged"
    assert added(me, pages.url("/boats")) == (media_id, False)


def test_no_site_claims_the_address_of_another(app: App, me: Caller, pages: Pages) -> None:
    for place, address in enumerate(("https://example.com/boats", "http://127.0.0.1/boats", "/")):
        pages[f"/{place}"] = naming(address)
        media_id = read(app, me, pages, f"/{place}")
        claimed = address if address.startswith("http") else pages.url(address)
        found, is_new = added(me, claimed)
        assert (found != media_id, is_new) == (True, True), address


def test_an_address_that_is_an_item_of_its_own_stays_one(app: App, me: Caller, pages: Pages) -> None:
    own = me.add(pages.url("/boats"))
    pages["/boats?page=1"] = naming("/boats")
    read(app, me, pages, "/boats?page=1")
    assert added(me, pages.url("/boats")) == (own, False)


def test_only_those_who_have_an_item_find_it_by_another_address(
    app: App, site: Site, me: Caller, pages: Pages
) -> None:
    """The item's own address may hold what only its user knows, like the key of a gift link."""
    pages["/gift?key=secret"] = naming("/boats")
    media_id = read(app, me, pages, "/gift?key=secret")
    stranger = site.caller()
    found, is_new = added(stranger, pages.url("/boats"))
    assert (found != media_id, is_new) == (True, True)
    assert added(me, pages.url("/boats")) == (media_id, False), "what a stranger adds changes nothing"


def test_a_page_that_another_member_shares_claims_no_address(
    app: App, site: Site, me: Caller, pages: Pages
) -> None:
    """On a site with many authors, one's page could take the place of another's for everybody in a library."""
    pages["/forger"] = naming("/boats")
    forged = read(app, me, pages, "/forger")
    library, member = me.library(), site.caller()
    me.let_in(library, member.user)
    data(me.post(f"/libraries/{library}/media", json={"media_id": str(forged)}))
    data(member.get(f"/media/{forged}"))
    found, is_new = added(member, pages.url("/boats"))
    assert (found != forged, is_new) == (True, True)


def test_other_addresses_go_with_their_item(app: App, me: Caller, pages: Pages) -> None:
    pages["/boats?page=1"] = naming("/boats")
    media_id = read(app, me, pages, "/boats?page=1")
    data(me.delete(f"/media/{media_id}"))
    found, is_new = added(me, pages.url("/boats"))
    assert (found != media_id, is_new) == (True, True)
