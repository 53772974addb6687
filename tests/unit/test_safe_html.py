"""Html that a parser sent, or the database holds, is shown only if it is harmless, no matter who wrote it."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nexus.extract import Asset, Extraction, Facts, Fragment
from nexus.extract.markup import clean_markup
from nexus.extract.safe_html import is_safe, safe_extraction, safe_html

#: Each would do something in a browser, or get out of the element that the text is shown in.
HARMFUL = [
    "<script>alert(1)</script>",
    "<p onclick='x()'>a</p>",
    '<p onclick="x()">a</p>',
    '<p hx-post="/items/1/delete" hx-trigger="load">a</p>',
    '<p data-hx-post="/items/1/delete">a</p>',
    '<p data-live="1" id="f0-a">a</p>',
    '<p style="position:fixed">a</p>',
    '<p class="notice">a</p>',
    '<p id="main">a</p>',
    '<a href="javascript:x()" rel="noopener noreferrer nofollow">a</a>',
    '<a href="JAVASCRIPT:x()">a</a>',
    '<a href="data:text/html,x">a</a>',
    '<a href="/sign-out">a</a>',
    '<a href="//elsewhere.example">a</a>',
    '<a href="#main">a</a>',
    '<img src="/sign-in?token=x" alt="">',
    '<img src="asset:../../../sign-in?token=x" alt="">',
    '<img src="asset:a/b" alt="">',
    '<img src="javascript:x()" alt="">',
    '<img src="https://example.com/a.png" onerror="x()" alt="">',
    '<img src="https://example.com/a.png" srcset="https://example.com/b.png" alt="">',
    "</section><p>a</p>",
    "</section>",
    "<p>a</section></p>",
    "<p>a",
    "a</p>",
    "<p><em>a</p></em>",
    "<section>a</section>",
    "<form><p>a</p></form>",
    '<iframe src="https://example.com"></iframe>',
    "<svg><script>x()</script></svg>",
    "<math><p>a</p></math>",
    "<p><mi>a</mi></p>",
    '<math><mi>a<img src="https://example.com/a.png" alt=""></mi></math>',
    "<math><annotation-xml>a</annotation-xml></math>",
    "<template><p>a</p></template>",
    "<!-- a -->",
    "<!doctype html>",
    "<?x?>",
    "<P>a</P>",
    "<p/>",
    "<p >a</p>",
    "<p\tlang='x'>a</p>",
    "< p>a</p>",
    "<p>a < b</p>",
    "<p>a > b</p>",
    '<p lang="a">b" onclick="x()"></p>',
    '<p lang="a"onclick="x()">b</p>',
    "<p lang=a>b</p>",
    "<p>a<",
    "<",
    ">",
    "<>",
    "</>",
]
PIECES = [
    *HARMFUL,
    "<p>",
    "</p>",
    "<em>",
    "</em>",
    "<br>",
    "a",
    '"',
    "'",
    "<",
    ">",
    "&lt;",
    "=",
    " ",
    "/",
    "hx-get",
]


@pytest.mark.parametrize("html", HARMFUL)
def test_harmful_html_is_not_safe_and_loses_its_harm(html: str) -> None:
    assert not is_safe(html)
    for text in ("a", "", "b"):
        cleaned = safe_html(html, text)
        assert cleaned is None or is_safe(cleaned)


def test_a_harmful_attribute_goes_and_the_text_stays() -> None:
    html = '<p hx-post="/x" lang="en">one <b data-hx-get="/y">two</b></p>'
    assert safe_html(html, "one two") == '<p lang="en">one <b>two</b></p>'


def test_html_of_an_extractor_that_writes_its_own_keeps_what_is_harmless() -> None:
    html = (
        "<DIV Class='x'><P Lang='en'>1 < 2 <br/>and <A HREF='https://example.com/?a=1&amp;b=2'>more</A></div>"
    )
    assert safe_html(html, "1 < 2 and more") == (
        '<p lang="en">1 &lt; 2 <br>and <a href="https://example.com/?a=1&amp;b=2">more</a></p>'
    )


def test_html_whose_text_would_change_is_dropped_for_the_text_itself() -> None:
    assert safe_html("<p>one</p><script>two</script>", "one") is None


def test_what_the_writer_writes_is_safe_and_stays_as_it_is() -> None:
    source = (
        '<h1 id="a">A <em>title</em></h1><p lang="de" dir="ltr">One <a href="/x?a=1&b=2#c">link</a> &lt;&amp;&gt;'
        '<br>two <abbr title="it&quot;s &lt;b&gt;">x</abbr> <time datetime="2026-01-01T10:00">now</time></p><hr>'
        '<ol start="3" reversed type="a"><li value="-2">x<ul><li>y</ul></ol><dl><dt>a<dd>b</dl>'
        '<table><caption>c</caption><tr><th scope="col" colspan="2">h<td rowspan="3">d</table><pre>a\n b</pre>'
        '<figure><img src="b.png?a=1&b=2" alt="an &quot;alt&quot; <b>" width="10" height="20px"><figcaption>f</figure>'
        '<p><a href="#a">up</a> <a href="mailto:a@b.example">mail</a> <ruby>x<rp>(</rp><rt>y</rt></ruby></p>'
    )
    fragment, _ = clean_markup(source, "https://example.com/ä/", 3)
    assert fragment.html is not None
    assert is_safe(fragment.html)
    assert safe_html(fragment.html, fragment.text) is fragment.html


def test_pictures_of_a_book_and_links_between_its_chapters_are_safe() -> None:
    source = '<p><img src="a.png"> <a href="b">next</a> <a href="c">there</a></p>'
    links = {"b": "#f2", "c": "#f2-there"}
    fragment, _ = clean_markup(source, None, 0, lambda _: "0123abc.png", links.get)
    assert fragment.html is not None
    assert 'src="asset:0123abc.png"' in fragment.html
    assert is_safe(fragment.html)


@settings(deadline=None, derandomize=True, max_examples=400)
@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join), st.text(max_size=5))
def test_whatever_comes_is_safe_afterwards_or_gone(html: str, text: str) -> None:
    cleaned = safe_html(html, text)
    assert cleaned is None or is_safe(cleaned)


@settings(deadline=None, derandomize=True, max_examples=200)
@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_whatever_the_writer_makes_of_any_page_is_safe(html: str) -> None:
    fragment, _ = clean_markup(html, "https://example.com/", 0)
    assert fragment.html is not None
    assert is_safe(fragment.html)


@pytest.mark.parametrize(
    "tag", ["<em>", "<em onclick=x>", "<div>", "<table>", "</em>", "<a href=#>", "<p '", '<p "', "<"]
)
def test_the_time_to_check_grows_with_the_length_alone(tag: str) -> None:
    def seconds(count: int) -> float:
        began = time.process_time()
        safe_html(tag * count, "")
        return time.process_time() - began

    seconds(100)
    assert seconds(40_000) < 16 * seconds(5_000) + 0.1


def test_a_parser_that_lies_about_its_pictures_gets_none() -> None:
    found = Extraction(
        None,
        (Fragment("a", '<p hx-get="/x">a</p>'), Fragment("b", None)),
        Facts(lead_image="asset:../../sign-in"),
        assets=(
            Asset("a.png", "image/png", b"x"),
            Asset("../a.png", "image/png", b"x"),
            Asset("b.html", "text/html", b"x"),
            Asset("c.svg", "image/svg+xml", b"x"),
        ),
    )
    safe = safe_extraction(found)
    assert safe.fragments == (Fragment("a", "<p>a</p>"), Fragment("b", None))
    assert safe.facts.lead_image is None
    assert [asset.name for asset in safe.assets] == ["a.png"]
