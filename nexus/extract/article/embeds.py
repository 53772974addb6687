"""Finds players, posts and maps that a page shows in frames. A reader gets a link to each, with its title."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from lxml.etree import _Element as Element

from nexus.extract.elements import words

TAGS = words("iframe object embed audio video lite-youtube amp-youtube")
#: Frames of these hosts are something to watch, hear or look at. Most other frames are advertising.
HOSTS = re.compile(
    r"""(?:^|\.)(?:youtube(?:-nocookie)?\.com|youtu\.be|vimeo\.com|dailymotion\.com|twitch\.tv|ted\.com|loom\.com
    |wistia\.(?:com|net)|brightcove\.(?:com|net)|jwplayer\.com|streamable\.com|rumble\.com|odysee\.com|bilibili\.com
    |spotify\.com|soundcloud\.com|bandcamp\.com|mixcloud\.com|podcasts\.apple\.com|megaphone\.fm|acast\.com
    |libsyn\.com|podbean\.com|simplecast\.com|buzzsprout\.com|transistor\.fm|omny\.fm|art19\.com|podigee\.io
    |twitter\.com|x\.com|bsky\.app|instagram\.com|tiktok\.com|facebook\.com|reddit\.com|redditmedia\.com|threads\.net
    |datawrapper\.(?:de|dwcdn\.net)|dwcdn\.net|flourish\.studio|infogram\.com|tableau\.com|observablehq\.com
    |codepen\.io|jsfiddle\.net|codesandbox\.io|stackblitz\.com|replit\.com|gist\.github\.com
    |slideshare\.net|speakerdeck\.com|scribd\.com|issuu\.com|documentcloud\.org|archive\.org
    |openstreetmap\.org|google\.[a-z.]+|giphy\.com|sketchfab\.com|desmos\.com|geogebra\.org)$""",
    re.VERBOSE | re.IGNORECASE,
)
#: Google's maps and documents, and not its advertising.
GOOGLE = re.compile(r"/maps\b|/document/|/spreadsheets/|/presentation/|/forms/")
_YOUTUBE = re.compile(r"(?:youtube(?:-nocookie)?\.com/embed/|youtu\.be/)([\w-]{11})(?![\w-])")
_VIMEO = re.compile(r"player\.vimeo\.com/video/(\d+)")
_SOURCES = ("src", "data-src", "data-lazy-src", "data-litespeed-src", "data")
_LONGEST_TITLE = 200


@dataclass(frozen=True)
class Embed:
    href: str
    label: str


def find_embed(element: Element) -> Embed | None:
    """Return what to show for an element of a page, or None if it is nothing for a reader."""
    address = _address(element)
    if not address or address.startswith(("data:", "about:", "javascript:", "blob:")):
        return None
    host = (_host(address) or "").removeprefix("www.")
    is_medium = element.tag in {"audio", "video"}
    if not (is_medium or _is_known(host, address) or element.get("allowfullscreen") is not None):
        return None
    what = {"audio": "Audio", "video": "Video"}.get(str(element.tag), "Embedded content")
    title = _title(element) or what
    return Embed(_own_page(address), f"{title} ({host})" if host else title)


def _address(element: Element) -> str:
    video = element.get("videoid") or element.get("data-videoid")
    if element.tag in {"lite-youtube", "amp-youtube"}:
        return f"https://www.youtube.com/embed/{video}" if video else ""
    given = next(filter(None, map(element.get, _SOURCES)), "")
    if not given and element.tag in {"audio", "video"}:
        given = next((source.get("src") or "" for source in element.iter("source")), "")
    return given.strip()


def _host(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:
        return None


def _is_known(host: str, address: str) -> bool:
    if ".google." in f".{host}":
        return bool(GOOGLE.search(address))
    return bool(HOSTS.search(host)) or "/videos/embed/" in address


def _title(element: Element) -> str:
    given = element.get("title") or element.get("aria-label") or element.get("playlabel") or ""
    return " ".join(given.split())[:_LONGEST_TITLE]


def _own_page(address: str) -> str:
    """Return the page of a video, which has more to show than its player."""
    if found := _YOUTUBE.search(address):
        return f"https://www.youtube.com/watch?v={found[1]}"
    if found := _VIMEO.search(address):
        return f"https://vimeo.com/{found[1]}"
    return address
