"""Feeds in every form, good and bad: what is read, and what is refused."""

from __future__ import annotations

import json

import pytest

from nexus.errors import FeedIsPage, FeedUnreadable
from nexus.extract import Hints
from nexus.extract.feeds.dates import feed_date
from nexus.extract.feeds.discovery import read_outlines, read_site
from nexus.extract.feeds.reader import read_feed
from nexus.extract.feeds.results import FeedEntry, FeedReading
from nexus.extract.recording import NamedTranscript, TimedChapter
from nexus.extract.safe_html import is_safe
from tests.kit.feeds import Story, episode, rss

HERE = Hints("https://example.com/feed.xml", "application/rss+xml", None)
ATOM = """<?xml version="1.0" encoding="utf-8"?><feed xmlns="http://www.w3.org/2005/Atom" xml:lang="de">
<title type="html">Caf&amp;eacute; &amp;amp; more</title><link href="https://example.com/"/><author><name>Ada</name></author>
<entry><id>tag:example.com,2020:1</id><title>First</title><link rel="self" href="/self"/><link href="/one"/>
<updated>2020-01-02T10:00:00+02:00</updated><summary>Short.</summary>
<content type="html">&lt;p&gt;All of &lt;em&gt;it&lt;/em&gt;, with
&lt;script&gt;alert(1)&lt;/script&gt;care.&lt;/p&gt;</content></entry></feed>"""
RDF = """<?xml version="1.0"?><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
xmlns="http://purl.org/rss/1.0/" xmlns:dc="http://purl.org/dc/elements/1.1/"><channel rdf:about="https://example.com/">
<title>Old</title><link>https://example.com/</link></channel><item rdf:about="https://example.com/a"><title>A</title>
<link>https://example.com/a</link><dc:date>2003-01-02</dc:date><dc:creator>Bob</dc:creator></item></rdf:RDF>"""


def only(data: bytes | str, hints: Hints = HERE) -> FeedEntry:
    (entry,) = read(data, hints).entries
    return entry


def read(data: bytes | str, hints: Hints = HERE) -> FeedReading:
    return read_feed(data.encode() if isinstance(data, str) else data, hints)


def test_atom_is_read_with_its_full_text() -> None:
    reading = read(ATOM)
    (entry,) = reading.entries
    assert (reading.title, reading.author, reading.site_url) == ("Café & more", "Ada", "https://example.com/")
    assert (entry.guid, entry.url) == ("tag:example.com,2020:1", "https://example.com/one")
    assert (entry.published, entry.summary) == ("2020-01-02T08:00:00+00:00", "Short.")
    assert (entry.html, entry.text) == ("<p>All of <em>it</em>, with care.</p>", "All of it, with care.")


def test_rdf_is_read() -> None:
    entry = only(RDF)
    assert (entry.title, entry.author, entry.published) == ("A", "Bob", "2003-01-02T00:00:00+00:00")


@pytest.mark.parametrize("version", ["0.91", "0.92", "2.0", "3.7", ""])
def test_every_version_of_rss_is_read(version: str) -> None:
    data = rss([Story("one")]).replace(b'version="2.0"', f'version="{version}"'.encode())
    assert only(data).title == "one"


def test_json_feed_is_read() -> None:
    item = {
        "id": 7,
        "url": "https://example.com/7",
        "title": "Seven",
        "content_html": "<p>It <b>is</b>.</p>",
        "date_published": "2020-01-01T10:00:00Z",
        "authors": [{"name": "Ada"}, {"name": "Bob"}],
        "attachments": [
            {"url": "https://example.com/7.mp3", "mime_type": "audio/mpeg", "duration_in_seconds": 61}
        ],
    }
    feed = {"version": "https://jsonfeed.org/version/1.1", "title": "J", "items": [item]}
    entry = only(json.dumps(feed))
    assert (entry.guid, entry.title, entry.author) == ("7", "Seven", "Ada, Bob")
    assert (entry.html, entry.text) == ("<p>It <b>is</b>.</p>", "It is.")
    assert (entry.enclosure_url, entry.seconds) == ("https://example.com/7.mp3", 61)


@pytest.mark.parametrize(
    "data",
    [
        '{"version": "https://jsonfeed.org/version/1", "items": {"a": 1}}',
        '{"version": "https://jsonfeed.org/version/1", "items": [1, null, [], "x"]}',
        '{"version": "https://jsonfeed.org/version/1", "title": [], "items": [{"id": {}, "url": 5, "authors": 3}]}',
    ],
)
def test_json_of_strange_shapes_is_no_crash(data: str) -> None:
    assert isinstance(read(data), FeedReading)


@pytest.mark.parametrize("data", ["{", "{}", '{"version": 1}', "[" * 100_000, "{" + '"a":{' * 100_000])
def test_json_that_is_no_feed_is_refused(data: str) -> None:
    with pytest.raises(FeedUnreadable):
        read(data)


def test_an_episode_keeps_what_podcasts_say_about_it() -> None:
    more = (
        "<itunes:duration>1:02:03</itunes:duration><itunes:season>2</itunes:season><itunes:episode>7</itunes:episode>"
        '<itunes:image href="https://example.com/7.jpg"/>'
        '<podcast:transcript url="https://example.com/7.vtt" type="text/vtt" language="en"/>'
        '<podcast:transcript url="/7.srt" type="application/srt"/>'
        '<podcast:transcript url="javascript:alert(1)" type="text/html"/>'
        '<podcast:chapters url="https://example.com/7.json" type="application/json+chapters"/>'
        '<psc:chapters><psc:chapter start="00:01:00" title="Second"/>'
        '<psc:chapter start="0" title="First"/></psc:chapters>'
    )
    entry = only(rss([episode("seven", more=more)]))
    assert (entry.seconds, entry.season, entry.number) == (3723, 2, 7)
    assert (entry.enclosure_url, entry.enclosure_type, entry.enclosure_bytes) == (
        "https://cdn.example.com/seven.mp3",
        "audio/mpeg",
        1000,
    )
    assert entry.picture_url == "https://example.com/7.jpg"
    assert entry.transcripts == (
        NamedTranscript("https://example.com/7.vtt", "text/vtt", "en"),
        NamedTranscript("https://example.com/7.srt", "application/srt"),
    )
    assert entry.chapters_url == "https://example.com/7.json"
    assert entry.chapters == (TimedChapter(0, "First"), TimedChapter(60, "Second"))


@pytest.mark.parametrize(
    ("more", "seconds"),
    [
        ("<ttl>90</ttl>", 5400),
        ("<sy:updatePeriod>daily</sy:updatePeriod><sy:updateFrequency>4</sy:updateFrequency>", 21600),
        ("<sy:updatePeriod>weekly</sy:updatePeriod>", 604800),
        ("<ttl>soon</ttl>", None),
        ("<ttl>-1</ttl>", None),
        ("<ttl>99999999999999</ttl>", None),
        ("<sy:updatePeriod>hourly</sy:updatePeriod><sy:updateFrequency>0</sy:updateFrequency>", 3600),
    ],
)
def test_a_feed_says_how_often_it_wants_to_be_asked(more: str, seconds: int | None) -> None:
    assert read(rss([Story("one")], more=more)).pace_seconds == seconds


@pytest.mark.parametrize(
    ("declared", "header", "real"),
    [
        ("utf-8", None, "utf-8"),
        ("iso-8859-1", None, "iso-8859-1"),
        ("utf-8", None, "windows-1252"),
        ("utf-16", None, "utf-8"),
        ("iso-8859-1", None, "utf-8"),
        ("no-such-thing", None, "utf-8"),
        ("us-ascii", None, "utf-8"),
        ("utf-8", "iso-8859-1", "utf-8"),
        ("utf-16", None, "utf-16"),
        ("utf-16", "utf-8", "utf-16"),
        ("utf-8", None, "utf-8-sig"),
    ],
)
def test_feeds_in_the_wrong_encoding_are_read(declared: str, header: str | None, real: str) -> None:
    text = rss([Story("Überall café")]).decode().replace('encoding="utf-8"', f'encoding="{declared}"')
    assert only(text.encode(real), Hints(HERE.url, None, header)).title == "Überall café"


@pytest.mark.parametrize(
    "page",
    [
        b"<!DOCTYPE html><html><head><title>Not found</title></head><body><p>Sorry</p></body></html>",
        b"<html><body>" + b"<div>" * 10_000,
    ],
)
def test_a_web_page_is_called_one(page: bytes) -> None:
    with pytest.raises(FeedIsPage):
        read(page)


@pytest.mark.parametrize(
    "data", [b"", b"   ", b"hello", b"\x00\x01\x02" * 1000, b"<a/>", b"%PDF-1.4", b"<?xml", b"<"]
)
def test_what_is_no_feed_is_refused(data: bytes) -> None:
    with pytest.raises(FeedUnreadable):
        read(data)


def test_a_feed_that_breaks_off_is_read_as_far_as_it_goes() -> None:
    data = rss([Story(str(number)) for number in range(20)])
    found = [entry.title for entry in read(data[: len(data) // 2]).entries]
    assert found[:5] == ["0", "1", "2", "3", "4"]


def test_an_empty_feed_is_a_feed() -> None:
    reading = read(rss([]))
    assert (reading.title, reading.entries) == ("The feed", ())


BOMB = (
    '<?xml version="1.0"?><!DOCTYPE rss [<!ENTITY a "aaaaaaaaaa">'
    + "".join(f'<!ENTITY {chr(98 + n)} "{("&" + chr(97 + n) + ";") * 10}">' for n in range(9))
    + ']><rss version="2.0"><channel><title>&j;</title><item><title>&j;</title></item></channel></rss>'
)
OUTSIDE = (
    '<?xml version="1.0"?><!DOCTYPE rss [<!ENTITY x SYSTEM "file:///etc/passwd">]>'
    '<rss version="2.0"><channel><title>&x;</title><item><title>A &x;</title></item></channel></rss>'
)


@pytest.mark.parametrize("data", [BOMB, OUTSIDE], ids=["bomb", "outside"])
def test_entities_are_never_expanded(data: str) -> None:
    said = repr(read(data))
    assert len(said) < 20_000
    assert "root:" not in said


def test_deep_nesting_ends() -> None:
    deep = "<div>" * 5_000 + "x" + "</div>" * 5_000
    entry = only(rss([Story("deep", html=deep)]))
    assert (entry.text or "").strip() == "x"


@pytest.mark.parametrize(
    "html",
    [
        "<script>alert(1)</script><p>x</p>",
        '<p onclick="x">x</p><img src="javascript:alert(1)">',
        '<a href="javascript:alert(1)">x</a>',
        "<p>unclosed <b>tags",
        '<iframe src="https://evil.example"></iframe>x',
        "<svg><script>alert(1)</script></svg>x",
        "<style>*{}</style>x",
        "]]>x<![CDATA[",
    ],
)
def test_html_of_items_is_cleaned(html: str) -> None:
    entry = only(rss([Story("one", html=html)]))
    assert entry.html is not None
    assert is_safe(entry.html)
    assert "alert" not in entry.html


@pytest.mark.parametrize("guid", [None, "", "   ", "x" * 5000])
def test_a_guid_that_says_nothing_is_none(guid: str | None) -> None:
    story = Story("one", guid=None, more=f"<guid>{guid}</guid>" if guid is not None else "")
    assert only(rss([story])).guid is None


def test_a_guid_is_kept_as_it_is_written() -> None:
    plain = '<guid isPermaLink="true">one/two</guid>'
    assert only(rss([Story("one", guid=None, more=plain)])).guid == "one/two"


@pytest.mark.parametrize(
    ("guid", "url"), [("https://example.com/7", "https://example.com/7"), ("episode-7", None), ("7", None)]
)
def test_a_guid_stands_for_a_missing_link_only_if_it_is_an_address(guid: str, url: str | None) -> None:
    item = f"<item><title>Seven</title><guid>{guid}</guid></item>"
    assert only(f'<rss version="2.0"><channel><title>One</title>{item}</channel></rss>').url == url


@pytest.mark.parametrize(
    ("raw", "wanted"),
    [
        ("Wed, 01 Jan 2020 10:00:00 GMT", "2020-01-01T10:00:00+00:00"),
        ("Wed, 01 Jan 2020 10:00:00 +0200", "2020-01-01T08:00:00+00:00"),
        ("Wed, 1 Jan 20 10:00:00 EST", "2020-01-01T15:00:00+00:00"),
        ("2020-01-01T10:00:00Z", "2020-01-01T10:00:00+00:00"),
        ("2020-01-01T10:00:00.123+01:00", "2020-01-01T09:00:00"),
        ("2020-01-01", "2020-01-01T00:00:00+00:00"),
        ("2020-01-01 10:00", "2020-01-01T10:00:00+00:00"),
        ("January 1, 2020", "2020-01-01T00:00:00+00:00"),
        ("1st January 2020", "2020-01-01T00:00:00+00:00"),
        ("01.01.2020 10:00", "2020-01-01T10:00:00+00:00"),
        ("01/02/2020", "2020-02-01T00:00:00+00:00"),
        ("Wednesday, 1 January 2020 10:00:00", "2020-01-01T10:00:00+00:00"),
        ("1577872800", "2020-01-01T10:00:00+00:00"),
        ("1577872800000", "2020-01-01T10:00:00+00:00"),
        ("Jan 1, 2020", "2020-01-01T00:00:00+00:00"),
        ("2020/01/02", "2020-01-02T00:00:00+00:00"),
        ("2020/01/02 10:00", "2020-01-02T10:00:00+00:00"),
        ("Wed, 1 January 2020 3:05 PM EST", "2020-01-01T20:05:00+00:00"),
        ("1 January 2020 12:05 AM", "2020-01-01T00:05:00+00:00"),
    ],
)
def test_dates_in_every_form_are_read(raw: str, wanted: str) -> None:
    published = only(rss([Story("one", date=raw)])).published
    assert published is not None
    assert published.startswith(wanted)


@pytest.mark.parametrize(
    "raw",
    [
        "",
        "yesterday",
        "0000-00-00",
        "32 Foo 2020",
        "-1",
        "9" * 50,
        "2020-13-45T99:99:99Z",
        "\x07",
        "Mon, 00 Jan 0000",
    ],
)
def test_dates_that_are_none_are_left_out(raw: str) -> None:
    assert feed_date(None, raw) is None


def test_ten_thousand_items_are_read_and_no_more() -> None:
    reading = read(rss(Story(str(number), html="x") for number in range(10_050)))
    assert (len(reading.entries), reading.entries[-1].title) == (10_000, "9999")


PAGE = """<html><head><title>Ein Café</title><base href="https://example.com/blog/">
<link rel="alternate" type="application/rss+xml" title="Comments" href="comments.xml">
<link rel="ALTERNATE nofollow" type="application/atom+xml; charset=utf-8" title="Posts" href="atom.xml">
<link rel="alternate" type="text/html" hreflang="de" href="/de"><link rel="stylesheet" href="x.css">
<link rel="alternate" type="application/rss+xml" href="javascript:alert(1)"></head><body></body></html>"""


@pytest.mark.parametrize("start", ["", '<?xml version="1.0" encoding="iso-8859-1"?>'])
def test_a_page_names_its_feeds_and_those_of_comments_come_last(start: str) -> None:
    found = read_site(
        f"{start}{PAGE}".encode("iso-8859-1" if start else "utf-8"), Hints("https://example.com/x")
    )
    assert found.title == "Ein Café"
    assert [one.url for one in found.feeds] == [
        "https://example.com/blog/atom.xml",
        "https://example.com/blog/comments.xml",
    ]


def test_the_page_of_a_channel_names_its_feed() -> None:
    page = b'<html><script>{"externalId":"UCaaaaaaaaaaaaaaaaaaaaaa"}</script></html>'
    (one,) = read_site(page, Hints("https://www.youtube.com/@somebody")).feeds
    assert one.url == "https://www.youtube.com/feeds/videos.xml?channel_id=UCaaaaaaaaaaaaaaaaaaaaaa"
    assert read_site(page, Hints("https://example.com/")).feeds == ()


def test_nested_outlines_are_read() -> None:
    data = (
        '<?xml version="1.0"?><opml version="1.1"><body><outline text="Folder"><outline TEXT="A" '
        'xmlurl="https://a.example/feed"/><outline><outline text="B" xmlUrl="https://b.example/feed"/></outline>'
        '</outline><outline xmlUrl="https://a.example/feed"/><outline xmlUrl="ftp://c.example/"/></body></opml>'
    )
    found = read_outlines(data.encode(), Hints())
    assert [tuple(one) for one in found.feeds] == [
        ("https://a.example/feed", "A"),
        ("https://b.example/feed", "B"),
    ]


@pytest.mark.parametrize("data", [b"", b"hello", b"<html></html>", BOMB.encode(), b"\xff\xfe\x00"])
def test_what_is_no_list_of_feeds_is_refused(data: bytes) -> None:
    with pytest.raises(FeedUnreadable):
        read_outlines(data, Hints())
