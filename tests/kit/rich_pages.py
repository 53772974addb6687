"""Articles with counted figures, notes, formulas, tables, listings and embeds, as publishing systems mark them up."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

PLACES = [
    "harbour",
    "river",
    "bridge",
    "market",
    "tower",
    "station",
    "garden",
    "valley",
    "island",
    "school",
    "theatre",
    "mill",
    "quarry",
    "canal",
]
PEOPLE = [
    "mayor",
    "captain",
    "teacher",
    "engineer",
    "farmer",
    "baker",
    "doctor",
    "painter",
    "miller",
    "sailor",
    "builder",
    "singer",
]
VERBS = [
    "measured",
    "repaired",
    "described",
    "opened",
    "visited",
    "counted",
    "painted",
    "crossed",
    "closed",
    "found",
]
WHEN = [
    "in spring",
    "last year",
    "before the storm",
    "after the flood",
    "in October",
    "at dawn",
    "for two weeks",
]


@dataclass(frozen=True)
class Thing:
    """Something that an author put into an article: what must be in its text, and what in its html."""

    kind: str
    in_text: tuple[str, ...] = ()
    in_html: tuple[str, ...] = ()

    def is_in(self, text: str, html: str) -> bool:
        flat = " ".join(text.split())
        return all(one in flat for one in self.in_text) and all(one in html for one in self.in_html)


@dataclass
class RichPage:
    system: str
    html: str
    url: str
    things: list[Thing] = field(default_factory=list)
    #: Sentences of the text around them.
    sentences: list[str] = field(default_factory=list)


def sentence(draw: random.Random) -> str:
    first, second = draw.sample(PLACES, 2)
    who, other = draw.sample(PEOPLE, 2)
    return (
        f"The {who} {draw.choice(VERBS)} the {first} {draw.choice(WHEN)}, and number {draw.randrange(100, 9999)} "
        f"of the {second} was {draw.choice(VERBS)} by the {other}, who had not expected it at all."
    )


class Author:
    """Writes one article in the manner of a publishing system."""

    def __init__(self, system: str, seed: int) -> None:
        self.draw = random.Random(f"{system} {seed}")
        self.page = RichPage(system, "", f"https://{system}.example/2026/an-article-{seed}")
        self.count = 0
        self.notes: list[str] = []

    def next(self) -> int:
        self.count += 1
        return self.count

    def keep(self, kind: str, *in_text: str, html: tuple[str, ...] = ()) -> None:
        self.page.things.append(Thing(kind, in_text, html))

    def words(self, more: str = "") -> str:
        made = [sentence(self.draw), sentence(self.draw)]
        self.page.sentences += made
        return f"{made[0]} {made[1]}{more}"

    def paragraph(self, more: str = "") -> str:
        return f"<p>{self.words(more)}</p>"

    def caption(self) -> tuple[str, str, str]:
        """A number, a caption and a credit."""
        number = self.next()
        return str(number), f"View {number} of the {self.draw.choice(PLACES)}", f"Photo: Ada Lens {number}"

    def formula(self) -> str:
        number = self.next() + 1000
        self.keep("formulas", f"a^2+b_{number}", html=("<msup>", f"<mn>{number}</mn>"))
        return (
            "<math><msup><mi>a</mi><mn>2</mn></msup><mo>+</mo>"
            f"<msub><mi>b</mi><mn>{number}</mn></msub></math>"
        )

    def table(self) -> str:
        number = self.next()
        self.keep("tables", f"Height {number}", f"{number}.31 m", html=("<table>",))
        rows = "".join(f"<tr><td>Port {at}</td><td>{at}.31 m</td></tr>" for at in range(number, number + 4))
        return f"<table><thead><tr><th>Port</th><th>Height {number}</th></tr></thead><tbody>{rows}</tbody></table>"

    def listing(self) -> str:
        number = self.next()
        self.keep("listings", f"tide_{number} = rise(moon)", html=("<pre>",))
        return f"<pre><code>tide_{number} = rise(moon)\nprint(tide_{number})</code></pre>"

    def note_text(self, mark_id: str, note_id: str) -> tuple[int, str]:
        """A number and a text, which are to be linked both ways."""
        number = len(self.notes) + 1
        said = f"Note {number}: the tables of the {self.draw.choice(PLACES)}, volume {self.draw.randrange(10, 99)}."
        ids = (f"{mark_id}{number}", f"{note_id}{number}")
        self.keep(
            "notes", said, html=tuple(f'{name}f0-{one}"' for name in ('id="', 'href="#') for one in ids)
        )
        return number, said


Figure = Callable[[Author], str]


def plain_figure(author: Author) -> str:
    number, caption, credit = author.caption()
    author.keep("figures", caption, credit, html=(f"/p/{number}.jpg", f'alt="Picture {number}"'))
    return (
        f'<figure><img src="/p/{number}.jpg" alt="Picture {number}">'
        f"<figcaption>{caption} <small>{credit}</small></figcaption></figure>"
    )


def wordpress_figure(author: Author) -> str:
    number, caption, credit = author.caption()
    author.keep("figures", caption, credit, html=(f"/p/{number}.jpg", f'alt="Picture {number}"'))
    return (
        f'<div id="attachment_{number}" class="wp-caption alignnone"><img class="size-large lazyload" '
        f'data-src="/p/{number}.jpg" src="data:image/gif;base64,R0lGODlhAQABAAAAACw=" alt="Picture {number}">'
        f'<p class="wp-caption-text">{caption}. {credit}</p></div>'
    )


def lazy_figure(author: Author) -> str:
    number, caption, credit = author.caption()
    author.keep("figures", caption, credit, html=(f"/p/{number}.jpg", f'alt="Picture {number}"'))
    return (
        '<figure class="media media--image"><div class="media__frame"><img class="js-lazy" '
        'src="data:image/gif;base64,R0">'
        f'<noscript><img src="/p/{number}.jpg" alt="Picture {number}"></noscript></div>'
        f'<figcaption class="media__caption"><span>{caption}</span> <span class="media__credit">{credit}</span>'
        "</figcaption></figure>"
    )


def picture_figure(author: Author) -> str:
    number, caption, credit = author.caption()
    author.keep("figures", caption, credit, html=(f"/p/{number}.jpg",))
    return (
        f'<figure class="kg-card kg-image-card"><picture><source srcset="/p/{number}.jpg 1200w" type="image/jpeg">'
        f'<img alt="Picture {number}" loading="lazy"></picture><figcaption>{caption}, {credit}</figcaption></figure>'
    )


def hugo_mark(author: Author) -> str:
    number, said = author.note_text("fnref:", "fn:")
    author.notes.append(
        f'<li id="fn:{number}" role="doc-endnote"><p>{said}&#160;<a href="#fnref:{number}" class="footnote-backref" '
        'role="doc-backlink">&#x21a9;&#xfe0e;</a></p></li>'
    )
    return f'<sup id="fnref:{number}"><a href="#fn:{number}" class="footnote-ref" role="doc-noteref">{number}</a></sup>'


def hugo_notes(author: Author) -> str:
    return f'<div class="footnotes" role="doc-endnotes"><hr><ol>{"".join(author.notes)}</ol></div>'


def substack_mark(author: Author) -> str:
    number, said = author.note_text("footnote-anchor-", "footnote-")
    author.notes.append(
        f'<div class="footnote" data-component-name="FootnoteToDOM"><a id="footnote-{number}" href="#footnote-anchor-'
        f'{number}" class="footnote-number">{number}</a><div class="footnote-content"><p>{said}</p></div></div>'
    )
    return f'<a class="footnote-anchor" id="footnote-anchor-{number}" href="#footnote-{number}">{number}</a>'


def wiki_mark(author: Author) -> str:
    number, said = author.note_text("cite_ref-", "cite_note-")
    author.notes.append(
        f'<li id="cite_note-{number}"><span class="mw-cite-backlink"><b><a href="#cite_ref-{number}">^</a></b></span> '
        f'<span class="reference-text">{said}</span></li>'
    )
    return f'<sup id="cite_ref-{number}" class="reference"><a href="#cite_note-{number}">{number}</a></sup>'


def wiki_notes(author: Author) -> str:
    return (
        f'<h2>References</h2><div class="reflist"><ol class="references">{"".join(author.notes)}</ol></div>'
    )


def joined_notes(author: Author) -> str:
    return "".join(author.notes)


def youtube_frame(author: Author) -> str:
    number = author.next()
    video = f"abcdefgh{number:03}"
    author.keep("embeds", f"Film {number} (youtube.com)", html=(f"watch?v={video}",))
    return (
        f'<div class="embed"><iframe src="https://www.youtube.com/embed/{video}?rel=0" title="Film {number}" '
        "allowfullscreen></iframe></div>"
    )


def tweet(author: Author) -> str:
    number = author.next()
    author.keep("embeds", f"The water is {number} feet high today", html=(f"/status/{number}",))
    return (
        f'<blockquote class="twitter-tweet"><p lang="en">The water is {number} feet high today</p>&mdash; Ada (@ada) '
        f'<a href="https://twitter.com/ada/status/{number}">May 1, 2026</a></blockquote>'
    )


def sound(author: Author) -> str:
    number = author.next()
    author.keep("embeds", f"Recording {number}", html=(f"/s/{number}.mp3",))
    return f'<figure><audio controls title="Recording {number}" src="/s/{number}.mp3"></audio></figure>'


#: For each system: its figures, note marks, list of notes, embeds, and the elements around the article.
SYSTEMS: dict[str, tuple[Figure, Figure, Figure, Figure, str]] = {
    "plain": (plain_figure, hugo_mark, hugo_notes, youtube_frame, "<main><article>{}</article></main>"),
    "wordpress": (
        wordpress_figure,
        hugo_mark,
        hugo_notes,
        tweet,
        '<div id="primary"><div class="post hentry"><div class="entry-content">{}</div></div></div>',
    ),
    "hugo": (
        plain_figure,
        hugo_mark,
        hugo_notes,
        sound,
        '<div class="content"><section class="post">{}</section></div>',
    ),
    "substack": (
        picture_figure,
        substack_mark,
        joined_notes,
        youtube_frame,
        '<div class="single-post"><article class="post"><div class="available-content"><div class="body '
        'markup">{}</div>'
        "</div></article></div>",
    ),
    "wiki": (
        plain_figure,
        wiki_mark,
        wiki_notes,
        youtube_frame,
        '<div id="content"><div id="bodyContent"><div class="mw-parser-output">{}</div></div></div>',
    ),
    "news": (
        lazy_figure,
        hugo_mark,
        hugo_notes,
        tweet,
        '<div class="page"><div class="article article--long"><div class="article__body">{}</div></div></div>',
    ),
    "ghost": (
        picture_figure,
        hugo_mark,
        hugo_notes,
        youtube_frame,
        '<main class="site-main"><article class="article post"><section class="gh-content">{}</section>'
        "</article></main>",
    ),
}
AROUND = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title></head><body>
<header><a href="/">The Coast</a><nav><ul><li><a href="/news">News</a></li><li><a href="/sea">Sea</a></li></ul></nav>
</header>
{article}
<aside class="related"><h3>More stories</h3><ul><li><figure><a href="/1"><img src="/t/1.jpg" alt=""></a><figcaption>
<a href="/1">Ten ferries you must see</a></figcaption></figure></li><li><a href="/2">Why boats float</a></li></ul>
</aside>
<footer><p>Copyright The Coast. <a href="/terms">Terms</a></p></footer></body></html>"""


def write_article(system: str, seed: int, pieces: str) -> RichPage:
    """Write an article of pieces: p(aragraph), f(igure), n(ote), m(ath), t(able), c(ode), e(mbed)."""
    figure, mark, notes, embed, around = SYSTEMS[system]
    author = Author(system, seed)
    write: dict[str, Callable[[], str]] = {
        "p": author.paragraph,
        "f": lambda: figure(author),
        "n": lambda: author.paragraph(mark(author)),
        "m": lambda: author.paragraph(f" So {author.formula()} holds."),
        "t": author.table,
        "c": author.listing,
        "e": lambda: embed(author),
    }
    body = "".join(write[letter]() for letter in pieces) + (notes(author) if author.notes else "")
    article = around.format(f"<h1>On the {author.draw.choice(PLACES)}</h1>{body}")
    author.page.html = AROUND.format(title="On the harbour", article=article)
    return author.page


def rich_pages(seeds: int = 3) -> Iterator[RichPage]:
    """Every system with a photo essay, a paper with notes and formulas, and an article with a bit of everything."""
    for system in SYSTEMS:
        for seed in range(seeds):
            yield write_article(system, seed, "pffffppffffpffffp")
            yield write_article(system, seed + 100, "pnpnmpnmptpnmpcpnp")
            yield write_article(system, seed + 200, "fppepfpntpcpmpepfp")
