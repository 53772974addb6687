"""The sites of videos, as Nexus meets them: https on their own names, served on loopback.

Fetchers look names up and connect as a test's `System` says, so production code knows nothing of this.
"""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from html import escape
from http.server import BaseHTTPRequestHandler
from typing import Any, Self

from nexus.fetch import Fetcher, FetchLimits, System
from nexus.fetch.addresses import Address
from nexus.fetch.pace import SiteBook
from tests.kit.servers.threads import running
from tests.kit.servers.web_pages import Answer, _Server

#: Where every name leads, as far as Nexus can see.
PUBLIC = "93.184.215.14"
HOSTS = (
    "www.youtube.com",
    "consent.youtube.com",
    "www.google.com",
    "vimeo.com",
    "player.vimeo.com",
    "tube.example",
    "pages.example",
)


@dataclass(frozen=True)
class AskedSite:
    method: str
    #: Host and path.
    place: str
    headers: dict[str, str]
    body: bytes


Act = Callable[[AskedSite], Answer]


class VideoSites(dict[str, "Answer | Act"]):
    """Answers by host and path, with or without the query. Everything else is not found."""

    def __init__(self, tls: ssl.SSLContext) -> None:
        super().__init__()
        self.asked: list[AskedSite] = []
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._running = ExitStack()

    def fetcher(self, book: SiteBook | None = None, **limits: Any) -> Fetcher:
        """A fetcher with its usual guard, for which this server is the Internet."""
        system = System(resolve=self._resolve, connect=self._connect)
        return Fetcher(FetchLimits(delay=0, **limits), system, book)

    def places(self) -> list[str]:
        """What was asked for, without queries."""
        return [one.place.partition("?")[0] for one in self.asked]

    def _resolve(self, host: bytes, port: int, **_: object) -> list[Any]:
        return [(2, 1, 6, "", (PUBLIC, port))]

    def _connect(self, address: Address, port: int, seconds: float) -> socket.socket:
        sock = _Detour(socket.AF_INET, socket.SOCK_STREAM)
        sock.claimed = (str(address), port)
        sock.settimeout(seconds)
        sock.connect(("127.0.0.1", self._server.server_port))
        return sock

    def __enter__(self) -> Self:
        self._running.enter_context(running(self._server))
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()


class _Detour(socket.socket):
    """Connected to loopback, and seems to be where it was meant to go."""

    claimed: tuple[str, int]

    def getpeername(self) -> tuple[str, int]:
        return self.claimed


def _handler(sites: VideoSites) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(b"")

        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers["Content-Length"])))

        def _answer(self, body: bytes) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            place = f"{headers['host']}{self.path}"
            asked = AskedSite(self.command, place, headers, body)
            sites.asked.append(asked)
            found = sites.get(place) or sites.get(place.partition("?")[0])
            self._send(found(asked) if callable(found) else found or Answer(b"", "text/plain", 404))

        def _send(self, answer: Answer) -> None:
            with suppress(ConnectionError, ssl.SSLError):  # the client may be gone by now
                self.send_response(answer.status)
                self.send_header("Content-Type", answer.content_type)
                self.send_header("Content-Length", str(len(answer.body)))
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answer.body)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    return Handler


def json_answer(value: Any, status: int = 200) -> Answer:
    return Answer(json.dumps(value).encode(), "application/json; charset=utf-8", status)


VIDEO_ID = "dQw4w9WgXcQ"
WATCH = "www.youtube.com/watch"
PLAYER = "www.youtube.com/youtubei/v1/player"
TIMED_TEXT = "www.youtube.com/api/timedtext"
YOUTUBE_OEMBED = "www.youtube.com/oembed"
WATCH_PAGE = (
    '<!doctype html><html><head><meta itemprop="datePublished" content="2026-01-31T08:00:00-08:00"></head><body>'
    '<script>ytcfg.set({"INNERTUBE_API_KEY": "the-key_1", "x": 1});var ytInitialData = {"chapters":['
    '{"chapterRenderer":{"title":{"simpleText":"The \\"ebb\\""},"timeRangeStartMillis":0,"thumbnail":{}}},'
    '{"chapterRenderer":{"title":{"simpleText":"The flood"},"timeRangeStartMillis":4000,"thumbnail":{}}}]};</script>'
    "</body></html>"
)
CONSENT_PAGE = (
    '<html><body><form action="https://consent.youtube.com/s" method="POST">'
    '<input type="hidden" name="v" value="cb.20260131-07-p0.en+FX+123"></form></body></html>'
)
CAPTCHA_PAGE = '<html><body><form id="captcha-form"><div class="g-recaptcha"></div></form></body></html>'
LINES = ("The water rises for six hours.", "Then it falls again & again.")


@dataclass
class YouTubeVideo:
    """A video of the fake YouTube. A test changes what it likes before it serves it."""

    video_id: str = VIDEO_ID
    title: str = "On tides"
    author: str = "A. Mariner"
    seconds: int = 62
    description: str = "About tides."
    #: Language and kind of each caption track, and what it says.
    tracks: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=lambda: {("en", ""): LINES})
    playability: dict[str, Any] = field(default_factory=lambda: {"status": "OK"})

    def serve(self, sites: VideoSites) -> None:
        sites[YOUTUBE_OEMBED] = json_answer(self.oembed())
        sites[WATCH] = Answer(WATCH_PAGE.encode())
        sites[PLAYER] = json_answer(self.player())
        for (language, kind), lines in self.tracks.items():
            sites[f"{TIMED_TEXT}?v={self.video_id}&lang={language}&kind={kind}"] = timed_text(lines)

    def oembed(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "author_name": self.author,
            "provider_name": "YouTube",
            "type": "video",
            "thumbnail_url": f"https://i.ytimg.com/vi/{self.video_id}/hqdefault.jpg",
            "html": f'<iframe src="https://www.youtube.com/embed/{self.video_id}?feature=oembed"></iframe>',
        }

    def player(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "playabilityStatus": self.playability,
            "videoDetails": {
                "videoId": self.video_id,
                "title": self.title,
                "author": self.author,
                "lengthSeconds": str(self.seconds),
                "shortDescription": self.description,
                "thumbnail": {
                    "thumbnails": [
                        {"url": f"https://i.ytimg.com/vi/{self.video_id}/{width}.jpg", "width": width}
                        for width in (120, 1280, 640)
                    ]
                },
            },
        }
        if self.tracks:
            tracks = [self._track(language, kind) for language, kind in self.tracks]
            renderer = {"captionTracks": tracks, "translationLanguages": []}
            found["captions"] = {"playerCaptionsTracklistRenderer": renderer}
        return found

    def _track(self, language: str, kind: str) -> dict[str, Any]:
        given = {
            "baseUrl": f"https://{TIMED_TEXT}?v={self.video_id}&lang={language}&kind={kind}",
            "name": {"runs": [{"text": language}]},
            "languageCode": language,
        }
        return {**given, "kind": kind} if kind else given


def timed_text(lines: tuple[str, ...]) -> Answer:
    """What YouTube's timed text looks like: escaped twice, as it is there."""
    cues = (f'<text start="{4 * n}" dur="3.5">{escape(escape(line))}</text>' for n, line in enumerate(lines))
    body = f'<?xml version="1.0" encoding="utf-8" ?><transcript>{"".join(cues)}</transcript>'
    return Answer(body.encode(), "text/xml; charset=UTF-8")


def asks_for_consent(asked: AskedSite) -> Answer:
    """What YouTube shows in Europe, until it gets the cookie."""
    consented = "CONSENT=YES+cb.20260131-07-p0.en+FX+123" in asked.headers.get("cookie", "")
    return Answer((WATCH_PAGE if consented else CONSENT_PAGE).encode())


VTT = b"WEBVTT\n\n00:00.000 --> 00:03.000\nThe water rises for six hours.\n\n00:04.000 --> 00:07.000\nThen it falls.\n"


def vtt(text: str = "The water rises for six hours.") -> Answer:
    return Answer(f"WEBVTT\n\n00:00.000 --> 00:03.000\n{text}\n".encode(), "text/vtt")
