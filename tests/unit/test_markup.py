"""Clean html says exactly what its text says, and nothing in it can do harm."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from lxml import html as lxml_html
from resiliparse.parse.html import DOMNode, HTMLTree

from nexus.extract import Fragment, Heading
from nexus.extract.elements import DROPPED, INLINES, KEPT_BLOCKS, LOOSE_BLOCKS
from nexus.extract.markup import clean_markup, safe_id

HERE = "https://example.org/a/page"
ODD_TAGS = (
    "br|hr|img src=/x.png|img src=y width=1|math|mi|mfrac|msup|annotation|a href=#a id=a|a href=/b name=b|span id=c"
    "|font|object|button|h2 id='ä'|colgroup|col|option|plaintext|frameset|image|listing|xmp|nobr|marquee|rtc|rb"
    "|form|input"
)
ODD_TEXTS = (
    " |a|b c|\n|\n\n x|&nbsp;|&lt;i&gt;|&amp;amp;|&#1;|&#13;|é|\t|\x0c|\r\n|<!-- c -->|x\ty  z|]]>|<![CDATA[q]]>|<?p?>"
    "|&#0;|\ufeff|\u2028|\x85|𝒳|\x00"
)
TAGS = [*sorted(KEPT_BLOCKS | LOOSE_BLOCKS | INLINES | DROPPED), *ODD_TAGS.split("|")]
TEXTS = ODD_TEXTS.split("|")
PIECES = st.one_of(
    st.sampled_from(TAGS).map(lambda tag: f"<{tag}>"),
    st.sampled_from(TAGS).map(lambda tag: f"</{tag.split()[0]}>"),
    st.sampled_from(TEXTS),
)


def read(html: str, base_url: str | None = HERE) -> Fragment:
    return clean_markup(html, base_url, 0)[0]


def shown(html: str) -> str:
    return read(html).html or ""


def text_of(node: DOMNode) -> str:
    return "".join(child.text if child.tag == "#text" else text_of(child) for child in node.child_nodes)


def browser_text(html: str) -> str:
    """The text content, by a parser that follows the standard of browsers."""
    return text_of(HTMLTree.parse(f"<!DOCTYPE html><html><body><main>{html}</main></body></html>").body)


def lxml_text(html: str) -> str:
    return "".join(lxml_html.fragment_fromstring(html, create_parent="div").itertext())


@given(st.lists(PIECES, max_size=40).map("".join))
@example("<p>a<div>b</div>c<pre>\n\nx<br>y</pre><table>t<tr><td>1<td><p>2</table>")
@example("<img src=/a><br>after a picture<hr>")
@settings(max_examples=400, deadline=None, derandomize=True)
def test_the_text_content_of_the_html_is_the_text(source: str) -> None:
    fragment = read(source)
    assert fragment.html is not None
    assert browser_text(fragment.html) == fragment.text
    assert lxml_text(fragment.html) == fragment.text


@given(st.text(max_size=200))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_any_characters_come_through_as_a_parser_reads_them(source: str) -> None:
    fragment = read(source)
    assert browser_text(fragment.html or "") == fragment.text


def test_blocks_lines_and_cells_are_apart_in_the_text() -> None:
    source = "<h1>T</h1><p>a\n  b</p><ul><li>1<ul><li>2</ul><li><p>3</p></ul><table><tr><td>x<td>y<tr><td>z</table>"
    assert read(source).text == "T\n\na b\n\n1\n2\n3\n\nx\ty\nz"


def test_text_outside_of_any_paragraph_becomes_one() -> None:
    assert shown("<div>one<div>two</div>three</div>") == "<p>one</p>\n\n<p>two</p>\n\n<p>three</p>"


def test_a_line_break_is_a_new_line_and_the_last_one_of_a_block_is_none() -> None:
    assert read("<p>a<br> b<br></p>") == Fragment("a\nb", "<p>a<br>\nb</p>")


def test_preformatted_text_keeps_its_spaces_and_has_no_line_break_elements() -> None:
    assert read("<pre>\n\n a\n  b<br>c\n</pre>") == Fragment(" a\n  b\nc", "<pre> a\n  b\nc</pre>")


def test_a_link_around_blocks_is_a_link_in_each_of_them() -> None:
    html = shown("<a href=/x><h3>T</h3><p>p</p></a>")
    assert re.sub(r' (?:id|rel)="[^"]*"', "", html) == (
        '<h3><a href="https://example.org/x">T</a></h3>\n\n<p><a href="https://example.org/x">p</a></p>'
    )


def test_elements_without_content_leave_no_trace() -> None:
    assert read("<p> <b></b>&nbsp;</p><ul><li></ul><div><span> </span></div><h2></h2>") == Fragment("", "")


@pytest.mark.parametrize(
    "source",
    [
        "<script>alert(1)</script>",
        "<style>p {}</style>",
        "<svg><script>alert(1)</script><text>t</text></svg>",
        "<iframe src=https://e.org/></iframe>",
        "<noscript><img src=https://e.org/t.gif></noscript>",
        "<img src='data:image/png;base64,AAAA'>",
        "<img src='javascript:alert(1)'>",
        "<img src=https://e.org/t.gif width=1 height=1>",
        "<img src=https://e.org/t.gif style='width: 600px; display:none'>",
        "<img src=https://e.org/t.gif hidden>",
        "<template><p>t</p></template>",
        "<textarea>t</textarea>",
    ],
)
def test_elements_that_are_not_text_are_left_out(source: str) -> None:
    assert read(source) == Fragment("", "")


@pytest.mark.parametrize(
    "href",
    [
        "javascript:alert(1)",
        "JaVaScRiPt&#58;alert(1)",
        "java\nscript:alert(1)",
        "\x01javascript:alert(1)",
        "data:text/html,x",
        "vbscript:x",
        "file:///etc/passwd",
        "ftp://e.org/",
        "http://[",
        "#",
        "x" * 9000,
    ],
)
def test_a_link_with_an_unsafe_target_becomes_text(href: str) -> None:
    assert shown(f'<a href="{href}">t</a>') == "<p>t</p>"


def test_handlers_styles_and_classes_are_dropped() -> None:
    assert shown("<p onclick=x() style=color:red class=c data-x=y>t</p>") == "<p>t</p>"


def test_links_are_absolute_and_send_no_referrer() -> None:
    assert shown('<a href="../b?c&d#e" target=_top>t</a>') == (
        '<p><a href="https://example.org/b?c&amp;d#e" rel="noopener noreferrer nofollow">t</a></p>'
    )


def test_without_an_address_relative_links_and_pictures_are_dropped() -> None:
    fragment = read("<a href=/x>t</a><img src=y.png><a href=mailto:a@e.org>m</a>", None)
    assert fragment.html == '<p>t<a href="mailto:a@e.org" rel="noopener noreferrer nofollow">m</a></p>'


def test_a_picture_is_loaded_late_and_tells_nobody_where_it_is_read() -> None:
    assert shown('<img src="/x.png" alt="a &quot;b&quot;" width=40 height=30px onerror=x>') == (
        '<p><img src="https://example.org/x.png" alt="a &quot;b&quot;" width="40" height="30" '
        'loading="lazy" referrerpolicy="no-referrer"></p>'
    )


def test_a_picture_that_a_script_would_load_is_shown() -> None:
    lazy = shown('<img src="data:image/gif;base64,R0" data-src="/x.png"><img srcset="/y.png 2x, /z.png 3x">')
    assert re.findall(r'src="([^"]+)"', lazy) == ["https://example.org/x.png", "https://example.org/y.png"]


def test_pictures_of_a_file_are_named_as_its_assets() -> None:
    names = {"in.png": "abc.png"}
    fragment, _ = clean_markup("<img src=in.png><img src=gone.png>", None, 0, asset=names.get)
    assert re.findall(r'src="([^"]+)"', fragment.html or "") == ["asset:abc.png"]


def test_every_heading_has_an_id_and_a_line_in_the_outline() -> None:
    fragment, headings = clean_markup(
        "<h1>One</h1><h3 id=h1>T <i>w</i><br>o</h3><h2> </h2><a href=#h1>up</a>", None, 4
    )
    assert headings == (Heading("One", 1, "f4-h2"), Heading("T w o", 3, "f4-h1"))
    assert all(f'id="{heading.anchor}"' in (fragment.html or "") for heading in headings)
    assert 'href="#f4-h1"' in (fragment.html or "")


def test_a_heading_that_was_left_open_does_not_swallow_the_page() -> None:
    _, headings = clean_markup("<h1>Title<p>" + "word " * 200, None, 0)
    assert headings == (Heading("Title", 1, "f0-h1"),)
    fragment, headings = clean_markup("<h1>Title <b>word</b> " + "word " * 200, None, 0)
    assert not headings
    assert "<h1" not in (fragment.html or "")


def test_a_link_within_the_page_leads_to_the_same_place_in_the_text() -> None:
    html = shown(
        f"<div id=n1><p>note</p></div><a href='{HERE}#n1'>1</a><a href=#%C3%A4>2</a><p id=ä>x</p><a href=#no>3</a>"
    )
    assert '<p><span id="f0-n1"></span>note</p>' in html
    assert 'href="#f0-n1"' in html
    assert f'href="#f0-{safe_id("ä")}"' in html
    assert f'<p id="f0-{safe_id("ä")}">x</p>' in html
    assert f'href="{HERE}#no"' in html


@given(st.text())
@settings(max_examples=100, deadline=None, derandomize=True)
def test_an_id_is_made_of_harmless_letters(name: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_.:-]{1,100}", safe_id(name.encode("utf-8", "replace").decode()))


def test_an_id_is_used_once() -> None:
    assert shown("<a href=#x>1</a><p id=x>a</p><p id=x>b</p>").count('id="f0-x"') == 1


def test_formulas_keep_their_letters_and_lose_their_source() -> None:
    assert read("<p>a <math><mi>x</mi><annotation>\\x</annotation></math> b</p>").text == "a x b"


@pytest.mark.parametrize(
    "piece",
    [
        "<div>",
        "<b>",
        "<ul><li>",
        "<table><td>",
        "<div></x>",
        "<span><div></span></div>",
        "<div><table><td></div>",
        "<b><i></b>",
        "<div title='</div>'>",
        "<div><!-- </div> -->",
    ],
)
def test_nesting_is_cut_and_no_text_is_lost(piece: str) -> None:
    fragment = read(f"<p>before</p>{piece * 3000}deep")
    assert fragment.text.split() == ["before", "deep"]
    assert browser_text(fragment.html or "") == fragment.text


def test_a_page_that_leaves_its_paragraphs_open_is_not_deep() -> None:
    assert shown("<ul>" + "<li><p>x" * 300 + "</ul><h2>T</h2>").endswith('<h2 id="f0-h1">T</h2>')


def test_a_lone_surrogate_does_no_harm() -> None:
    assert read("<p>a\ud800b</p>").text == "a\ufffdb"


def test_damaged_html_is_cleaned_all_the_same() -> None:
    good = "<h2 id=a>T</h2><p>x <a href=/y>z</a></p><table><tr><td>1</td></tr></table><pre>p</pre>" * 3
    source = random.Random(4)
    for _ in range(200):
        at, length = source.randrange(len(good)), source.randrange(12)
        fragment = read(good[:at] + chr(source.randrange(1, 0x250)) + good[at + length :])
        assert browser_text(fragment.html or "") == fragment.text


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>Q&amp;amp;A, it&amp;#8217;s &amp;quot;new&amp;quot;</p>", 'Q&A, it’s "new"'),
        ("<p>one&amp;nbsp;two &amp;mdash; three</p>", "one\u00a0two — three"),
        ("<p>Write <code>&amp;amp;nbsp;</code>.</p>", "Write &amp;nbsp;."),
        ("<pre>&amp;amp;</pre>", "&amp;"),
        ("<p>&amp;lt;b&amp;gt; is bold</p>", "&lt;b&gt; is bold"),
    ],
)
def test_entities_that_were_escaped_twice_are_not_shown_but_in_code(html: str, text: str) -> None:
    assert read(html).text == text
