"""Nothing that an author put into an article is lost: figures, notes, formulas, tables, listings and embeds."""

from __future__ import annotations

import pytest

from nexus.errors import PageTooLarge
from nexus.extract import Fragment, Hints
from nexus.extract.article import LARGEST, read_article
from nexus.extract.safe_html import is_safe
from tests.kit.rich_pages import SYSTEMS, RichPage, write_article


def read(page: RichPage) -> Fragment:
    (fragment,) = read_article(page.html.encode(), Hints(url=page.url)).fragments
    return fragment


def lost(page: RichPage) -> list[object]:
    found = read(page)
    html = found.html or ""
    assert is_safe(html)
    return [thing for thing in page.things if not thing.is_in(found.text, html)]


@pytest.mark.parametrize("system", SYSTEMS)
def test_an_essay_in_pictures_keeps_every_picture_with_caption_and_credit(system: str) -> None:
    assert lost(write_article(system, 0, "pffffppffffpffffp")) == []


@pytest.mark.parametrize("system", SYSTEMS)
def test_notes_are_kept_and_linked_both_ways(system: str) -> None:
    assert lost(write_article(system, 1, "pnpnppnpnp")) == []


@pytest.mark.parametrize("system", SYSTEMS)
def test_formulas_tables_listings_and_embeds_are_kept(system: str) -> None:
    assert lost(write_article(system, 2, "fpmpetpcpmpepfp")) == []


def test_a_picture_that_leads_to_another_article_is_left_out() -> None:
    found = read(write_article("plain", 3, "pfpp"))
    assert "/t/1.jpg" not in (found.html or "")
    assert "Ten ferries" not in found.text


def test_a_mark_whose_note_is_not_on_the_page_leads_to_the_page_itself() -> None:
    page = write_article("plain", 4, "pppp")
    page.html = page.html.replace("who had not", '<a href="#fn:9">9</a> who had not', 1)
    assert f'href="{page.url}#fn:9"' in (read(page).html or "")


FORMULA = "<math><mi>E</mi><mo>=</mo><mi>m</mi></math>"
TWICE = [
    f'<span class="katex"><span class="katex-mathml">{FORMULA}</span>'
    '<span class="katex-html" aria-hidden="true">E = m</span></span>',
    f'<mjx-container><mjx-math aria-hidden="true">E = m</mjx-math><mjx-assistive-mml>{FORMULA}</mjx-assistive-mml>'
    "</mjx-container>",
    f'<span class="mwe-math-element"><span style="display: none">{FORMULA}</span>'
    '<img src="/math/render/svg/1" class="mwe-math-fallback-image-inline" alt="E=m"></span>',
]


@pytest.mark.parametrize("formula", TWICE, ids=["KaTeX", "MathJax", "MediaWiki"])
def test_a_formula_that_a_page_shows_in_two_ways_is_read_once(formula: str) -> None:
    page = write_article("plain", 5, "ppp")
    page.html = page.html.replace("who had not", f"that {formula} was true and had not", 1)
    found = read(page)
    assert found.text.count("E=m") == 1
    assert "that E=m was true" in found.text
    assert "render/svg" not in (found.html or "")


def test_a_frame_with_advertising_is_left_out() -> None:
    page = write_article("plain", 6, "pppp")
    frame = '<iframe src="https://ads.example/show?x=1"></iframe>'
    page.html = page.html.replace("</p>", f"</p>{frame}", 1)
    assert "ads.example" not in (read(page).html or "")


BALLAST = {
    "scripts": "<script>{}</script>",
    "styles": "<style>{}</style>",
    "comments": "<!-- {} -->",
    "pictures in addresses": '<img src="data:image/png;base64,{}">',
}


@pytest.mark.parametrize("ballast", BALLAST.values(), ids=BALLAST)
def test_a_page_that_is_large_only_by_what_nobody_reads_is_read(ballast: str) -> None:
    page = write_article("plain", 7, "ppp")
    page.html = page.html.replace("<footer>", ballast.format("x" * LARGEST) + "<footer>")
    assert page.sentences[0] in read(page).text


def test_a_page_with_too_much_text_is_refused() -> None:
    page = write_article("plain", 8, "ppp")
    page.html = page.html.replace("<footer>", f"<p>{'x ' * (LARGEST // 2)}</p><footer>")
    with pytest.raises(PageTooLarge):
        read(page)


@pytest.mark.parametrize(
    "title", ["On the harbour | The Coast", "On the harbour - plain.example", "plain: On the harbour"]
)
def test_the_name_of_the_site_is_cut_from_a_title_by_its_domain_too(title: str) -> None:
    page = write_article("plain", 9, "ppp")
    page.html = page.html.replace("On the harbour</title>", f"{title}</title>")
    html = page.html.replace("<h1>", "<h2>").replace("</h1>", "</h2>")
    named = html.replace("<head>", '<head><meta property="og:site_name" content="The Coast">')
    assert read_article(named.encode(), Hints(url=page.url)).title == "On the harbour"
