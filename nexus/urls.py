"""What is the same thing: valid URLs, their canonical form, and the ids of videos at their providers. No I/O."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

import can_ada

from nexus.errors import InvalidUrl

MAX_LENGTH = 2048
TRACKING = re.compile(r"utm_.*|gclid|fbclid")
CONTROL = re.compile(r"[\x00-\x1f\x7f]")
#: A host with a dot in it, perhaps with a port, at the beginning of what a person typed.
TYPED_HOST = re.compile(r"(?://)?(?:[^\W_](?:[\w-]*[^\W_])?\.)+[^\W_][\w-]*(?::\d{1,5})?(?=[/?#]|$)")
YOUTUBE_HOSTS = frozenset(
    {
        "youtube.com",
        "www.youtube.com",
        "m.youtube.com",
        "music.youtube.com",
        "youtu.be",
        "youtube-nocookie.com",
        "www.youtube-nocookie.com",
    }
)
YOUTUBE_ID = re.compile(r"[A-Za-z0-9_-]{11}")
#: They look like ids of videos, and are not.
NOT_VIDEOS = frozenset({"videoseries", "live_stream"})
YOUTUBE_PATHS = frozenset({"embed", "shorts", "live", "v"})
VIMEO_HOSTS = frozenset({"vimeo.com", "www.vimeo.com", "player.vimeo.com"})
#: A path that ends with a video. Of an unlisted one, the key follows.
VIMEO_PATH = re.compile(
    r"/(?:video/|channels/[^/]+/|groups/[^/]+/videos/|(?:album|showcase)/[^/]+/video/|ondemand/[^/]+/)?"
    r"([1-9][0-9]{0,11})(?:/([0-9a-f]{6,20}))?/?"
)
VIMEO_KEY = re.compile(r"[0-9a-f]{6,20}")
#: PeerTube runs on many hosts, and its older addresses are like no others.
PEERTUBE_PATH = re.compile(
    r"/(?:videos/(?:watch|embed)|w)/([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})"
)
#: Endings of files with sound, and their types.
RECORDING_TYPES = {
    ".aac": "audio/aac",
    ".flac": "audio/flac",
    ".m4a": "audio/mp4",
    ".m4v": "video/mp4",
    ".mkv": "video/x-matroska",
    ".mov": "video/quicktime",
    ".mp3": "audio/mpeg",
    ".mp4": "video/mp4",
    ".oga": "audio/ogg",
    ".ogg": "audio/ogg",
    ".ogv": "video/ogg",
    ".opus": "audio/ogg",
    ".wav": "audio/wav",
    ".weba": "audio/webm",
    ".webm": "video/webm",
}


@dataclass(frozen=True)
class UrlIdentity:
    """A URL as it was given, and the canonical form that makes two of them the same thing."""

    requested_url: str
    canonical_url: str
    provider: str | None = None
    provider_id: str | None = None
    external_playback_url: str | None = None


def with_scheme(typed: str) -> str:
    """Return an address as a person means it: `example.com/an-article` is https. Anything else is left as it is."""
    typed = typed.strip()
    return f"https://{typed.removeprefix('//')}" if TYPED_HOST.match(typed) else typed


def identify_article(url: str) -> UrlIdentity:
    """Return the identity of a page. Raises InvalidUrl if the URL can't be one."""
    return UrlIdentity(_printable(url), _canonical(_parse(url)))


def other_address(own: str, found: str | None) -> str | None:
    """Return the canonical form of another address of the same page, or None if it can't be one.

    That is one on the same site, with or without `www.`: no site decides what an address of another means. A front page
    is none, because sites send readers of removed pages there.
    """
    if found is None or found == own:  # as with most pages
        return None
    try:
        mine, other = _parse(own), _parse(found)
        canonical = _canonical(other)
    except InvalidUrl:
        return None
    is_front = other.pathname == "/" and not other.search
    return None if canonical == own or is_front or _site(mine) != _site(other) else canonical


def _site(parsed: can_ada.URL) -> tuple[str, str]:
    return parsed.hostname.removeprefix("www."), parsed.port


def identify_video(url: str) -> UrlIdentity:
    """Return the identity of a video, the same for every form of a YouTube or Vimeo address. Raises InvalidUrl."""
    parsed = _parse(url)
    host = parsed.hostname.rstrip(".")
    if host in YOUTUBE_HOSTS:
        video_id = _youtube_id(parsed)
        canonical = f"https://www.youtube.com/watch?v={video_id}"
        return UrlIdentity(_printable(url), canonical, "youtube", video_id, canonical)
    if host in VIMEO_HOSTS and (found := VIMEO_PATH.fullmatch(parsed.pathname)):
        video_id = _vimeo_id(found[1], found[2] or _first(parsed.search, "h"))
        canonical = f"https://vimeo.com/{video_id}"
        return UrlIdentity(_printable(url), canonical, "vimeo", video_id, canonical)
    canonical = _canonical(parsed)
    return UrlIdentity(_printable(url), canonical, external_playback_url=canonical)


def is_video(url: str) -> bool:
    """Whether an address is that of a video or a recording, judged by the address alone. Raises InvalidUrl."""
    found = identify_video(url)
    path = urlsplit(found.canonical_url).path
    return found.provider is not None or recording_type(url) is not None or bool(PEERTUBE_PATH.match(path))


def recording_type(url: str) -> str | None:
    """Return the type that the ending of an address stands for; None if it is not that of a file with sound."""
    name = urlsplit(url).path.rpartition("/")[2].lower()
    return RECORDING_TYPES.get(f".{name.rpartition('.')[2]}") if "." in name else None


def host_of(url: str | None) -> str:
    """Return the host of an address as people name it; empty if it has none."""
    return (urlsplit(url or "").hostname or "").removeprefix("www.")


def _printable(url: str) -> str:
    """Drop the characters that the parser ignores and that a database may refuse."""
    return CONTROL.sub("", url).strip()


def _parse(url: str) -> can_ada.URL:
    if len(url) > MAX_LENGTH:
        raise InvalidUrl(f"This URL is longer than {MAX_LENGTH} characters. Give a shorter one.")
    try:
        parsed = can_ada.parse(url)
    except (ValueError, TypeError) as error:  # TypeError: half a surrogate pair
        raise InvalidUrl from error
    if parsed.protocol not in {"http:", "https:"}:
        raise InvalidUrl(
            f"Nexus can't add {parsed.protocol[:32]} addresses. Use one that starts with http:// or https://."
        )
    if not parsed.hostname:
        raise InvalidUrl
    if parsed.username or parsed.password:
        raise InvalidUrl("This URL contains a user name or password. Give it without them.")
    return parsed


def _canonical(parsed: can_ada.URL) -> str:
    """The parser lowercases scheme and host and drops default ports; the rest keeps its order and case."""
    pairs = parsed.search.removeprefix("?").split("&")
    query = "&".join(pair for pair in pairs if not TRACKING.fullmatch(pair.partition("=")[0]))
    canonical = parsed.origin + parsed.pathname + (f"?{query}" if query else "")
    if len(canonical) > MAX_LENGTH:
        raise InvalidUrl(f"This URL is longer than {MAX_LENGTH} characters once encoded. Give a shorter one.")
    return canonical


def _youtube_id(parsed: can_ada.URL) -> str:
    segments = parsed.pathname.strip("/").split("/")
    candidate = ""
    if parsed.hostname.rstrip(".") == "youtu.be":
        candidate = segments[0]
    elif segments == ["watch"]:
        candidate = _first(parsed.search, "v")
    elif len(segments) >= 2 and segments[0] in YOUTUBE_PATHS:
        candidate = segments[1]
    if not YOUTUBE_ID.fullmatch(candidate) or candidate in NOT_VIDEOS:
        raise InvalidUrl(
            "This YouTube address is not that of a video. Copy the link from the video's own page."
        )
    return candidate


def _vimeo_id(number: str, key: str) -> str:
    """An unlisted video can't be had without its key, so the key is part of what it is: numbers can be guessed, and
    nobody may get by a number what others have by a key."""
    return f"{number}/{key}" if VIMEO_KEY.fullmatch(key) else number


def _first(search: str, wanted: str) -> str:
    pairs = (pair.partition("=") for pair in search.removeprefix("?").split("&"))
    return next((value for name, _, value in pairs if name == wanted), "")
