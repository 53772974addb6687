"""The html of a text that is read: pictures and links with addresses, plain text in paragraphs."""

from __future__ import annotations

import re
from uuid import UUID

from markupsafe import Markup, escape

from nexus.extract.safe_html import safe_html
from nexus.media.illustrations import ASSET, Illustration, attributes_of, replace_images, write_image
from nexus.media.reader import Passage

_BLANK_LINES = re.compile(r"(\n\s*\n)")
#: The tags that are not shown as they are. Text is escaped, so nothing else looks like a tag.
_PLACED = re.compile(r"""<(?:a|img|pre|/?table)\b(?:[^>"']|"[^"]*"|'[^']*')*+>""", re.IGNORECASE)
_HEADING = re.compile(r"\s*<(h[12])\b([^>]*)>(.*?)</\1>", re.DOTALL)
_ASSET = re.compile(r"""(\ssrc=)"asset:([^"]*)(?=")""")
_WITHIN = re.compile(r"""(\shref=)"\#(f(\d{1,9})(?:-[^"]*)?)(?=")""")


def fragments_as_html(
    passage: Passage, media_id: UUID, title: str, revision: int | None
) -> list[tuple[int, Markup]]:
    """Return the position and html of each fragment. Addresses in it name the revision, if one is given.

    The text content of each html is exactly the fragment's text, so that offsets are the same in both. A first heading
    that only repeats the title is hidden.
    """
    shown = []
    for number, fragment in enumerate(passage.fragments):
        # Whatever wrote it, and whenever: what a browser is shown is checked again.
        html = None if fragment.html is None else safe_html(fragment.html, fragment.text)
        if html is not None and number == 0 and passage.before is None:
            html = _hide_title(html, title)
        whole = paragraphs(fragment.text) if html is None else _placed(html, media_id, passage, revision)
        shown.append((fragment.position, whole))
    return shown


def _placed(html: str, media_id: UUID, passage: Passage, revision: int | None) -> Markup:
    """Give pictures and links within the document their addresses. What may be wide can be scrolled by keyboard."""

    def written(attributes: dict[str, str], picture: Illustration | None) -> str:
        numbered = {} if picture is None else {"data-picture": str(picture.place)}
        if picture is None or picture.name is None:
            return _placeholder(
                attributes.get("alt", ""), numbered, picture is not None and picture.is_waiting
            )
        return write_image({**attributes, **numbered}, f"{ASSET}{picture.name}", picture)

    def placed(found: re.Match[str]) -> str:
        tag: str = found[0]
        if tag.startswith("</"):
            return f"{tag}</div>"
        if tag[:6].lower() == "<table":
            return f'<div class="table-frame" tabindex="0" role="group" aria-label="Table">{tag}'
        if tag[:4].lower() == "<pre":
            return f'{tag[:4]} tabindex="0" role="group" aria-label="Preformatted text"{tag[4:]}'
        if tag[:4].lower() == "<img":
            tag = replace_images(tag, passage.pictures, written)
        tag = _ASSET.sub(lambda name: f'{name[1]}"{asset_address(media_id, name[2], revision)}', tag)
        return _WITHIN.sub(
            lambda link: f'{link[1]}"{address_within(link[2], int(link[3]), media_id, passage, revision)}',
            tag,
        )

    return Markup(_PLACED.sub(placed, html))  # noqa: S704 - checked by the caller


def _hide_title(html: str, title: str) -> str:
    found = _HEADING.match(html)
    if found is None or not same_words(Markup(found[3]).striptags(), title):  # noqa: S704 - only compared
        return html
    return f'{html[: found.end(1)]} class="unseen"{html[found.end(1) :]}'


def same_words(one: str, other: str) -> bool:
    return one.casefold().split() == other.casefold().split()


def address_within(anchor: str, position: int, media_id: UUID, passage: Passage, revision: int | None) -> str:
    """Where a link within the document leads: on this page, or to the page that begins at that fragment."""
    if passage.holds(position):
        return f"#{anchor}"
    named = "" if revision is None else f"&amp;revision={revision}"
    return f"/items/{media_id}?from={position}{named}#{anchor}"


def asset_address(media_id: UUID, name: str, revision: int | None) -> str:
    named = "" if revision is None else f"?revision={revision}"
    return f"/items/{media_id}/assets/{name}{named}"


def _placeholder(alt: str, numbered: dict[str, str], waits: bool) -> str:
    """Stand in for a picture that is not there. Its words are in an attribute, so that the text stays the same.

    static/reader.js looks again for those that are on their way.
    """
    said = {
        "class": f"picture {'waiting' if waits else 'missing'}",
        "role": "img",
        "aria-label": alt or "Picture",
    }
    return f"<span{attributes_of({**said, **numbered})}></span>"


def paragraphs(text: str) -> Markup:
    """Escape a text and divide it at blank lines. The blanks between paragraphs are kept."""
    return Markup("").join(map(_paragraph, _BLANK_LINES.split(text)))


def _paragraph(part: str) -> Markup:
    body = part.strip()
    if not body:
        return _escaped(part)
    before, after = part.split(body, 1)
    return Markup('{}<p class="plain" dir="auto">{}</p>{}').format(*map(_escaped, (before, body, after)))


def _escaped(text: str) -> Markup:
    """Escape a text. A browser would read a bare carriage return as the end of a line."""
    return Markup(str(escape(text)).replace("\r", "&#13;"))  # noqa: S704 - escaped first
