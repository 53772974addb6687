"""An extractor of articles for tests of the pages: the path of the address decides the outcome.

/held/NAME waits until a file NAME is in the folder NEXUS_TEST_GATES; /fails-once/… and /never/… fail; /walled/… is
behind a login; /hostile/… has markup for a title; /long/… has many pages of text; everything else is read at once.

/rich/… has every kind of markup, /book/… many chapters; /unclean/… has html that was not cleaned; /paper/…
is a PDF with text and /scanned/… one without; /renewed/NAME has a new text as soon as there is a file NAME, and
fails as soon as there is one NAME-gone. Videos have no processor.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from nexus.errors import ExtractionFailed, FetchFailed, LoginWall, PdfNoText
from nexus.extract import AVAILABLE_EXTRACTORS, Asset, Extraction, Facts, Fetched, Fragment, Heading, Source
from nexus.extract.markup import clean_markup
from nexus.states.media import Kind
from tests.kit.plugins import EVERY_GATE

HOSTILE = "<script>window.ran = 1</script><img src=x onerror='window.ran = 1'>&amp;"
#: What no built-in extractor returns: a script, handlers, and attributes of htmx.
UNCLEAN = (
    "<p>Before.</p><script>window.ran = 1</script><img src='/nowhere' onerror='window.ran = 2'>"
    "<a href='javascript:window.ran = 3'>Click</a><style>main { display: none }</style>"
    "<div hx-post='/items/ID/delete' hx-trigger='load'>After.</div>"
)
CHAPTERS = 70
#: A picture of one blue point.
DOT = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
    "0000000c49444154789c63b0f2dc010001fc013ce12404cc0000000049454e44ae426082"
)
RICH = """
<p>It begins <em>at once</em> &amp; goes on,<br>on a second line.<sup><a id="r1" href="#n1">1</a></sup></p>
<h2>Measuring</h2><p>With <code>src="asset:dot.png"</code> and <a href="https://example.org/">a link</a>.</p>
<h3>By hand</h3><ul><li>A post<ul><li>with marks</li></ul></li><li>A clock</li></ul>
<figure><img src="dot.png" alt="One point"><figcaption>A point.</figcaption></figure>
<h2>Heights</h2><table><thead><tr><th>Port</th><th>High</th><th>Low</th><th>Remarks</th></tr></thead><tbody><tr>
<td>Northport</td><td>5.31</td><td>0.62</td><td>Measured every day at noon by hand</td></tr></tbody></table>
<pre>one\n  two, which is a line of code that is by far longer than any telephone is wide</pre>
<blockquote><p>Said by somebody.</p></blockquote>
<p>المدّ والجزر</p><p id="n1">1. A note.</p>
"""


class Gone(FetchFailed):
    """The source answered that it is gone. Check the address, then add it again."""

    transient = False


def extract(source: Source) -> Extraction:
    what, _, name = urlsplit(source.url or "").path.strip("/").partition("/")
    if what == "held":
        wait_for(gate(name))
    if what == "never":
        raise Gone
    if what == "walled":
        raise LoginWall
    if what == "fails-once" and source.attempt == 1:
        raise ExtractionFailed
    title = (name or what).replace("-", " ").capitalize()
    if what in SPECIAL:
        return SPECIAL[what](source, title)
    last = 120 if what == "long" else 3
    return Extraction.plain(title, *(f"Paragraph {number} of {title}." for number in range(1, last + 1)))


def hostile(source: Source, title: str) -> Extraction:
    return Extraction.plain(HOSTILE, HOSTILE, "javascript:window.ran = 1")


def unclean(source: Source, title: str) -> Extraction:
    html = UNCLEAN.replace("ID", str(source.media_id))
    return Extraction(title, (Fragment("Before. After.", html),))


def rich(source: Source, title: str) -> Extraction:
    fragment, outline = clean_markup(f"<h1>{title}</h1>{RICH}", source.url, 0, asset=lambda _: "dot.png")
    facts = Facts("Ada Harbour", "The Coast", "2026-01-31T08:00:00Z", "en")
    return Extraction(title, (fragment,), facts, outline, (Asset("dot.png", "image/png", DOT),))


def book(source: Source, title: str) -> Extraction:
    """Every chapter is taller than a window; a link before them leads to the last one."""
    fragments = [Fragment("To the end.", f'<p><a href="#f{CHAPTERS}-h1">To the end.</a></p>')]
    outline: list[Heading] = []
    for number in range(1, CHAPTERS + 1):
        body = f"<p>A paragraph of chapter {number}. {'It is long. ' * 60}</p>" * 3
        made, headings = clean_markup(f"<h1>Chapter {number}</h1>{body}", None, number)
        fragments.append(made)
        outline += headings
    return Extraction(title, tuple(fragments), Facts(), tuple(outline))


def paper(source: Source, title: str) -> Extraction:
    keep_pdf(source, title)
    return Extraction.plain(title, "The first page.\n\nIts end.", "The second page.")


def scanned(source: Source, title: str) -> Extraction:
    keep_pdf(source, title)
    raise PdfNoText


def renewed(source: Source, title: str) -> Extraction:
    name = urlsplit(source.url or "").path.rpartition("/")[2]
    if gate(f"{name}-gone").exists():
        raise Gone
    return Extraction.plain(title, "It was changed." if gate(name).exists() else "As it was at first.")


def keep_pdf(source: Source, title: str) -> None:
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]>>"
    body = (
        b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
        b"3 0 obj" + page + b"endobj\ntrailer<</Root 1 0 R>>\n%" + title.encode() + b"\n%%EOF\n"
    )
    source.bench.keep(Fetched(source.url or "", 200, "application/pdf", None, body))


def gate(name: str) -> Path:
    return Path(os.environ["NEXUS_TEST_GATES"], name)


def wait_for(gate: Path) -> None:
    every = gate.with_name(EVERY_GATE)
    for _ in range(3000):
        if gate.exists() or every.exists():
            return
        threading.Event().wait(0.02)


SPECIAL: dict[str, Callable[[Source, str], Extraction]] = {
    "hostile": hostile,
    "unclean": unclean,
    "rich": rich,
    "book": book,
    "paper": paper,
    "scanned": scanned,
    "renewed": renewed,
}
AVAILABLE_EXTRACTORS.clear()
AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = extract
