"""An article as a site sends it."""

from __future__ import annotations

from itertools import pairwise

SENTENCES = [
    f"The {word} sentence of this article says something about the harbour, the boats and the weather of the year."
    for word in ("first", "second", "third", "fourth", "fifth", "sixth")
]


PARAGRAPHS = "".join(f"<p>{first} {second}</p>" for first, second in pairwise(SENTENCES))


ARTICLE = f"""<!doctype html><html lang="en"><head><title>The harbour | The Daily Boat</title>
<meta property="og:title" content="The harbour"><meta property="og:site_name" content="The Daily Boat">
<meta name="author" content="Ann Oar"></head>
<body><nav><a href="/">Home</a> <a href="/news">News</a></nav>
<article><h1>The harbour</h1>{PARAGRAPHS}<p>Read <a href="/more">more of it</a> there.</p></article>
<footer>All rights reserved</footer></body></html>"""
