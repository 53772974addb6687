"""The article reader: text without its surroundings, titles, charsets, refusals, and pathological pages."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from nexus.errors import BlockedPage, EmptyContent, LoginWall, PageTooLarge
from nexus.extract import Extraction, Hints
from nexus.extract.article import LARGEST, read_article, read_page
from nexus.extract.article.forest import Forest
from nexus.extract.charsets import decode_page

ENGLISH = [
    "The harbour was quiet that morning, and the old ferry had not left its place for more than two weeks.",
    "People had grown used to it, the mayor said, but nobody had expected that the repair would take so long.",
    "A new engine was ordered in spring, and it arrived in October, after three letters and one angry visit.",
    "Now the ferry runs again, twice a day, and the first passengers stood in the rain to see it come in.",
]
GERMAN = [
    "Der Hafen war an diesem Morgen still, und die alte Fähre lag seit mehr als zwei Wochen an ihrem Platz.",
    "Die Leute hätten sich daran gewöhnt, sagte die Bürgermeisterin, doch mit so viel Zeit habe niemand gerechnet.",
    "Im Frühjahr wurde ein neuer Motor bestellt, und er kam im Oktober, nach drei Briefen und einem Besuch.",
    "Nun fährt die Fähre wieder zweimal am Tag, und die ersten Gäste standen im Regen, um sie zu sehen.",
]
CHINESE = [
    "那天早晨，港口很安静，旧渡船已经在原地停了两个多星期，没有人知道它什么时候能够再次出发。",
    "市长说，大家已经习惯了，但谁也没有想到修理会花这么长的时间，费用也比原来估计的高出许多。",
    "春天订购了一台新发动机，十月才送到，中间写了三封信，还有一次不太愉快的拜访，大家都很着急。",
    "现在渡船又开始运行了，每天两次，第一批乘客站在雨中等待它进港，孩子们挥着手大声欢呼起来。",
]
NAVIGATION = '<nav><ul><li><a href="/">Home</a></li><li><a href="/s">Sport</a></li></ul></nav>'
ASIDE = (
    '<aside class="related"><h3>Related stories</h3><ul><li><a href="/1">Ten ferries you must see</a></li>'
    '<li><a href="/2">Why boats float</a></li><li><a href="/3">Our best pictures</a></li></ul></aside>'
)
FOOTER = "<footer><p>Copyright, all rights reserved. <a href='/terms'>Terms</a></p></footer>"


def paragraphs(sentences: list[str], times: int = 3) -> str:
    return "".join(f"<p>{first} {second}</p>" for first, second in pairwise(sentences)) * times


def page(content: str, head: str = "<title>The ferry</title>", lang: str = "en") -> bytes:
    return (
        f'<!doctype html><html lang="{lang}"><head><meta charset="utf-8">{head}</head><body>'
        f"{NAVIGATION}<main><article>{content}</article></main>{ASIDE}{FOOTER}</body></html>"
    ).encode()


def article(
    data: bytes, url: str | None = "https://example.com/news/the-ferry-runs-again.html"
) -> Extraction:
    return read_article(data, Hints(url=url))


def text(data: bytes) -> str:
    return article(data).fragments[0].text


@pytest.mark.parametrize("sentences", [ENGLISH, GERMAN, CHINESE], ids=["English", "German", "Chinese"])
def test_an_articles_text_is_kept_and_its_surroundings_are_not(sentences: list[str]) -> None:
    found = text(page(f"<h1>The ferry</h1>{paragraphs(sentences)}"))
    for sentence in sentences:
        assert sentence in found
    for noise in ("Sport", "Ten ferries you must see", "all rights reserved"):
        assert noise not in found


@pytest.mark.parametrize("line", ["By Ann Oar", "Ann Oar | 31 January 2026", "ANN OAR"])
def test_a_line_that_repeats_the_byline_is_left_out_of_the_text(line: str) -> None:
    head = '<title>The ferry</title><meta name="author" content="Ann Oar">'
    found = article(page(f"<h1>The ferry</h1><p>{line}</p>{paragraphs(ENGLISH)}", head))
    assert found.facts.byline == "Ann Oar"
    assert line not in found.fragments[0].text


def test_a_first_line_that_only_begins_like_a_byline_is_kept() -> None:
    assert "By the numbers" in text(page(f"<h1>The ferry</h1><p>By the numbers</p>{paragraphs(ENGLISH)}"))


def test_the_structure_of_an_article_is_kept() -> None:
    content = (
        f"<h1>The ferry</h1>{paragraphs(ENGLISH, 1)}<h2>What it costs</h2>"
        f"<p>{ENGLISH[1]} It is <em>not cheap</em>, and the <a href='/prices'>prices of the ferry</a> are known.</p>"
        "<ul><li>A grown person pays four crowns for one way, and seven for both of them.</li>"
        "<li>A child pays two crowns, and nothing at all on the first Sunday of a month.</li></ul>"
        f"<blockquote><p>{ENGLISH[3]}</p></blockquote>{paragraphs(ENGLISH, 1)}"
    )
    found = article(page(content))
    html = found.fragments[0].html or ""
    for piece in ("<em>not cheap</em>", 'href="https://example.com/prices"', "<ul>", "<li>", "<blockquote>"):
        assert piece in html
    assert "What it costs" in [line.title for line in found.outline]


def test_pictures_between_the_text_stay_and_pixels_go() -> None:
    picture = '<figure><img src="/ferry.jpg" alt="The ferry" width="800" height="600"></figure>'
    pixel = '<img src="https://count.example/p.gif" width="1" height="1">'
    found = article(page(paragraphs(ENGLISH) + picture + pixel + paragraphs(ENGLISH)))
    html = found.fragments[0].html or ""
    assert 'src="https://example.com/ferry.jpg"' in html
    assert "count.example" not in html


def test_a_picture_stays_even_if_its_caption_goes() -> None:
    picture = (
        '<figure><img src="/ferry.jpg" alt="The ferry"><figcaption>Photo: A. Harbour</figcaption></figure>'
    )
    found = article(page(paragraphs(ENGLISH) + picture + paragraphs(ENGLISH)))
    assert 'src="https://example.com/ferry.jpg"' in (found.fragments[0].html or "")


def test_nothing_that_runs_comes_through() -> None:
    hostile = (
        '<p onclick="steal()">' + ENGLISH[0] + ' <a href="javascript:steal()">A link</a></p>'
        "<script>steal()</script><iframe src='https://evil.example'></iframe><style>p{}</style>"
    )
    html = article(page(paragraphs(ENGLISH) + hostile + paragraphs(ENGLISH))).fragments[0].html or ""
    for piece in ("steal", "javascript:", "<iframe", "<script", "<style", "onclick"):
        assert piece not in html


HIDING = ("hidden", 'aria-hidden="true"', 'style="display: none"', 'style="color: red; Visibility:hidden"')


@pytest.mark.parametrize("how", HIDING)
def test_hidden_text_of_a_page_is_left_out(how: str) -> None:
    secret = f"<div {how}><p>{GERMAN[0]} {GERMAN[1]}</p></div>"
    found = text(page(f"<h1>The ferry</h1>{paragraphs(ENGLISH)}{secret}{paragraphs(ENGLISH)}"))
    assert ENGLISH[3] in found
    assert GERMAN[1] not in found


def test_a_page_that_hides_all_of_its_text_keeps_it() -> None:
    found = text(page(f'<div style="display:none">{paragraphs(ENGLISH)}</div>'))
    assert ENGLISH[3] in found


@pytest.mark.parametrize(("times", "is_kept"), [(1, False), (9, True)])
def test_hidden_text_is_kept_if_it_is_nearly_all_there_is(times: int, is_kept: bool) -> None:
    keeps_all = Forest(lambda _: 5.0, 0.5)
    shown, hidden = paragraphs(GERMAN, 1), paragraphs(ENGLISH, times)
    html = f'<main>{shown}<div style="display:none">{hidden}</div></main>'
    found = read_page(html, None, keeps_all).extraction.fragments[0].text
    assert GERMAN[3] in found
    assert (ENGLISH[3] in found) == is_kept


OG = '<meta property="og:title" content="From og">'
TWITTER = '<meta name="twitter:title" content="From twitter">'
SITE = '<meta property="og:site_name" content="The Daily Boat">'
TITLES = {
    "og:title first": (f"{OG}{TWITTER}<title>From title</title>", "From h1", "From og"),
    "then twitter:title": (f"{TWITTER}<title>From title</title>", "From h1", "From twitter"),
    "then the title": ("<title>From title</title>", "From h1", "From title"),
    "then the first h1": ("", "From h1", "From h1"),
    "the site's name goes": (f"{SITE}<title>The ferry | The Daily Boat</title>", "Other", "The ferry"),
    "what the h1 shows goes": ("<title>The ferry - some newspaper</title>", "The ferry", "The ferry"),
    "a seam inside a title stays": ("<title>Love - a short story</title>", "Other", "Love - a short story"),
    "a name like the domain goes": ("<title>The ferry | Example News</title>", "Other", "The ferry"),
    "the heading says it in its own words": (
        '<meta property="og:title" content="Old ferry runs again: all you need to know">',
        "The old ferry runs<br>again ¶",
        "The old ferry runs again",
    ),
    "a heading with few of its words is another": (
        '<meta property="og:title" content="The old ferry runs again">',
        "The old harbour sleeps",
        "The old ferry runs again",
    ),
    "the heading ends what the title cuts short": (
        "<title>Ferry stops...</title>",
        "Ferry stops forever",
        "Ferry stops forever",
    ),
}


@pytest.mark.parametrize("case", TITLES)
def test_the_title_of_an_article_is_found(case: str) -> None:
    head, heading, expected = TITLES[case]
    assert article(page(f"<h1>{heading}</h1>{paragraphs(ENGLISH)}", head)).title == expected


def test_metadata_of_an_article_is_read() -> None:
    head = (
        f'{SITE}<title>The ferry</title><meta name="author" content="Ann Oar">'
        '<meta property="article:published_time" content="2025-10-03T08:00:00+02:00">'
        '<meta property="og:image" content="/lead.jpg">'
        '<meta name="description" content="The old ferry runs again after a long repair, twice a day.">'
    )
    facts = article(page(paragraphs(ENGLISH), head)).facts
    assert (facts.byline, facts.site, facts.language) == ("Ann Oar", "The Daily Boat", "en")
    assert (facts.published or "").startswith("2025-10-03")
    assert facts.lead_image == "https://example.com/lead.jpg"
    assert facts.excerpt == "The old ferry runs again after a long repair, twice a day."


@pytest.mark.parametrize(
    "head",
    [
        '<link rel="canonical" href="https://www.boats.example/2025/10/the-ferry">',
        '<meta property="og:url" content="https://www.boats.example/2025/10/the-ferry">',
        '<link rel="canonical" href="/the-ferry"><meta property="og:url" content="https://boats.example/2025/10/a">',
    ],
)
def test_a_file_without_an_address_is_of_the_site_that_it_names(head: str) -> None:
    found = article(page(paragraphs(ENGLISH), f"<title>The ferry | Boats</title>{head}"), url=None)
    assert (found.facts.site, found.title) == ("boats.example", "The ferry")


def test_what_a_page_says_of_its_address_does_not_replace_where_it_came_from() -> None:
    head = '<title>The ferry</title><link rel="canonical" href="https://boats.example/">'
    assert article(page(paragraphs(ENGLISH), head)).facts.site == "example.com"


CHARSETS: dict[str, tuple[bytes, str | None, str]] = {
    "a mark wins over the header": (b"\xef\xbb\xbfgr\xc3\xbc\xc3\x9fe", "iso-8859-1", "grüße"),
    "the header wins over the page": (b'<meta charset="utf-8">gr\xfc\xdfe', "iso-8859-1", "grüße"),
    "the page is believed": (b'<meta charset="windows-1251">\xcf\xf0\xe8\xe2\xe5\xf2', None, "Привет"),
    "the old spelling too": (
        b'<meta http-equiv="Content-Type" content="text/html; charset=gb2312">\xc4\xe3\xba\xc3',
        None,
        "你好",
    ),
    "latin1 is windows-1252": (b"\x93quoted\x94", "latin1", "“quoted”"),
    "gb2312 is gb18030": ("镕".encode("gb18030"), "gb2312", "镕"),
    "no charset is utf-8 where it can be": ("grüße".encode(), None, "grüße"),
    "an unknown one is no reason to fail": ("grüße".encode(), "no-such-thing", "grüße"),
    "what can't be decoded is replaced": (b"good \xff bad", "utf-8", "good \ufffd bad"),
}


@pytest.mark.parametrize("case", CHARSETS)
def test_charsets_are_decoded_as_browsers_decode_them(case: str) -> None:
    data, header, expected = CHARSETS[case]
    assert decode_page(data, header).endswith(expected)


CHALLENGES = [
    "<title>Just a moment...</title><body><p>Checking your browser before accessing the site.</p></body>",
    "<title>Attention Required!</title><body><h1>Sorry, you have been blocked</h1><p>Ray ID: 7d0</p></body>",
    "<body><p>Please enable JavaScript and cookies to continue.</p></body>",
    "<title>Robot Check</title><body><form><p>Prove you are human: type the characters you see.</p></form></body>",
    "<body><h1>Bitte bestätigen Sie, dass Sie kein Roboter sind</h1></body>",
    "<body><div>请完成验证</div><div>安全验证</div></body>",
    '<body><div id="px-captcha"></div><p>Press and hold the button</p></body>',
]


@pytest.mark.parametrize("html", CHALLENGES)
def test_a_check_for_robots_is_no_article(html: str) -> None:
    with pytest.raises(BlockedPage):
        article(f"<html>{html}</html>".encode())


def test_an_article_about_captchas_is_an_article() -> None:
    about = f"<h1>The captcha</h1><p>Please verify you are human: we all know the sentence. {ENGLISH[0]}</p>"
    assert "verify you are human" in text(page(about + paragraphs(ENGLISH, 4)))


WALLS = [
    "<h1>Members</h1><p>Log in to continue reading.</p><form><input type=password></form>",
    f"<h1>The ferry</h1><p>{ENGLISH[0]}</p><p>Subscribe now to continue reading. Already a subscriber? Sign in</p>",
    f"<h1>Die Fähre</h1><p>{GERMAN[0]}</p><p>Dieser Artikel ist nur für Abonnenten. Jetzt abonnieren</p>",
    '<script type=\'application/ld+json\'>{"@type": "NewsArticle", "isAccessibleForFree": false}</script>'
    f"<h1>The ferry</h1><p>{ENGLISH[0]}</p>",
]


@pytest.mark.parametrize("html", WALLS)
def test_a_login_or_a_paywall_is_no_article(html: str) -> None:
    with pytest.raises(LoginWall):
        article(f"<html><body>{html}</body></html>".encode())


def test_an_open_article_with_a_login_form_is_an_article() -> None:
    form = "<form><p>Log in</p><input type=password></form>"
    assert ENGLISH[2] in text(page(paragraphs(ENGLISH, 3) + form))


@pytest.mark.parametrize(
    "data", [b"", b"<html></html>", b"<p>Hello.</p>", b"\x00\x00", b"<script>x()</script>"]
)
def test_hardly_any_text_is_no_article(data: bytes) -> None:
    with pytest.raises(EmptyContent):
        article(data)


def test_a_page_above_the_limit_is_not_read() -> None:
    with pytest.raises(PageTooLarge):
        article(b"x" * (LARGEST + 1))
    assert article(page(paragraphs(ENGLISH)).ljust(LARGEST)).title == "The ferry"


BODY = paragraphs(ENGLISH, 4)
MONSTERS: dict[str, Callable[[], str]] = {
    "very deep": lambda: "<div>" * 50_000 + BODY,
    "never closed": lambda: "<b><i><p>" * 20_000 + BODY,
    "a giant table": lambda: f"<table>{'<tr><td>1</td><td>2</td></tr>' * 30_000}</table>{BODY}",
    "one long line": lambda: f"<p>{'word ' * 200_000}</p>{BODY}",
    "many attributes": lambda: f"<div {' '.join(f'a{n}=1' for n in range(50_000))}>{BODY}</div>",
    "entities": lambda: "&amp;&lt;&#x41;&bogus;" * 30_000 + BODY,
    "NULs and bad bytes": lambda: BODY.replace(" ", "\x00 ") + "\ufffd" * 1000 + BODY,
    "only links": lambda: "".join(f'<a href="/{n}">link {n}</a> ' for n in range(20_000)) + BODY,
}


def test_a_short_page_keeps_its_few_sentences() -> None:
    found = text(page(f"<h1>The ferry</h1><p>{ENGLISH[0]}</p>"))
    assert ENGLISH[0] in found
    assert "Terms" not in found


@pytest.mark.parametrize("monster", MONSTERS)
def test_pathological_pages_are_read_in_time_and_keep_their_text(monster: str) -> None:
    found = text(f"<html><body>{MONSTERS[monster]()}</body></html>".encode())
    assert "ferry" in found.replace("\x00", "")


@pytest.mark.parametrize("rows", [2, 3, 6])
def test_the_cells_of_a_table_are_kept_together(rows: int) -> None:
    """They are short: judged one by one, some would be dropped."""
    years = range(2014, 2014 + rows)
    cells = "".join(f"<tr><td>{year}</td><td>{year - 1900} million</td></tr>" for year in years)
    table = f"<table><tr><th>Year</th><th>Estimate</th></tr>{cells}</table>"
    text = (
        read_article(page("".join(f"<p>{line}</p>" for line in ENGLISH) + table), Hints()).fragments[0].text
    )
    wanted = ["Year", "Estimate", *(f"{year}\t{year - 1900} million" for year in years)]
    assert [cell for cell in wanted if cell in text] == wanted
