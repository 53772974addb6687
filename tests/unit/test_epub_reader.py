"""Chapters of a book become fragments with their links, pictures and outline; a hostile book costs little."""

from __future__ import annotations

import io
import random
import zipfile

import pytest

from nexus.errors import EmptyContent, EpubDamaged, EpubDrm, EpubTooLarge, ExtractionFailed
from nexus.extract import Asset, Extraction, Facts, Fragment, Heading, Hints
from nexus.extract.epub import archive, pictures, read_epub
from tests.kit.documents import CONTAINER, GIF, OPF, PNG, chapter, epub, opf, packed

ONE = {"one.xhtml": chapter("<p>Once.</p>")}
PNG_TYPE = 'media-type="image/png"'
NAV_TYPE = 'media-type="application/xhtml+xml" properties="nav"'
NCX_TYPE = 'media-type="application/x-dtbncx+xml"'


def book(data: bytes) -> Extraction:
    return read_epub(data, Hints(filename="book.epub"))


def texts(data: bytes) -> list[str]:
    return [fragment.text for fragment in book(data).fragments]


def unpacked(data: bytes) -> list[tuple[zipfile.ZipInfo, bytes]]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return [(info, archive.read(info)) for info in archive.infolist() if info.filename != "mimetype"]


def html(data: bytes) -> str:
    return "".join(fragment.html or "" for fragment in book(data).fragments)


def locked(algorithm: str, target: str = "OEBPS/one.xhtml") -> str:
    return (
        '<encryption xmlns="urn:oasis:names:tc:opendocument:xmlns:container" '
        'xmlns:e="http://www.w3.org/2001/04/xmlenc#"><e:EncryptedData>'
        f'<e:EncryptionMethod Algorithm="{algorithm}"/><e:CipherData><e:CipherReference URI="{target}"/>'
        "</e:CipherData></e:EncryptedData></encryption>"
    )


def test_chapters_are_fragments_in_the_order_of_the_spine() -> None:
    data = epub({"b.xhtml": chapter("<h1>B</h1><p>first</p>"), "a.xhtml": chapter("<p>second</p>")})
    assert book(data) == Extraction(
        "A Book",
        (
            Fragment("B\n\nfirst", '<h1 id="f0-h1">B</h1>\n\n<p>first</p>'),
            Fragment("second", "<p>second</p>"),
        ),
        outline=(Heading("B", 1, "f0-h1"),),
    )


def test_metadata_of_a_book_is_read() -> None:
    metadata = (
        "<dc:title> A  Book </dc:title><dc:creator>A</dc:creator><dc:creator>B</dc:creator>"
        "<dc:language>de</dc:language><dc:publisher>P</dc:publisher><dc:date>2001-02-03T04:05:06Z</dc:date>"
        "<dc:description>&lt;p&gt;On &lt;b&gt;it&lt;/b&gt;.&lt;script&gt;x&lt;/script&gt;</dc:description>"
    )
    extraction = book(epub(ONE, metadata=metadata))
    assert extraction.title == "A Book"
    assert extraction.facts == Facts("A, B", "P", "2001-02-03T04:05:06Z", "de", None, "On it.")


@pytest.mark.parametrize(
    ("date", "published"), [("1851", "1851"), ("2001-02", "2001-02"), ("May 1851", None)]
)
def test_a_date_is_as_exact_as_it_is_given(date: str, published: str | None) -> None:
    assert book(epub(ONE, metadata=f"<dc:date>{date}</dc:date>")).facts.published == published


def test_links_between_chapters_lead_to_their_fragments() -> None:
    links = (
        '<p><a href="two.xhtml#n%203">1</a><a href="two.xhtml">2</a><a href="two.xhtml#gone">3</a>'
        '<a href="gone.xhtml">4</a><a href="https://e.org/">5</a><a href="#here" id="here">6</a></p>'
    )
    found = html(
        epub({"one.xhtml": chapter(links), "two.xhtml": chapter('<div id="n 3"><p>there</p></div>')})
    )
    rel = ' rel="noopener noreferrer nofollow"'
    target = found.partition('<span id="')[2].partition('"')[0]
    assert target.startswith("f1-x")
    assert found == (
        f'<p><a href="#{target}"{rel}>1</a><a href="#f1"{rel}>2</a><a href="#f1"{rel}>3</a>4'
        f'<a href="https://e.org/"{rel}>5</a><a id="f0-here" href="#f0-here"{rel}>6</a></p>'
        f'<p><span id="{target}"></span>there</p>'
    )


def test_the_outline_is_the_table_of_contents() -> None:
    nav = chapter(
        '<nav epub:type="landmarks"><ol><li><a href="one.xhtml">no</a></li></ol></nav><nav epub:type="toc"><ol>'
        '<li><a href="one.xhtml">One</a><ol><li><a href="one.xhtml#s">S</a></li></ol></li>'
        '<li><span>Part</span><ol><li><a href="two.xhtml">Two</a></li></ol></li><li><a href="gone.xhtml">-</a></li>'
        "</ol></nav>"
    )
    data = epub(
        {"one.xhtml": chapter('<section id="s"><p>1</p></section>'), "two.xhtml": chapter("<p>2</p>")},
        {"nav.xhtml": (nav, NAV_TYPE)},
    )
    assert book(data).outline == (
        Heading("One", 1, "f0"),
        Heading("S", 2, "f0-s"),
        Heading("Part", 1, "f1"),
        Heading("Two", 2, "f1"),
    )


def test_an_older_table_of_contents_is_read_too() -> None:
    ncx = (
        '<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/"><navMap><navPoint><navLabel><text>One</text></navLabel>'
        '<content src="one.xhtml"/><navPoint><navLabel><text>Deep</text></navLabel><content src="one.xhtml#d"/>'
        "</navPoint></navPoint></navMap></ncx>"
    )
    data = epub(ONE, {"toc.ncx": (ncx, NCX_TYPE)}, spine_attributes='toc="o0"')
    assert book(data).outline == (Heading("One", 1, "f0"), Heading("Deep", 2, "f0"))


def test_without_any_contents_the_titles_of_chapters_are_the_outline() -> None:
    assert book(epub(ONE)).outline == (Heading("A chapter", 1, "f0"),)


def test_pictures_are_kept_under_the_name_of_their_content() -> None:
    body = '<p>x<img src="i/a.png" alt="A"/><img src="i/b.gif"/><img src="i/a%2Epng"/></p>'
    data = epub({"one.xhtml": chapter(body)}, {"i/a.png": (PNG, PNG_TYPE), "i/b.gif": (GIF, PNG_TYPE)})
    extraction = book(data)
    first, second = extraction.assets
    assert first == Asset(first.name, "image/png", PNG)
    assert second == Asset(second.name, "image/gif", GIF)
    shown = extraction.fragments[0].html or ""
    assert shown.count(f'src="asset:{first.name}"') == 2
    assert f'src="asset:{second.name}"' in shown


def test_the_cover_is_the_lead_picture() -> None:
    data = epub(ONE, {"c.png": (PNG, f'{PNG_TYPE} properties="cover-image"')})
    extraction = book(data)
    assert extraction.facts.lead_image == f"asset:{extraction.assets[0].name}"
    older = epub(ONE, {"c.png": (PNG, PNG_TYPE)}, metadata='<meta name="cover" content="o0"/>')
    assert book(older).facts.lead_image == extraction.facts.lead_image


def test_a_chapter_of_pictures_opens_the_next_one() -> None:
    cover = '<svg xmlns="http://www.w3.org/2000/svg"><image xlink:href="a.png"/></svg>'
    data = epub(
        {"cover.xhtml": chapter(cover), "two.xhtml": chapter('<p><a href="cover.xhtml">2</a></p>')},
        {"a.png": (PNG, PNG_TYPE)},
    )
    (fragment,) = book(data).fragments
    assert fragment.text == "2"
    assert (fragment.html or "").startswith('<p><img src="asset:')
    assert 'href="#f0"' in (fragment.html or "")


def test_a_chapter_that_turns_out_to_be_empty_takes_no_position() -> None:
    hidden = chapter("<textarea>not to be read</textarea>")
    data = epub({"one.xhtml": hidden, "two.xhtml": chapter("<h1>T</h1>"), "three.xhtml": hidden})
    assert book(data).fragments == (Fragment("T", '<h1 id="f0-h1">T</h1>'),)


def test_missing_files_do_not_fail_a_book() -> None:
    there = chapter('<p>there<img src="gone.png"/></p>')
    package = opf(["gone.xhtml", "one.xhtml"], {"gone.png": PNG_TYPE})
    assert texts(packed({"META-INF/container.xml": CONTAINER, OPF: package, "OEBPS/one.xhtml": there})) == [
        "there"
    ]


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("<p>a&nbsp;b &eacute;&hellip; &amp;amp; &lt;i&gt; &nosuch;</p>", "a\xa0b é… & <i> &nosuch;"),
        ("<p>left open <b>here<p>and here", "left open here\n\nand here"),
        ('<p>a<a id="x"/>b<span/>c</p><p/>d', "abc\n\nd"),
        ("<p><![CDATA[<raw>]]></p>", "<raw>"),
    ],
)
def test_chapters_with_common_mistakes_are_read(body: str, text: str) -> None:
    assert texts(epub({"one.xhtml": chapter(body)})) == [text]


@pytest.mark.parametrize("charset", ["utf-8-sig", "utf-16", "iso-8859-1"])
def test_the_charset_of_a_chapter_is_found(charset: str) -> None:
    source = chapter("<p>Grüße</p>").replace('encoding="utf-8"', f'encoding="{charset.removesuffix("-sig")}"')
    assert texts(epub({"one.xhtml": source.encode(charset)})) == ["Grüße"]


def test_scripts_in_a_book_are_dropped() -> None:
    body = '<p onclick="x()">t</p><script>x()</script><a href="javascript:x()">l</a><img src="data:image/png,A"/>'
    assert html(epub({"one.xhtml": chapter(body)})) == "<p>t</p>\n\n<p>l</p>"


def test_a_drawing_is_no_picture_and_its_words_are_text() -> None:
    drawing = (
        '<svg xmlns="http://www.w3.org/2000/svg"><script>x</script><text>A <tspan>word</tspan></text></svg>'
    )
    data = epub(
        {"one.xhtml": chapter(f'{drawing}<img src="d.svg"/>')},
        {"d.svg": (drawing, 'media-type="image/svg+xml"')},
    )
    assert book(data).fragments == (Fragment("A word", "<p>A word</p>"),)
    assert not book(data).assets


@pytest.mark.parametrize(
    "more",
    [
        {"META-INF/encryption.xml": locked("http://www.w3.org/2001/04/xmlenc#aes128-cbc")},
        {"META-INF/rights.xml": '<rights xmlns="http://ns.adobe.com/adept"/>'},
        {"META-INF/sinf.xml": "<sinf/>"},
        {"META-INF/license.lcpl": "{}"},
    ],
)
def test_a_locked_book_is_reported_as_locked(more: dict[str, str]) -> None:
    with pytest.raises(EpubDrm):
        book(epub(ONE, more=more))


def test_a_book_with_obfuscated_fonts_is_not_locked() -> None:
    hidden = locked("http://www.idpf.org/2008/embedding", "OEBPS/font.bin")
    assert texts(epub(ONE, more={"META-INF/encryption.xml": hidden})) == ["Once."]
    by_name = locked("http://www.w3.org/2001/04/xmlenc#aes128-cbc", "OEBPS/font.OTF")
    assert texts(epub(ONE, more={"META-INF/encryption.xml": by_name})) == ["Once."]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"PK\x03\x04" + random.Random(3).randbytes(3000),
        b"%PDF-1.7\n",
        epub(ONE)[:-200],
        packed({"word/document.xml": "<w/>"}),
        packed({"META-INF/container.xml": CONTAINER}),
        packed({"META-INF/container.xml": CONTAINER, OPF: "<package/>"}),
        packed({"META-INF/container.xml": CONTAINER, OPF: opf(["gone.xhtml"])}),
        packed({"META-INF/container.xml": CONTAINER, OPF: opf([]), "OEBPS/one.xhtml": ONE["one.xhtml"]}),
    ],
)
def test_a_damaged_book_is_reported_as_damaged(data: bytes) -> None:
    with pytest.raises(EpubDamaged):
        book(data)


def test_a_book_of_pictures_alone_shows_them_page_by_page() -> None:
    pages = {name: chapter(f'<img src="{name[0]}.png"/>') for name in ("a.xhtml", "b.xhtml")}
    found = book(epub(pages, {"a.png": (PNG, PNG_TYPE), "b.png": (GIF, PNG_TYPE)}))
    assert [fragment.text for fragment in found.fragments] == ["Page 1", "Page 2"]
    assert all('<img src="asset:' in (fragment.html or "") for fragment in found.fragments)


def test_a_book_whose_pictures_are_all_missing_is_empty() -> None:
    with pytest.raises(EmptyContent):
        book(epub({"one.xhtml": chapter('<img src="a.png"/>')}))


def test_a_book_whose_files_and_links_spell_letters_differently_is_read() -> None:
    named = epub({"Café.xhtml": chapter("<p>Once.</p>")})
    files = {info.filename: data for info, data in unpacked(named)}
    composed, decomposed = "OEBPS/Caf\u00e9.xhtml", "OEBPS/Cafe\u0301.xhtml"
    files = {decomposed if name == composed else name: data for name, data in files.items()}
    assert decomposed in files
    assert texts(packed(files)) == ["Once."]


def test_ids_are_compared_without_the_blanks_around_them() -> None:
    files = {info.filename: data for info, data in unpacked(epub(ONE))}
    files[OPF] = files[OPF].replace(b'idref="', b'idref=" ')
    assert texts(packed(files)) == ["Once."]


def test_ruby_stands_as_ruby() -> None:
    data = epub({"one.xhtml": chapter("<p><ruby>漢<rp>(</rp><rt>かん</rt><rp>)</rp></ruby></p>")})
    assert "<ruby>漢<rp>(</rp><rt>かん</rt><rp>)</rp></ruby>" in html(data)


def test_formulas_of_a_book_are_kept() -> None:
    formula = "<math><msup><mi>x</mi><mn>2</mn></msup></math>"
    data = epub({"one.xhtml": chapter(f"<p>So {formula} holds.</p>")})
    assert texts(data) == ["So x^2 holds."]
    assert "<msup><mi>x</mi>" in html(data)


@pytest.mark.parametrize(
    "href",
    [
        "../../secret.xhtml",
        "/secret.xhtml",
        "..%2F..%2Fsecret.xhtml",
        "..\\secret.xhtml",
        "file:///secret.xhtml",
        "%00",
    ],
)
def test_no_path_leads_out_of_the_book(href: str) -> None:
    assert archive.resolve_path("OEBPS/book.opf", href) is None
    secret = {"../secret.xhtml": chapter("<p>secret</p>"), "/secret.xhtml": chapter("<p>secret</p>")}
    package = opf([href, "one.xhtml"])
    entries = {"META-INF/container.xml": CONTAINER, OPF: package, "OEBPS/one.xhtml": ONE["one.xhtml"]}
    assert texts(packed(entries | secret)) == ["Once."]


def test_paths_are_relative_to_the_file_that_names_them() -> None:
    assert archive.resolve_path("OEBPS/text/a.xhtml", "../i/%C3%A4%20b.png?x#y") == "OEBPS/i/ä b.png"
    assert archive.resolve_path("a.xhtml", "") is None


LAUGHS = '<!DOCTYPE html [<!ENTITY a "ha">' + "".join(
    f'<!ENTITY {chr(98 + n)} "{("&" + chr(97 + n) + ";") * 10}">' for n in range(12)
)
OUTSIDE = '<!DOCTYPE html [<!ENTITY m SYSTEM "file:///etc/hostname">]>'


def test_xml_entities_are_not_expanded() -> None:
    assert len(texts(epub({"one.xhtml": chapter("<p>so: &m;</p>", doctype=LAUGHS + "]>")}))[0]) < 2000
    with pytest.raises(EpubDamaged):
        book(epub(ONE, more={OPF: f"{LAUGHS}]>" + opf(["one.xhtml"], metadata="<x>&m;</x>")}))


def test_a_book_loads_nothing_from_outside() -> None:
    assert "so: " in texts(epub({"one.xhtml": chapter("<p>so: &m;</p>", doctype=OUTSIDE)}))[0]
    with pytest.raises(EpubDamaged):
        book(
            epub(
                ONE, more={"META-INF/container.xml": OUTSIDE + CONTAINER.replace("OEBPS", "&m;"), OPF: "<x/>"}
            )
        )


def test_a_zip_bomb_is_refused() -> None:
    flat = chapter("<p>" + " " * 30 * archive.MiB + "</p>")
    with pytest.raises(EpubTooLarge):
        book(epub({"one.xhtml": flat}))


def test_a_zip_bomb_that_lies_about_its_size_is_refused() -> None:
    data = bytearray(epub({"one.xhtml": chapter("<p>" + "x" * 3 * archive.MiB + "</p>")}))
    with zipfile.ZipFile(io.BytesIO(data)) as whole:
        size = whole.getinfo("OEBPS/one.xhtml").file_size
    lie = bytes(data).replace(size.to_bytes(4, "little"), (100).to_bytes(4, "little"))
    with pytest.raises(ExtractionFailed):
        book(lie)


def test_a_nested_zip_bomb_is_not_opened() -> None:
    inner = packed({"zeros": bytes(archive.MiB)})
    assert texts(epub(ONE, {"inner.zip": (inner, 'media-type="application/zip"')})) == ["Once."]


def test_the_total_text_of_a_book_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MOST_BYTES", 100_000)
    long = chapter("<p>" + "word " * 5000 + "</p>")
    with pytest.raises(EpubTooLarge):
        book(epub({f"{n}.xhtml": long for n in range(5)}))


def test_the_number_of_files_in_a_book_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MOST_ENTRIES", 5)
    with pytest.raises(EpubTooLarge):
        book(epub(ONE, more={f"{n}": "" for n in range(5)}))


def test_pictures_that_are_too_large_are_left_out_and_the_text_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "LARGEST", len(PNG) + 10)
    monkeypatch.setattr(pictures, "MOST_BYTES", len(PNG) + 10)
    images = {"a.png": (PNG + bytes(20), PNG_TYPE), "b.png": (PNG, PNG_TYPE), "c.gif": (GIF, PNG_TYPE)}
    body = "<p>text</p>" + "".join(f'<img src="{name}"/>' for name in images)
    extraction = book(epub({"one.xhtml": chapter(body)}, images))
    assert [asset.data for asset in extraction.assets] == [PNG]
    assert extraction.fragments[0].text == "text"


def test_unusual_compression_methods_are_refused() -> None:
    whole = io.BytesIO(epub(ONE))
    with zipfile.ZipFile(whole, "a") as more:
        more.writestr("OEBPS/two.xhtml", chapter("<p>Twice.</p>"), zipfile.ZIP_LZMA)
        more.writestr("OEBPS/x.opf", opf(["one.xhtml", "two.xhtml"]))
        more.writestr("META-INF/x", "")
    assert archive.Archive(whole.getvalue()).read("OEBPS/two.xhtml") is None


def test_a_spine_that_repeats_itself_is_read_once() -> None:
    package = opf(["one.xhtml"]).replace("</spine>", '<itemref idref="c0"/>' * 1000 + "</spine>")
    assert texts(epub(ONE, more={OPF: package})) == ["Once."]


def test_a_deeply_nested_chapter_keeps_its_text() -> None:
    assert texts(epub({"one.xhtml": chapter("<div>" * 3000 + "deep" + "</div>" * 3000)})) == ["deep"]


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_damaged_books_are_read_or_refused() -> None:
    nav = chapter('<nav epub:type="toc"><ol><li><a href="one.xhtml#a">One</a></li></ol></nav>')
    body = '<h1 id="a">T</h1><p>x &eacute; <a href="two.xhtml">y</a><img src="a.png"/></p>'
    chapters = {"one.xhtml": chapter(body), "two.xhtml": chapter("<p>2</p>")}
    others = {"nav.xhtml": (nav, NAV_TYPE), "a.png": (PNG, PNG_TYPE)}
    good = epub(chapters, others)
    with zipfile.ZipFile(io.BytesIO(good)) as archived:
        entries = {name: archived.read(name) for name in archived.namelist() if name != "mimetype"}
    source = random.Random(7)
    for turn in range(400):
        if turn % 2:
            bad = _mutated(good, source)
        else:
            name = source.choice(sorted(entries))
            bad = packed(entries | {name: _mutated(entries[name], source)})
        try:
            extraction = book(bad)
        except ExtractionFailed:
            continue
        assert all(fragment.text for fragment in extraction.fragments)


def _mutated(data: bytes, source: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(source.randrange(1, 5)):
        at = source.randrange(len(changed) + 1)
        changed[at : at + source.randrange(4)] = source.randbytes(source.randrange(4))
    return bytes(changed)
