"""The commands for feeds: subscribe, look, unsubscribe."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import uuid4

import pytest

from tests.kit.commands import Terminal
from tests.kit.feeds import RSS, Story, episode, rss
from tests.kit.servers.web_pages import Answer, Pages


@pytest.fixture
def terminal(terminal: Terminal, pages: Pages) -> Terminal:
    """With items that stay queued."""
    terminal.environment |= {"NEXUS_EXTRACTION": "off", "NEXUS_FETCH_ALLOW": pages.place}
    return terminal


def test_a_podcast_is_subscribed_to_listed_and_ended(terminal: Terminal, pages: Pages) -> None:
    pages["/"] = Answer(b'<html><link rel="alternate" type="application/rss+xml" href="/feed"></html>')
    pages["/feed"] = Answer(rss([episode(f"e{number}") for number in range(5)], title="A cast"), RSS)
    made = terminal.run("subscribe", pages.url("/"), "--latest", "2")
    assert (made.code, made.err) == (0, "")
    identity, status, title, url, brought = made.out.rstrip("\n").split("\t")
    assert (status, title, url, brought) == ("active", "A cast", pages.url("/feed"), "5 items, 2 taken in")
    (listed,) = json.loads(terminal.run("feeds", "--json").out)
    assert (listed["id"], listed["taken"], listed["is_podcast"]) == (identity, 2, True)
    assert "listed=2" in terminal.run("status").out
    assert terminal.run("unsubscribe", pages.url("/feed"), "--remove-items").code == 0
    assert "listed=0" in terminal.run("status").out
    assert json.loads(terminal.run("feeds", "--json").out) == []
    assert terminal.run("unsubscribe", identity).code != 0


def test_full_text_takes_articles_in(terminal: Terminal, pages: Pages) -> None:
    pages["/feed"] = Answer(rss([Story(str(number)) for number in range(5)]), RSS)
    made = terminal.run("subscribe", pages.url("/feed"), "--full-text", "--json", "--library", "Reading")
    found = json.loads(made.out)
    assert (found["library_name"], found["takes_new"], found["taken"], found["items"]) == (
        "Reading",
        True,
        3,
        5,
    )


def test_opml_goes_in_and_comes_out(terminal: Terminal, pages: Pages, tmp_path: Path) -> None:
    pages["/feed"] = Answer(rss([Story("one")]), RSS)
    listing = tmp_path / "reader.opml"
    listing.write_text(f'<opml version="2.0"><body><outline xmlUrl="{pages.url("/feed")}"/></body></opml>')
    assert terminal.run("subscribe", str(listing)).code == 0
    assert f'xmlUrl="{pages.url("/feed")}"' in terminal.run("feeds", "--opml").out
    again = terminal.run("subscribe", str(listing))
    assert (again.code, "1 feed was already there" in again.err) == (0, True)
    terminal.environment["NEXUS_SUBSCRIPTIONS_PER_USER"] = "1"
    urls = [pages.url("/feed"), pages.url("/other")]
    outlined = "".join(f'<outline xmlUrl="{url}"/>' for url in urls)
    listing.write_text(f'<opml version="2.0"><body>{outlined}</body></opml>')
    limited = terminal.run("subscribe", str(listing), "--user", str(uuid4()), "--json")
    assert (limited.code, json.loads(limited.out.splitlines()[0])["url"]) == (1, urls[0])
    refusal = json.loads(limited.out.splitlines()[1])
    assert (refusal["error"], urls[1] in refusal["message"]) == ("E_TOO_MANY_SUBSCRIPTIONS", True)


def test_what_is_no_feed_is_refused_and_the_others_go_on(terminal: Terminal, pages: Pages) -> None:
    pages["/feed"] = Answer(rss([Story("one")]), RSS)
    pages["/page"] = Answer(b"<html><body>Hi</body></html>")
    ran = terminal.run("subscribe", pages.url("/page"), pages.url("/missing"), pages.url("/feed"))
    assert ran.code == 1
    assert len(ran.err.splitlines()) == 2
    assert len(ran.out.splitlines()) == 1


def test_no_subscriptions_say_how_to_begin(terminal: Terminal) -> None:
    ran = terminal.run("feeds")
    assert (ran.code, ran.out) == (0, "")
    assert "nexus subscribe" in ran.err
